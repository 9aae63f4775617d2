"""Scopes: names of the units that run spread loops; a level's scope is its own name unless it declares another."""

from __future__ import annotations

from collections.abc import Iterable

from tilec.ir.plan import PlanLevel


def scope_of(level: PlanLevel) -> str:
    """The name of the units of a level."""
    return level.scope or level.name


def scope_ranks(levels: Iterable[PlanLevel]) -> dict[str, int]:
    """Scope -> position of the lowest level with it: buffers there and above are private to a unit."""
    ranks: dict[str, int] = {}
    for position, level in enumerate(levels):
        ranks.setdefault(scope_of(level), position)
    return ranks
