"""Ratio of buffer to multiplier area on a die, for a curve of traffic over capacity (Orojenesis, area study)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Die:
    """Areas in square micrometres: `area` of multipliers and buffer together, `mac_area` of one multiplier, `byte_area`
    of a byte. `clock` in multiply-adds per second of one multiplier, `bandwidth` of the backing store in bytes/s."""

    area: float
    mac_area: float
    byte_area: float
    clock: float
    bandwidth: float

    @property
    def largest_buffer(self) -> int:
        """Bytes of buffer that occupy the whole area."""
        return int(self.area / self.byte_area)


@dataclass(frozen=True)
class Design:
    """A die with `buffer` bytes, and its limits in operations per second by memory and by multipliers."""

    buffer: int
    share: float
    memory_bound: float
    compute_bound: float

    @property
    def throughput(self) -> float:
        """Operations per second: the smaller limit."""
        return min(self.memory_bound, self.compute_bound)


def designs(die: Die, work: float, traffic: Callable[[int], float | None], buffers: Iterable[int]) -> list[Design]:
    """Designs with these buffers that fit the die, by rising buffer.

    `work` is in operations, of which a multiplier does one per clock; `traffic` maps a buffer in bytes to the bytes
    moved, None where no mapping fits. Throughput rises while memory limits it and falls once multipliers do.
    """
    result = []
    for buffer in sorted(set(buffers)):
        moved = traffic(buffer)
        if moved is not None and buffer <= die.largest_buffer:
            left = die.area - buffer * die.byte_area
            result.append(Design(buffer, buffer * die.byte_area / die.area, work / moved * die.bandwidth,
                                left / die.mac_area * die.clock))  # fmt: skip
    return result


def best(several: Sequence[Design]) -> Design:
    """The fastest design; of equally fast ones the one with the smallest buffer."""
    return max(several, key=lambda design: (design.throughput, -design.buffer))


def evenly(least: int, die: Die, samples: int) -> list[int]:
    """`samples` buffer sizes in bytes from `least` to the whole die, equally spaced."""
    step = (die.area / die.byte_area - least) / (samples - 1)
    return [int(least + step * i) for i in range(samples - 1)] + [die.largest_buffer]
