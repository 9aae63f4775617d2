"""A profile of a session's runs, in the JSON that trace viewers read, as onnxruntime writes one."""

import os
import threading
import time
from pathlib import Path

from tilec.artifact import Json, pretty, write_text


class Profile:
    """Collects events; `write` puts them into a file that begins with `prefix`."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._start = time.perf_counter()
        self.began_ns = time.monotonic_ns()
        self._events: list[Json] = []

    def add(self, name: str, began: float) -> None:
        """An event that ends now; `began` by time.perf_counter."""
        now = time.perf_counter()
        self._events.append(
            {
                "args": {},
                "cat": "Session",
                "dur": round(1e6 * (now - began)),
                "name": name,
                "ph": "X",
                "pid": os.getpid(),
                "tid": threading.get_ident(),
                "ts": round(1e6 * (began - self._start)),
            }
        )

    def write(self) -> str:
        """Write the file and return its name. Raises TilecError when it cannot be written."""
        path = Path(f"{self._prefix}{time.strftime('%Y-%m-%d_%H-%M-%S')}_{os.getpid()}.json")
        write_text(path, pretty(self._events))
        return str(path)
