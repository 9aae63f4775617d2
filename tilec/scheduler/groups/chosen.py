"""groups: what a core's level holds together and how it is tiled, in execution order (W16, W17, W20)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilec.ir.plan import Refusal
from tilec.scheduler.groups.atoms import Atoms
from tilec.scheduler.groups.build import Builder
from tilec.scheduler.groups.exact import objection, settled
from tilec.scheduler.groups.online import Online, online, ordered
from tilec.scheduler.groups.partition import Grouping, partition, separate
from tilec.scheduler.groups.reconsider import reconsidered
from tilec.scheduler.groups.tuned import tuned
from tilec.scheduler.reasons import edge
from tilec.scheduler.tiles.cores import CoreTile
from tilec.scheduler.tuning.choose import Tuner
from tilec.spec.recipe import ScheduleOptions

Chosen = list[tuple[Atoms, tuple[int, ...], CoreTile]]
"""Groups in execution order: the numbers of their parts among some, and their tile."""


def found_groups(atoms: Atoms, refused: Mapping[str, Refusal], builder: Builder, options: ScheduleOptions) -> Online:
    """The groups of some parts, as good as the search can tell; `refused` says why edges between parts are not
    connected."""
    if options.fusion == "full":
        return online(*grouped(atoms, refused), builder)
    single = separate(atoms, refused)
    return Online(((atoms, single.groups),), single.refused)


def chosen_groups(found: Online, builder: Builder, tuner: Tuner | None = None) -> tuple[Chosen, Mapping[str, Refusal]]:
    """Groups whose tiles are legal and fit, and why edges are not connected."""
    chosen: Chosen = []
    reasons = dict(found.refused)
    for own, groups in found.groups:
        tiled = settled(groups, own, builder, tuner.most if tuner is not None else 1)
        for members in set(groups) - {members for members, _ in tiled}:
            reasons |= _apart(members, own, builder)
        if tuner is not None:
            tiled = tuned(tiled, own, builder, tuner)
        chosen += [(own, members, tile) for members, (tile, *_) in tiled]
    return [chosen[n] for n in ordered([(own, members) for own, members, _ in chosen])], reasons


def grouped(atoms: Atoms, refused: Mapping[str, Refusal]) -> tuple[Atoms, Grouping]:
    """The parts, some of them cut, and the groups that are predicted to cost least."""
    return reconsidered(atoms, partition(atoms, refused), refused)


def _apart(members: tuple[int, ...], atoms: Atoms, builder: Builder) -> dict[str, Refusal]:
    """Why the edges of a group that fell apart are not connected: what became of it when it was lowered."""
    reason = objection(members, atoms, builder)
    inside = [edge(t, name) for n in members for t, name in atoms.edges[n] if atoms.home[t] in members]
    return {e: replace(reason, edge=e) for e in inside}
