"""Lowering of a group's plan to a tile program."""

from __future__ import annotations

from tilec.ir.equal_sizes import group_where, plan_where
from tilec.ir.expr import Const, operands
from tilec.ir.plan import Group, Plan, Variant
from tilec.ir.program import Buffer, Program
from tilec.lower.checks.check_plan import problems
from tilec.lower.checks.plan_errors import PlanError
from tilec.lower.emit import statements
from tilec.lower.hoist import hoisted
from tilec.lower.inline_positions import inline_positions
from tilec.lower.lowering_context import Box, LoweringContext, lowering_context
from tilec.lower.places import with_places_and_barriers
from tilec.lower.tile_request import RequestTarget, TileRequest
from tilec.lower.waits import with_waits
from tilec.lower.windows import window_of


def lower(group: Group, variant: Variant, plan: Plan) -> Program:
    """The tile program of a group under one of its variants.

    Its parameters are the tensors that the group reads from outside, in order of first use, then its outputs. Raises
    PlanError with a code of `REASONS` for a plan that is not legal.
    """
    group, plan = group_where(group, variant.guard), plan_where(plan, variant.guard)
    refused = problems(group, variant, plan)
    if refused:
        raise PlanError(refused[0], group.name)
    s = lowering_context(group, variant, plan)
    part = tuple(s.nodes)
    inputs = dict.fromkeys(t for expr in s.nodes.values() for t in operands(expr) if t not in s.nodes)
    parameters = {name: _parameter(s, name) for name in (*inputs, *s.outputs)}
    box: Box = {i: (Const(0), extent) for i, extent in s.nodes[part[-1]].domain.items()}
    task = TileRequest(
        part=part,
        level=0,
        box=box,
        targets={name: RequestTarget(parameters[name], window_of(parameters[name])) for name in s.outputs},
        sources={(name, t): parameters[t] for name in part for t in s.operands[name] if t in inputs},
    )
    read = {parameters[name].name for name in inputs}
    body = with_waits(hoisted(inline_positions(s.sizes, statements(s, task)), s.levels), read)
    return Program(
        name=variant.kernel,
        levels=s.levels,
        symbols=plan.symbols,
        parameters=tuple(parameters.values()),
        outputs=s.outputs,
        body=with_places_and_barriers(body, parameters.values(), s.levels),
    )


def _parameter(s: LoweringContext, tensor: str) -> Buffer:
    shape = s.shapes[tensor]
    layout = s.variant.layouts.get(s.levels[0].name, {}).get(tensor, ())
    return Buffer(
        name=tensor,
        tensor=tensor,
        level=s.levels[0].name,
        lo=(Const(0),) * len(shape),
        hi=shape,
        shape=shape,
        ttype=s.tensors[tensor].ttype,
        layout=layout,
    )
