"""Units that run the iterations of spread loops side by side, in lockstep.

A lane is one position of all spread loops around a statement.  What is on a level belongs to the lanes of that
level's scope and lower ones and is shared by the others: a statement on a level is run once for all lanes that
differ only in the scopes of higher levels.
"""

from __future__ import annotations

from collections.abc import Sequence

Lane = tuple[tuple[str, int, int], ...]
"""Spread variables, outermost first: name, value, position of the level whose units the loop runs on."""


def instance(lane: Lane, level: int) -> Lane:
    """The instance of `level` that serves this lane."""
    return tuple(entry for entry in lane if entry[2] <= level)


def instances(lanes: Sequence[Lane], level: int) -> tuple[Lane, ...]:
    """The instances of a level that serve these lanes, each once."""
    return tuple(dict.fromkeys(instance(lane, level) for lane in lanes))


def values(lane: Lane) -> dict[str, int]:
    """Spread variable -> value."""
    return {name: value for name, value, _ in lane}
