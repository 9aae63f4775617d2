"""Imported by every Python process whose PYTHONPATH names this folder: one change of the file system goes wrong.

TILEC_FAULT is `EFFECT:NUMBER:COUNTER:ROOT`. Changes under ROOT (a file opened for writing, a rename, link, folder or
removal) are counted over all processes in the size of the file COUNTER; from the one with this NUMBER on, changes
that need space fail with ENOSPC (`full`), or the whole process group is killed there (`kill`).
"""

import errno
import os
import signal
import sys

NEED_SPACE = ("open", "os.rename", "os.link", "os.symlink", "os.mkdir")
CHANGES = (*NEED_SPACE, "os.remove", "os.rmdir")


def _watch(effect: str, number: int, counter: str, root: str) -> None:
    descriptor = os.open(counter, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event not in CHANGES or not isinstance(arguments[0], str | os.PathLike):
            return
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & writing):
            return
        if not os.path.abspath(arguments[0]).startswith(root):
            return
        os.write(descriptor, b".")
        if os.fstat(descriptor).st_size < number:
            return
        if effect == "kill":
            os.killpg(0, signal.SIGKILL)
        if effect == "full" and event in NEED_SPACE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(arguments[0]))

    sys.addaudithook(hook)


if "TILEC_FAULT" in os.environ:
    _effect, _number, _counter, _root = os.environ["TILEC_FAULT"].split(":")
    _watch(_effect, int(_number), _counter, _root)

if os.environ.get("TILEC_CLOCK"):
    import time

    def _moved(clock, unit):  # type: ignore[no-untyped-def]
        def now():  # type: ignore[no-untyped-def]
            try:
                with open(os.environ["TILEC_CLOCK"]) as file:
                    return clock() + int(file.read() or 0) * unit
            except (OSError, ValueError):
                return clock()

        return now

    time.time, time.time_ns = _moved(time.time, 1), _moved(time.time_ns, 10**9)
