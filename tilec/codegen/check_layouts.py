"""Tensors that groups hand to each other lie in one order of dimensions; those of the model lie row-major."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tilec.ir.call_segments import call_inputs, call_results
from tilec.ir.plan import Plan, Refusal
from tilec.ir.program import Program
from tilec.lower.checks.plan_errors import PlanError


def check_layouts(
    plan: Plan, launches: Iterable[tuple[str, str, tuple[str, ...]]], programs: Mapping[str, Program]
) -> None:
    """Raise PlanError `layout` where a group stores or reads a tensor in another order than the others do.

    `launches` are (group, kernel, the tensors that are passed as its parameters), in execution order.
    """
    outside = {port.tensor for port in (*plan.inputs, *plan.outputs)} | set(plan.constants)
    outside |= {node.name for node in plan.prepared}
    outside |= {
        port.tensor for port in (*call_inputs(plan.calls, plan.tensors), *call_results(plan.calls, plan.tensors))
    }
    known = {
        tensor: ("the model", tuple(range(len(plan.tensors[tensor].shape))))
        for tensor in sorted(outside & plan.tensors.keys())
    }
    for group, kernel, tensors in launches:
        for tensor, buffer in zip(tensors, programs[kernel].parameters, strict=True):
            layout = buffer.layout or tuple(range(len(buffer.lo)))
            other, order = known.setdefault(tensor, (group, layout))
            if order != layout:
                numbers = {"order": _text(layout), "other": other, "expected": _text(order)}
                raise PlanError(Refusal(tensor, "layout", {"level": buffer.level, **numbers}), group)


def _text(order: tuple[int, ...]) -> str:
    return " ".join(map(str, order))
