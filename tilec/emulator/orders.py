"""Orders in which the threads of a block take turns."""

from __future__ import annotations

from dataclasses import dataclass

_NAMES = ("round robin", "reversed", "warp greedy", "random")


@dataclass(frozen=True, slots=True)
class Order:
    """A thread runs until it waits; `name` says who is next: round robin, reversed, warp greedy (all of a warp's
    threads as far as they get, before another warp) or random, which has a `seed`."""

    name: str
    seed: int = 0

    def __post_init__(self) -> None:
        if self.name not in _NAMES:
            raise ValueError(f"no order of threads is called {self.name!r}; there are {', '.join(_NAMES)}")

    @property
    def number(self) -> int:
        """Its number in the emulator's headers."""
        return _NAMES.index(self.name)


ORDERS = (Order("round robin"), Order("reversed"), Order("warp greedy"), Order("random", 7))
"""The orders in which kernels are verified."""
