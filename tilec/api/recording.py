"""Runs that sessions keep for `tilec capture`: which compiled model, which inputs, how long, and what failed (B29).

TILEC_RECORD names the folder; TILEC_RECORD_SLOWER (seconds) keeps runs that take longer, without it the first run of
every compiled model is kept. Runs that raise are kept always.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tilec.artifact import atomic_open
from tilec.errors import ConfigError, TilecError, UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

FOLDER, SLOWER = "TILEC_RECORD", "TILEC_RECORD_SLOWER"

MOST = 20
"""Runs of one compiled model that are kept."""


_MADE = f"`tilec compile` makes such folders; sessions keep runs where {FOLDER} names a folder."


class Runnable(Protocol):
    """Something that computes the outputs."""

    def run(self, feeds: Mapping[str, Any], out: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Outputs by name."""


@dataclass
class Recorded:
    """A compiled model in `build` some of whose runs are kept in `folder`: of those slower than `slower` seconds (None:
    the first)."""

    code: Runnable
    build: Path
    folder: Path
    slower: float | None
    kept: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, feeds: Mapping[str, Any], out: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Run the compiled code, and keep the run where it raises or takes long."""
        began = time.perf_counter()
        try:
            results = self.code.run(feeds, out)
        except UsageError:
            raise
        except TilecError as error:
            self._keep(feeds, time.perf_counter() - began, error.message)
            raise
        seconds = time.perf_counter() - began
        if seconds > self.slower if self.slower is not None else not self.kept:
            self._keep(feeds, seconds, "")
        return results

    def _keep(self, feeds: Mapping[str, Any], seconds: float, error: str) -> None:
        import numpy as np

        with self.lock:
            if self.kept >= MOST:
                return
            self.kept += 1
            stem = f"{self.build.name[:40]}-{os.getpid()}-{os.urandom(3).hex()}"
        about = {"build": str(self.build.absolute()), "inputs": f"{stem}.npz", "seconds": seconds, "error": error}
        with atomic_open(self.folder / f"{stem}.npz") as file:
            np.savez(file, allow_pickle=False, **{name: np.asarray(value) for name, value in feeds.items()})
        with atomic_open(self.folder / f"{stem}.json") as file:
            file.write(json.dumps(about, indent=1).encode())


def recorded(code: Runnable, build: Path) -> Runnable:
    """The compiled model of `build`, with its runs kept where the environment asks for it. Raises ConfigError for a
    limit that is no number."""
    folder, slower = os.environ.get(FOLDER), os.environ.get(SLOWER)
    if not folder:
        return code
    try:
        return Recorded(code, build, Path(folder), float(slower) if slower else None)
    except ValueError as error:
        raise ConfigError(f"{SLOWER} is {slower!r}", hint="Set it to a number of seconds.") from error


def read_record(path: Path) -> tuple[Path, dict[str, NDArray[Any]]]:
    """The folder of the compiled model, and the inputs, of a run that was kept. Raises UsageError for another file."""
    import numpy as np

    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        folder = Path(about["build"])
        with np.load(path.parent / about["inputs"], allow_pickle=False) as arrays:
            return folder, {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            "neither a folder of a compiled model nor a run that a session kept", str(path), _MADE
        ) from error
