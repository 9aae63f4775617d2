"""Verifier of plans: the tensors that nodes read and groups exchange, so that an edited plan cannot read out of memory.

Tiles, levels and orders are checked where they are lowered, the program by its own verifier.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import prod

import numpy as np

from tilec.ir.evaluate import Points
from tilec.ir.expr import Call, TensorExpr, constant_value, operands, variables, walk
from tilec.ir.graph import Graph, Tensor
from tilec.ir.guarded_reads import GuardedReads
from tilec.ir.plan import Plan
from tilec.ir.text import tensor_text
from tilec.ir.verify.graph import check_graph

MAX_POINTS = 1 << 22
"""Maximal number of points at which a guarded read is followed; the program's verifier samples larger ones."""

KERNEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
"""Valid kernel names: they become names of files and of symbols."""


def check_plan(plan: Plan) -> tuple[str, ...]:
    """Problems of a plan, one sentence each; empty when it is valid. Never raises.

    checks: everything that is checked of a graph; kernels have names that can be files; a group reads only tensors
    available before it runs, prepared nodes only constants; guards keep every read inside its tensor.
    """
    nodes = (*plan.prepared, *(node for group in plan.groups for node in group.nodes))
    graph = Graph(
        plan.name,
        plan.symbols,
        plan.inputs,
        plan.outputs,
        plan.tensors,
        plan.constants,
        nodes,
        plan.files,
        plan.placement,
        plan.calls,
        plan.opaque,
        plan.ranges,
        plan.symbol_ranges,
        plan.constraints,
        scenarios=plan.scenarios,
    )
    problems = list(check_graph(graph))
    if problems:
        return tuple(problems)
    problems += _group_problems(plan)
    if not plan.symbols:
        problems += [problem for node in nodes for problem in _reach_problems(node.expr, plan.tensors)]
    return tuple(problems)


def _group_problems(plan: Plan) -> list[str]:
    problems = []
    constant = set(plan.constants)
    for node in plan.prepared:
        problems += [f"{node.name} is prepared from {t}" for t in operands(node.expr) if t not in constant]
        constant.add(node.name)
    there = constant | {port.tensor for port in plan.inputs}
    there |= {port.tensor for call in plan.calls for port in call.outputs}
    for group in plan.groups:
        inside: set[str] = set()
        for node in group.nodes:
            problems += [
                f"group {group.name} reads {tensor}, which no group before it hands on"
                for tensor in operands(node.expr)
                if tensor not in there and tensor not in inside
            ]
            inside.add(node.name)
        problems += [
            f"group {group.name} hands on {t}, which it does not compute" for t in group.outputs if t not in inside
        ]
        there |= set(group.outputs)
        for variant in group.variants:
            if not KERNEL.fullmatch(variant.kernel):
                problems.append(f"group {group.name} has a kernel called {variant.kernel[:80]!r}")
    problems += _launch_problems(plan)
    wanted = [port.tensor for port in plan.outputs] + [p.tensor for call in plan.calls for p in call.inputs]
    problems += [
        f"{tensor} is wanted, and no group hands it on" for tensor in wanted if tensor not in there | set(plan.opaque)
    ]
    return problems


def _launch_problems(plan: Plan) -> Iterator[str]:
    """Launches of groups that are not there, stand apart, or read each other's results."""
    names = [group.name for group in plan.groups]
    for launch in plan.launches:
        place = names.index(launch.groups[0]) if launch.groups and launch.groups[0] in names else len(names)
        if tuple(names[place : place + len(launch.groups)]) != launch.groups or len(launch.groups) < 2:
            yield f"groups that share a launch stand behind each other: {', '.join(launch.groups)}"
            continue
        members = plan.groups[place : place + len(launch.groups)]
        made = {tensor for group in members for tensor in group.outputs}
        for group in members:
            inside = {node.name for node in group.nodes}
            read = {t for node in group.nodes for t in operands(node.expr)} & made - inside
            if read:
                yield f"group {group.name} reads {min(read)}, which its own launch computes"
    shared = [name for launch in plan.launches for name in launch.groups]
    yield from (f"group {name} is in two launches" for name in sorted({n for n in shared if shared.count(n) > 1}))


def _reach_problems(expr: TensorExpr, tensors: Mapping[str, Tensor]) -> list[str]:
    """Guarded reads that leave their tensor, checked point by point."""
    if not any(isinstance(e, Call) and e.fn == "where" for e in walk(expr.value)):
        return []
    domain = {i: constant_value(extent) or 0 for i, extent in expr.domain.items()}
    used = {i: (0, n) for i, n in domain.items() if i in variables(expr.value)}
    if prod(n for _, n in used.values()) > MAX_POINTS or 0 in domain.values():
        return []
    points = Points(used, {})
    problems = []
    for tensor in operands(expr):
        shape = [constant_value(extent) or 0 for extent in tensors[tensor].shape]
        with np.errstate(all="ignore"):
            safe = GuardedReads(tensor, [[(0, n) for n in shape]], (), shape, points).safe(expr.value)
        if not np.all(safe):
            problems.append(f"{expr.tensor} reads outside of {tensor}: {tensor_text(expr)}")
    return problems
