"""A plan of one or a few groups of a larger plan, to be built and measured by itself (Welder, 3.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilec.ir.expr import operands
from tilec.ir.graph import Port, Tensor
from tilec.ir.plan import Group, Plan, PlanLevel


def subplan(
    groups: Sequence[Group],
    outputs: Sequence[str],
    tensors: Mapping[str, Tensor],
    levels: tuple[PlanLevel, ...],
    device: str,
) -> Plan:
    """The plan of `groups`, in execution order, which `outputs` leave; the tensors they read, weights included, are
    inputs.

    Costs are the groups' own.
    """
    nodes = [node for group in groups for node in group.nodes]
    produced = {node.name for node in nodes}
    inputs = dict.fromkeys(t for node in nodes for t in operands(node.expr) if t not in produced)
    return Plan(
        name=groups[-1].name,
        device=device,
        levels=levels,
        symbols=(),
        inputs=tuple(Port(name, name) for name in inputs),
        outputs=tuple(Port(name, name) for name in outputs),
        tensors={name: tensors[name] for name in sorted({*inputs, *produced})},
        constants={},
        prepared=(),
        groups=tuple(groups),
        refusals=(),
    )
