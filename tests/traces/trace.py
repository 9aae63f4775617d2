"""A trace: a model with open sizes, and the sizes that it is called at, drawn from a long-tailed distribution."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tilec.ir.sizes import SymbolRange

Sizes = Mapping[str, int]
"""The size of every symbol in one call."""


@dataclass(frozen=True, slots=True)
class OpenSize:
    """A symbol that varies from call to call: `low` to `high`, multiples of `divisor`; half of the draws are below
    `median`, and `spread` is the standard deviation of their logarithms."""

    low: int
    high: int
    median: int
    spread: float = 0.8
    divisor: int = 1

    @property
    def range(self) -> SymbolRange:
        """What a compiler is told."""
        return SymbolRange(self.low, self.high, self.divisor)

    def drawn(self, generator: np.random.Generator) -> int:
        """A size from the lognormal distribution, clipped to the range."""
        size = self.divisor * round(generator.lognormal(math.log(self.median), self.spread) / self.divisor)
        return min(max(size, self.range.least), self.high // self.divisor * self.divisor)


@dataclass(frozen=True, slots=True)
class Trace:
    """A model of the zoo, the symbols that vary, those that are `bound` to one size, and the number of calls."""

    model: str
    open: Mapping[str, OpenSize]
    bound: Mapping[str, int] = field(default_factory=lambda: {"batch": 1})
    calls: int = 30

    def drawn(self, seed: int) -> tuple[Sizes, ...]:
        """The sizes of all calls, of all symbols: the same for a seed."""
        generator = np.random.default_rng(seed)
        calls = range(self.calls)
        return tuple({**self.bound, **{s: size.drawn(generator) for s, size in self.open.items()}} for _ in calls)

    @property
    def pivot(self) -> Sizes:
        """The sizes that a plan for all sizes is decided at, when nothing but the ranges is known."""
        return {**self.bound, **{symbol: size.range.pivot for symbol, size in self.open.items()}}

    @property
    def least(self) -> Sizes:
        """The least size of every symbol."""
        return {**self.bound, **{symbol: size.range.least for symbol, size in self.open.items()}}

    @property
    def flags(self) -> dict[str, str]:
        """Sizes and ranges of the symbols as `--shape` takes them."""
        return {**{s: str(n) for s, n in self.bound.items()}, **{s: n.range.flag for s, n in self.open.items()}}


def _batches() -> Mapping[str, OpenSize]:
    return {"batch": OpenSize(1, 16, 3)}


def _sides(high: int, median: int) -> Mapping[str, OpenSize]:
    return {side: OpenSize(32, high, median, 0.5, 16) for side in ("height", "width")}


TRACES = {
    trace.model: trace
    for trace in (
        Trace("bert-base", {"seq": OpenSize(8, 512, 64)}),
        Trace("gpt2", {"seq": OpenSize(8, 1024, 96)}, calls=15),
        Trace("llama-layer-decode", {"past": OpenSize(1, 2047, 256, 1.2)}),
        Trace("vit-b16", _batches(), {}),
        Trace("mobilenet-v2", _batches(), {}),
        Trace("conformer", {"seq": OpenSize(16, 1024, 128)}),
        Trace("unet", _sides(256, 80)),
        Trace("restormer", _sides(128, 48)),
    )
}
"""The traces by the model they run."""
