"""A command, its processor time and that of every process that it starts, up to a limit."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

PERIOD = 2.0
"""Seconds between two looks at what the processes have used."""

TICK = os.sysconf("SC_CLK_TCK")

STALLED = 60.0
"""Seconds without any processor time after which a command is ended: it waits for what will not come."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The exit code of a command, its texts, processor seconds of all its processes, and why it was ended here."""

    code: int
    output: str
    errors: str
    seconds: float
    ended: str = ""


def run_limited(command: Sequence[str], limit: float) -> Finished:
    """Run `command` as a session of its own; all its processes are killed when they used `limit` processor seconds."""
    with TemporaryFile() as output, TemporaryFile() as errors:
        before = _waited_for()
        process = subprocess.Popen(command, stdout=output, stderr=errors, start_new_session=True)
        used, ended, moved = 0.0, "", time.monotonic()
        while process.poll() is None:
            now = used_by(process.pid)
            if now > used:
                moved = time.monotonic()
            used = max(used, now)
            if used > limit:
                ended = f"not done in {limit:.0f} CPU s"
            elif time.monotonic() - moved > STALLED:
                ended = f"stalled for {STALLED:.0f} s"
            if ended:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                break
            time.sleep(PERIOD)
        output.seek(0)
        errors.seek(0)
        texts = [stream.read().decode(errors="replace") for stream in (output, errors)]
        return Finished(process.returncode, *texts, max(used, _waited_for() - before), ended)


def _waited_for() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def used_by(session: int) -> float:
    """Processor seconds of the session's processes, and of children that they have waited for."""
    return sum(_ticks(entry, session) for entry in Path("/proc").iterdir() if entry.name.isdigit()) / TICK


def _ticks(entry: Path, session: int) -> int:
    with suppress(OSError):
        fields = (entry / "stat").read_text().rpartition(")")[2].split()
        if int(fields[3]) == session:
            return sum(int(field) for field in fields[11:15])
    return 0
