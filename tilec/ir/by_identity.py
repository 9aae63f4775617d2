"""Results remembered by the identity of an argument: hashing and comparing whole expressions takes longer."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Generic, TypeVar

V = TypeVar("V")
R = TypeVar("R")


def by_identity(most: int) -> Callable[[Callable[[V], R]], Callable[[V], R]]:
    """Remember what a function of one immutable value returns, of `most` values at a time, which live as long."""

    def decorated(function: Callable[[V], R]) -> Callable[[V], R]:
        known: dict[int, tuple[V, R]] = {}

        @wraps(function)
        def remembered(value: V) -> R:
            found = known.get(id(value))
            if found is not None:
                return found[1]
            result = function(value)
            if len(known) >= most:
                known.clear()
            known[id(value)] = value, result
            return result

        return remembered

    return decorated


class ById(Generic[V]):
    """A value compared by identity, as one of several parts of a key."""

    __slots__ = ("value",)

    def __init__(self, value: V) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ById) and self.value is other.value
