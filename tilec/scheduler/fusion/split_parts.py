"""cut: parts of what shares registers fall apart where that is predicted to gain (W16, W19).

What is computed on the result of a reduction runs on as many units as its register tiles are; by itself it may keep
more of them busy than the reduction can.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tilec.ir.expr import operands
from tilec.scheduler.fusion.group_costs import JOIN_GAIN, cost_numbers, lower_bound
from tilec.scheduler.fusion_problem import FusionProblem, Part
from tilec.scheduler.graph_passes.fuse_registers import RegisterFusion, execution_order, with_one_final
from tilec.scheduler.refusals import edge_name, refusal

Pieces = tuple[tuple[int, ...], ...]
"""Sets of nodes of a part, each the places of its nodes, in execution order."""


def split_parts(parted: RegisterFusion, atoms: FusionProblem) -> RegisterFusion:
    """The parts of `atoms`, those cut that are predicted to cost less in pieces; parts that are alike alike."""
    if atoms.objective == "footprint":
        return parted
    known: dict[object, tuple[Pieces, float]] = {}
    parts: list[Part] = []
    refused = dict(parted.refused)
    for number, part in enumerate(atoms.parts):
        key = atoms.key((number,), atoms.leaving((number,)))
        if key not in known:
            known[key] = _cheapest(number, atoms)
        pieces, apart = known[key]
        home = {part[place].name: n for n, places in enumerate(pieces) for place in places}
        numbers = cost_numbers(atoms.singles[number].objective, apart, atoms)
        for node in part:
            for tensor in operands(node.expr):
                if home.get(tensor, home[node.name]) != home[node.name]:
                    refused[edge_name(tensor, node.name)] = refusal(tensor, node.name, "slower", **numbers)
        parts += [tuple(part[place] for place in places) for places in pieces]
    return RegisterFusion(tuple(parts), refused)


def _cheapest(number: int, atoms: FusionProblem) -> tuple[Pieces, float]:
    """The pieces of a part that cost least together, itself where no cut gains, and what they cost."""
    part = atoms.parts[number]
    outputs = frozenset(atoms.leaving((number,)))
    best: Pieces = (tuple(range(len(part))),)
    cost = atoms.singles[number].objective
    found = True
    while found:
        found = False
        for pieces in _finer(best, part):
            own = replace(atoms, parts=tuple(tuple(part[i] for i in piece) for piece in pieces), outputs=outputs)
            trial = _cost(own, cost * JOIN_GAIN)
            if trial < cost * JOIN_GAIN:
                best, cost, found = pieces, trial, True
    return best, cost


def _cost(atoms: FusionProblem, most: float) -> float:
    """What all parts cost by themselves, or more than `most` if that is more."""
    costs = [lower_bound(atoms, (n,)) for n in range(len(atoms.parts))]
    for n in sorted(range(len(costs)), key=lambda n: costs[n]):
        if sum(costs) >= most:
            break
        costs[n] = atoms.singles[n].objective
    return sum(costs)


def _finer(pieces: Pieces, part: Part) -> Iterator[Pieces]:
    """Every way to cut one of some pieces in two."""
    for place, piece in enumerate(pieces):
        for at in range(1, len(piece)):
            rest = [other for n, other in enumerate(pieces) if n != place]
            yield _runnable([*rest, piece[:at], piece[at:]], part)


def _runnable(pieces: Sequence[tuple[int, ...]], part: Part) -> Pieces:
    """Pieces in execution order, each with one final node."""
    reads = {node.name: operands(node.expr) for node in part}
    places = {node.name: place for place, node in enumerate(part)}
    whole = [[part[i] for i in piece] for piece in pieces]
    found = [tuple(places[node.name] for node in own) for own in with_one_final(whole, reads)[0]]
    home = {place: n for n, piece in enumerate(found) for place in piece}
    needs = [
        {home[places[t]] for place in piece for t in reads[part[place].name] if t in places} - {n}
        for n, piece in enumerate(found)
    ]
    return tuple(found[n] for n in execution_order(needs, [piece[-1] for piece in found]))
