"""What the compiler in the background does, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tilec.artifact import Json
from tilec.background import Failure, Queue
from tilec.errors import several


def compiler_lines(queue: Queue, now: float) -> Iterator[str]:
    """One line for what is compiled and waits, and one for each model that failed."""
    waiting, status = queue.waiting(), queue.status()
    if status is not None:
        waiting = [order for order in waiting if not order.begun]
        yield f"compiling {status.what}: {status.text(now)}" + (f"; {_wait(len(waiting))}" if waiting else "")
    elif waiting:
        yield f"{_wait(len(waiting))} for the compiler in the background" + ("" if queue.lives else ", which has ended")
    for failure in queue.failures():
        yield _failed(failure, now)


def compiler_to_json(queue: Queue, now: float) -> Json:
    """The same as JSON."""
    status = queue.status()
    running: Json = None
    if status is not None:
        running = {
            "done": status.done,
            "model": status.what,
            "seconds": int(max(0, now - status.began)),
            "stage": status.stage,
            "step": status.step,
            "total": status.total,
        }
    waiting = [order.what for order in queue.waiting() if status is None or not order.begun]
    failed: list[Json] = [{"message": each.message, "model": each.what} for each in queue.failures()]
    return {"failed": failed, "running": queue.lives, "status": running, "waiting": list(waiting)}


def queued(path: Path, root: Path, now: float) -> str | None:
    """What a file of the queue is about; None where it is another user's."""
    queue = Queue(root)
    if path.parent != queue.folder:
        return None
    for order in queue.waiting():
        if order.name == path.name:
            status = queue.status() if order.begun else None
            return f"{order.what}: {status.text(now)}" if status is not None else f"{order.what} waits"
    failure = queue.failure(path.stem.removeprefix("failed-"))
    return _failed(failure, now) if failure is not None else None


def _wait(count: int) -> str:
    return f"{several(count, 'model')} wait{'s' if count == 1 else ''}"


def _failed(failure: Failure, now: float) -> str:
    again = "tried again by another version of tilec" if failure.lasts else "tried again later"
    again = again if failure.holds(now) else "tried again when it is next asked for"
    return f"{failure.what} failed, {again}: {failure.message}"
