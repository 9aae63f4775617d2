"""Parts that share registers fall apart where that is predicted to gain (W16, W19).

What is computed on the result of a reduction runs on as many units as its register tiles are; by itself it may keep
more of them busy than the reduction can.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from tilec.ir.expr import operands
from tilec.scheduler.fusion.group_costs import cost_numbers, roofline
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.graph_passes.fuse_registers import RegisterFusion, execution_order, with_one_final
from tilec.scheduler.refusals import edge_name, refusal
from tilec.scheduler.search_cache import Part
from tilec.scheduler.state import SearchState, SearchStep
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.trace import Advance, Trace, no_advance

Pieces = tuple[tuple[int, ...], ...]
"""Sets of nodes of a part, each the places of its nodes, in execution order."""


@dataclass(frozen=True)
class SplitParts(SearchStep):
    """Parts split where their pieces cost less."""

    name: ClassVar[str] = "split_parts"
    template: ClassVar[str] = (
        "what shares registers falls apart where its pieces are predicted to take less than {gain:g} of it"
    )

    gain: float = 0.99
    """A part is split where its pieces are predicted to cost less than this fraction of it: less is noise."""

    def applies(self, state: SearchState) -> bool:
        """Single nodes have no pieces; bytes that a part holds are no sum of those of its pieces."""
        options = state.options
        return super().applies(state) and options.fusion in ("register", "full") and options.objective != "footprint"

    def level(self, target: TargetModel) -> str:
        """Registers."""
        return target.top

    def run(self, state: SearchState, trace: Trace) -> SearchState:
        """Parts, those split that are predicted to cost less in pieces."""
        parted = RegisterFusion(state.problem.parts, state.refused)
        split = split_parts(parted, state.problem, self.gain, partial(trace.advance, self.name))
        return state.with_parts(split.parts, split.refused)


def split_parts(
    parted: RegisterFusion, problem: FusionProblem, gain: float, advance: Advance = no_advance
) -> RegisterFusion:
    """The parts of `problem`, those split that cost less than `gain` of themselves in pieces; parts that are alike
    alike."""
    known: dict[object, tuple[Pieces, float]] = {}
    parts: list[Part] = []
    refused = dict(parted.refused)
    for number, part in enumerate(problem.parts):
        key = problem.key((number,), problem.leaving((number,)))
        if key not in known:
            known[key] = _cheapest(number, problem, gain)
        pieces, apart = known[key]
        home = {part[place].name: n for n, places in enumerate(pieces) for place in places}
        numbers = cost_numbers(problem.singles[number].objective, apart, problem)
        for node in part:
            for tensor in operands(node.expr):
                if home.get(tensor, home[node.name]) != home[node.name]:
                    refused[edge_name(tensor, node.name)] = refusal(tensor, node.name, "slower", **numbers)
        parts += [tuple(part[place] for place in places) for places in pieces]
        advance(number + 1, len(problem.parts))
    return RegisterFusion(tuple(parts), refused)


def _cheapest(number: int, problem: FusionProblem, gain: float) -> tuple[Pieces, float]:
    """The pieces of a part that cost least together, itself where no split gains, and their cost."""
    part = problem.parts[number]
    outputs = frozenset(problem.leaving((number,)))
    best: Pieces = (tuple(range(len(part))),)
    cost = problem.singles[number].objective
    improved = True
    while improved:
        improved = False
        for pieces in _finer(best, part):
            parts = tuple(tuple(part[i] for i in piece) for piece in pieces)
            trial = _cost(replace(problem, parts=parts, outputs=outputs), cost * gain)
            if trial < cost * gain:
                best, cost, improved = pieces, trial, True
    return best, cost


def _cost(problem: FusionProblem, most: float) -> float:
    """Cost of all parts by themselves, or more than `most` if that is more."""
    costs = [roofline(problem, (n,)) for n in range(len(problem.parts))]
    for n in sorted(range(len(costs)), key=lambda n: costs[n]):
        if sum(costs) >= most:
            break
        costs[n] = problem.singles[n].objective
    return sum(costs)


def _finer(pieces: Pieces, part: Part) -> Iterator[Pieces]:
    """Every way to split one of the pieces in two."""
    for place, piece in enumerate(pieces):
        for at in range(1, len(piece)):
            rest = [other for n, other in enumerate(pieces) if n != place]
            yield _runnable([*rest, piece[:at], piece[at:]], part)


def _runnable(pieces: Sequence[tuple[int, ...]], part: Part) -> Pieces:
    """Pieces in execution order, each with one final node."""
    reads = {node.name: operands(node.expr) for node in part}
    places = {node.name: place for place, node in enumerate(part)}
    whole = [[part[i] for i in piece] for piece in pieces]
    runnable = [tuple(places[node.name] for node in piece) for piece in with_one_final(whole, reads)[0]]
    home = {place: n for n, piece in enumerate(runnable) for place in piece}
    needs = [
        {home[places[t]] for place in piece for t in reads[part[place].name] if t in places} - {n}
        for n, piece in enumerate(runnable)
    ]
    return tuple(runnable[n] for n in execution_order(needs, [piece[-1] for piece in runnable]))
