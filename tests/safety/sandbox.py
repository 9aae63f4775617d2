"""The command line in a process apart, and what every command must keep to, however broken its input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.safety.worker import LIMIT

ALLOWED = (0, 2, 5)
"""Exit codes for input that may happen to be sound, is malformed, or beyond what tilec compiles."""


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    memory: int
    seconds: float
    out: str
    err: str


class Sandbox:
    """A process that runs commands in forks of itself."""

    def __init__(self, cache: Path) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TILEC_")}
        environment |= {"PYTHONPATH": os.pathsep.join(sys.path), "XDG_CACHE_HOME": str(cache)}
        command = [sys.executable, "-m", "tests.safety.worker"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True)

    def run(self, folder: Path, *arguments: object) -> Ran:
        """`tilec ARGUMENTS` in `folder`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(
            json.dumps({"folder": str(folder), "arguments": [str(a) for a in arguments]}),
            file=self._process.stdin,
            flush=True,
        )
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return Ran(**answer)

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def listing(folder: Path) -> dict[str, bytes | str | None]:
    """What lies in a folder: files with their bytes, links with their targets, folders."""
    found: dict[str, bytes | str | None] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found[name] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
    return found


def complaint(ran: Ran, changed: bool, codes: Iterable[int] = ALLOWED) -> str | None:
    """What a command did that no input may make it do; None when it behaved."""
    if ran.code < 0:
        return f"ended by signal {-ran.code}"
    if "Traceback" in ran.err or "bug in tilec" in ran.err:
        return "it failed unexpectedly"
    if ran.code not in codes:
        return f"exit code {ran.code}"
    if ran.memory > LIMIT or "out of memory" in ran.err:
        return f"{ran.memory >> 20} MiB of memory"
    if ran.code and not ran.err.startswith("error: ") and "\nerror: " not in ran.err and "Usage:" not in ran.err:
        return "no message"
    if ran.code and changed:
        return "files were left behind or changed"
    return None
