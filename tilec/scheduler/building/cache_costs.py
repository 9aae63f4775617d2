"""Predicted traffic of the caches that hold no tiles: of every group in the order of the plan, and of unfused nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tilec.ir.canonical_group import tensor_names
from tilec.ir.expr import Const, Expr, constant_value, operands
from tilec.ir.loop_steps import loop_steps
from tilec.ir.plan import Cost, Group, Plan
from tilec.ir.program import Program
from tilec.ir.traffic import Traffic
from tilec.ir.types import tensor_bytes
from tilec.lower.counts.cache_traffic import CacheLevel, Touched, cache_levels, cache_traffic
from tilec.lower.counts.retention import Run, traffic_of_runs


def with_cache_costs(plan: Plan, programs: Mapping[str, Program]) -> Plan:
    """The plan with the traffic of its caches in the costs of its groups, predicted on the `programs` of its kernels,
    and the traffic of unfused nodes where the lowest pair of levels ends in a cache. All sizes are bound."""
    tiled = [name for group in plan.groups for variant in group.variants for name in variant.levels]
    caches = cache_levels(plan.levels, tiled)
    if not caches:
        return plan
    predicted: dict[str, list[Traffic]] = {}
    unfused: dict[str, Expr] = {}
    for cache in caches:
        runs, leaving = _runs(plan, programs, cache), _leaving(plan)
        predicted[cache.name] = traffic_of_runs(runs, cache, leaving)
        if cache.name == plan.levels[1].name:
            groups_and_runs = list(zip(plan.groups, runs, strict=True))
            apart = [(group, one) for group, run in groups_and_runs for one in _apart(run, group, plan)]
            moved = traffic_of_runs([one for _, one in apart], cache, leaving)
            steps = loop_steps(plan)
            times = (constant_value(steps.get(group.name, 1)) or 0 for group, _ in apart)
            unfused[cache.name] = Const(sum(n * (of.read + of.written) for n, of in zip(times, moved, strict=True)))
    groups = [
        replace(group, cost=_with_caches(group.cost, plan, {name: of[n] for name, of in predicted.items()}))
        for n, group in enumerate(plan.groups)
    ]
    return replace(plan, groups=tuple(groups), unfused={**unfused, **plan.unfused})


def _with_caches(cost: Cost, plan: Plan, predicted: Mapping[str, Traffic]) -> Cost:
    """The cost with the traffic of caches, levels lowest first."""
    order = [level.name for level in plan.levels]
    read = {**cost.read, **{name: Const(each.read) for name, each in predicted.items()}}
    written = {**cost.written, **{name: Const(each.written) for name, each in predicted.items()}}
    return replace(
        cost,
        read={name: read[name] for name in sorted(read, key=order.index)},
        written={name: written[name] for name in sorted(written, key=order.index)},
    )


def _runs(plan: Plan, programs: Mapping[str, Program], cache: CacheLevel) -> list[Run]:
    """The groups in order, in their own names; kernels are looked at once."""
    by_kernel: dict[str, tuple[Group, Mapping[str, Touched]]] = {}
    runs: list[Run] = []
    for group in plan.groups:
        variant = group.variants[0]
        if variant.kernel not in by_kernel:
            by_kernel[variant.kernel] = group, cache_traffic(programs[variant.kernel], cache)
        first, touched = by_kernel[variant.kernel]
        names = dict(zip(tensor_names(first.nodes), tensor_names(group.nodes), strict=True))
        runs.append(Run(group.name, {names[t]: each for t, each in touched.items() if t in names}, variant.streamed))
    return runs


def _leaving(plan: Plan) -> frozenset[str]:
    """Tensors that are read after the last group, or by others than groups."""
    ports = (*plan.outputs, *(port for call in plan.calls for port in call.inputs))
    return frozenset(port.tensor for port in ports)


def _apart(run: Run, group: Group, plan: Plan) -> Iterator[Run]:
    """A run for every node: what it reads from outside as the group does, at its first reader, and else whole; what
    stays inside the group is stored and read whole."""
    if len(group.nodes) == 1:
        yield run
        return
    seen: set[str] = set()
    for node in group.nodes:
        names = (*operands(node.expr), node.name)
        touched = {tensor: run.touched[tensor] for tensor in names if tensor in run.touched and tensor not in seen}
        for tensor in operands(node.expr):
            if tensor not in touched:
                whole = _size(tensor, plan)
                touched[tensor] = Touched(whole, 0.0, whole)
        if node.name not in group.outputs:
            whole = _size(node.name, plan)
            touched[node.name] = Touched(0.0, whole, whole)
        seen.update(touched)
        yield Run(node.name, touched, run.streamed)


def _size(tensor: str, plan: Plan) -> float:
    size = tensor_bytes(plan.tensors[tensor].ttype, plan.tensors[tensor].shape)
    assert isinstance(size, Const)
    return float(size.value)
