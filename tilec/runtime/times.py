"""Begin and end of the launches and calls of one run."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tilec.abi import job_layout
from tilec.abi.manifest import Segment

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Span:
    """The interval in which a launch or a call ran, named by its group or by the call's file: nanoseconds of the
    monotonic clock, from the first task that a thread took to the end of the last."""

    name: str
    begin: int
    end: int


class Times:
    """Blocks that native code writes its times into, one for each segment, and the times of the calls between them."""

    def __init__(self, segments: tuple[Segment, ...]) -> None:
        self._segments = segments
        self._blocks = [np.full((each.launches, job_layout.TIMES // 8), (_NEVER, 0), np.int64) for each in segments]
        self._calls: list[Span] = []

    def of(self, segment: int) -> "NDArray[np.int64]":
        """The block of a segment."""
        return self._blocks[segment]

    @contextmanager
    def call(self, name: str) -> Iterator[None]:
        """Notes the time of the call that runs inside."""
        begin = time.monotonic_ns()
        yield
        self._calls.append(Span(name, begin, time.monotonic_ns()))

    @property
    def spans(self) -> tuple[Span, ...]:
        """Everything that ran, in the order in which it began; a launch without tasks did not."""
        launches = [
            Span(group, int(begin), int(end))
            for segment, block in zip(self._segments, self._blocks, strict=True)
            for group, (begin, end) in zip(segment.groups, block, strict=True)
            if begin != _NEVER
        ]
        return tuple(sorted([*launches, *self._calls], key=lambda span: (span.begin, span.end)))
