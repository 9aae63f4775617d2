"""An order in which groups of several problems can run."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.ir.expr import operands
from tilec.ir.graph import Node
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.graph_passes.fuse_registers import execution_order
from tilec.scheduler.state import Members


def execution_order_of(groups: Sequence[tuple[FusionProblem, Members]]) -> list[int]:
    """An order in which groups can run, that of their parts where it is free.

    Raises ValueError where groups wait for each other.
    """
    pieces = [[node for n in members for node in problem.parts[n]] for problem, members in groups]
    place = {node.name: i for i, node in enumerate(groups[0][0].graph.nodes)} if groups else {}
    return execution_order(needs_of(pieces), [place.get(piece[-1].name, len(place)) for piece in pieces])


def needs_of(pieces: Sequence[Sequence[Node]]) -> list[set[int]]:
    """For every set of nodes the others that it reads."""
    home = {node.name: number for number, piece in enumerate(pieces) for node in piece}
    return [
        {home[t] for node in piece for t in operands(node.expr) if t in home} - {number}
        for number, piece in enumerate(pieces)
    ]
