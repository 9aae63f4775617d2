"""Figures of the search as whole numbers: a candidate tile with the terms of its prediction, what joining comes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilec.ir.plan import Refusal
from tilec.scheduler.explain_search import PICO, FirstLook, FusionProblem, TaskTile, cost_terms_of, costs_of, roofline

Sizes = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a tile is predicted to cost: the number of `tasks`; in picoseconds what a task computes, streams, copies,
    waits and takes in all, what all tasks take on all cores (`span`), what the lowest level takes (`drawn`), the
    `launch`, and the whole; bytes that a core's level holds and that tasks move."""

    tasks: int
    compute: int
    stream: int
    copy: int
    wait: int
    task: int
    span: int
    drawn: int
    launch: int
    picoseconds: int
    held_bytes: int
    moved_bytes: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A tile that a core's level may hold of a group: sizes of the last node, reduce steps by node, the copies of what
    these load (1: loads are waited for where they stand), register tiles by the last node of each part; what the
    objective counts (picoseconds or bytes), whether it fits, its prediction."""

    tile: Sizes
    steps: Mapping[str, Sizes]
    copies: int
    registers: Mapping[str, Sizes]
    objective: int
    fits: bool
    prediction: Prediction


def candidate(problem: FusionProblem, members: Sequence[int], tile: TaskTile) -> Candidate:
    """A tile of a group of parts in whole numbers."""
    terms = cost_terms_of(problem, members, tile)
    times = {
        name: _pico(getattr(terms, name))
        for name in ("compute", "stream", "copy", "wait", "task", "span", "drawn", "launch")
    }
    finals = [problem.parts[number][-1].name for number in members]
    return Candidate(
        dict(tile.sizes),
        {node: dict(of) for node, of in tile.steps.items()},
        tile.stages,
        {name: dict(register.sizes) for name, register in zip(finals, tile.registers, strict=True) if register.sizes},
        whole(tile.objective, problem),
        tile.fits,
        Prediction(
            int(np.max(terms.tasks)),
            **times,
            picoseconds=_pico(terms.seconds),
            held_bytes=int(np.max(terms.held)),
            moved_bytes=int(np.max(terms.moved)),
        ),
    )


def whole(value: float, problem: FusionProblem) -> int:
    """What the objective counts as a whole number, as refusals have it."""
    return int(value * (PICO if problem.objective == "time" else 1))


def _pico(seconds: object) -> int:
    return int(float(np.max(np.asarray(seconds, np.float64))) * PICO)


@dataclass(frozen=True)
class Join:
    """Some groups of parts, each known to the search, and what becomes of them as one.

    apart     what they cost as they are, without bound where one of them may not be
    pieces    what all their parts cost by themselves
    gain      the joined group has to cost less than this fraction of either
    """

    problem: FusionProblem
    groups: tuple[tuple[int, ...], ...]
    gain: float

    @cached_property
    def members(self) -> tuple[int, ...]:
        """All parts together."""
        return tuple(sorted(number for members in self.groups for number in members))

    @cached_property
    def apart(self) -> float:
        """What the groups cost as they are."""
        return sum(self.problem.core_tiles(members)[0].objective for members in self.groups)

    @cached_property
    def pieces(self) -> float:
        """What the parts cost by themselves."""
        return sum(self.problem.singles[number].objective for number in self.members)

    @cached_property
    def wanted(self) -> float:
        """What the joined group has to stay below."""
        return self.apart * self.gain

    @cached_property
    def bound(self) -> float:
        """What no group of these parts can fall short of."""
        return roofline(self.problem, self.members)

    @cached_property
    def look(self) -> FirstLook:
        """What a first look finds of the joined group."""
        return self.problem.look(self.members)

    @cached_property
    def tile(self) -> TaskTile:
        """The best tile of the joined group."""
        return self.problem.core_tiles(self.members)[0]

    @cached_property
    def verdict(self) -> Refusal | None:
        """Why the joined group may not be one, or does not pay against its parts; None where it may."""
        cost = costs_of(self.problem, self.members, self.gain)[1]
        return cost if isinstance(cost, Refusal) else None

    @cached_property
    def pays(self) -> bool:
        """Whether the groups would be joined for what it costs."""
        return self.verdict is None and self.tile.objective < self.wanted
