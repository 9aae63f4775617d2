"""Thresholds of the search at levels below a core's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LevelOptions:
    """How long sets of parts and their tiles are looked for."""

    patience: int = 8
    """Parts by which an interval is extended although every one since the cheapest cost more than its pieces; more
    where that leaves it at `least_intervals` altogether."""

    least_intervals: int = 2048
    """Intervals that are looked at in any case."""

    capacity_patience: int = 4
    """Parts by which an interval is extended although no tile of it fits."""

    costs_per_part: int = 40
    """Sets for every part that are looked at before changes of sets stop."""

    change_gain: float = 1e-6
    """Relative gain for which a set, or a tile, is changed."""

    refinements: int = 8
    """Times that a tile is refined at most."""

    tile_retries: int = 24
    """Times that a tile of which some instance does not fit is replaced by one that holds less: candidates are compared
    at their first, middle and last place, the chosen one is looked at everywhere."""

    tile_retry_share: float = 0.95
    """The part of what such a tile held that the next one may hold."""
