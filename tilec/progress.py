"""Progress of long work: whoever does it says how much of which of its steps is done, whoever listens shows it."""

from collections.abc import Collection, Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")


class Advance(Protocol):
    """Receives how much of the work, or of its step that is called `step`, is done: the time since the call before went
    there."""

    def __call__(self, done: int, total: int, step: str = "") -> None:
        """`done` of `total` kernels, draws, parts or groups are done."""


def unseen(done: int, total: int, step: str = "") -> None:
    """Progress at which nobody looks."""


def counted(items: Collection[T], step: str, advance: Advance) -> Iterator[T]:
    """The items, each told as done when the next is asked for."""
    for done, item in enumerate(items):
        yield item
        advance(done + 1, len(items), step)
