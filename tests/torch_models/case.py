"""A model of the sweep: how it is made, and the arguments of its calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

Call = tuple[tuple[Any, ...], dict[str, Any]]
"""Arguments of a call, by position and by name."""


@dataclass(frozen=True, slots=True)
class Case:
    """`calls` draws the arguments of all calls of a model, which is made by `build`; it may ask the model what those
    are. `family` says where it comes from."""

    name: str
    family: str
    build: Callable[[], nn.Module]
    calls: Callable[[nn.Module], list[Call]]


def by_position(*arguments: Any) -> Call:
    """A call with these arguments."""
    return arguments, {}
