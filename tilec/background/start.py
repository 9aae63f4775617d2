"""Starts the compiler in the background: a process that has nothing of this one, and outlives it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import IO

from tilec.background.queue import Queue
from tilec.own_process import modules_path


class _Detached(subprocess.Popen[bytes]):
    """A process that nobody waits for."""

    def __del__(self) -> None:
        """It lives on."""


_started: list[_Detached] = []
"""Those that this process began, which it has to let the system forget once they have ended."""


def start(queue: Queue) -> None:
    """Start the compiler of a queue, unless there is one. Raises OSError where no process can be started."""
    _started[:] = [child for child in _started if child.poll() is None]
    if queue.lives:
        return
    with _log(queue) as log:
        _started.append(
            _Detached(
                [sys.executable, "-P", "-m", "tilec.background", str(queue.root.absolute())],
                env={**os.environ, "PYTHONPATH": modules_path()},
                cwd=os.sep,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        )


def _log(queue: Queue) -> IO[bytes]:
    try:
        return queue.log.open("wb")
    except OSError:
        return open(os.devnull, "wb")
