"""States that are updated in place: a kernel for each update, which stores rows into the memory of the state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tilec.artifact import digest_bytes
from tilec.ir.expr import Access, Const, Expr, TensorExpr, Var, accesses, rename_tensors, substitute
from tilec.ir.graph import Node, Tensor, Update
from tilec.ir.places import kept_inside
from tilec.ir.plan import Cost, Group, Plan, Variant
from tilec.ir.program import Buffer, Place, Program
from tilec.ir.text import text_of
from tilec.ir.types import tensor_bytes
from tilec.lower.lowering import lower

ROWS = 64
"""Rows that a task stores at most."""


@dataclass(frozen=True, slots=True)
class StateUpdate:
    """The update of the state `present` behind segment `segment`: its kernel, and the tensors that it is passed."""

    group: Group
    program: Program
    tensors: tuple[str, ...]
    segment: int


def state_updates(plan: Plan) -> Iterator[StateUpdate]:
    """The updates of a plan, in the order in which they run."""
    for segment, call in enumerate(plan.calls):
        for update, present in call.updated:
            yield _update(plan, update, present, segment)


def _update(plan: Plan, update: Update, present: str, segment: int) -> StateUpdate:
    rows, state = plan.tensors[update.rows], plan.tensors[present]
    read = tuple(dict.fromkeys(access.tensor for index in update.place for access in accesses(index)))
    names = {update.rows: "rows", present: "state", **{tensor: f"t{n}" for n, tensor in enumerate(read)}}
    expr = TensorExpr(present, update.iterators, (), rows.shape, Access(update.rows, tuple(map(Var, update.iterators))))
    kernel = f"update_{_digest(plan, update, names)}"
    variant = _variant(plan, expr, update.rows, kernel)
    size = tensor_bytes(rows.ttype, rows.shape)
    lowest = plan.levels[0].name
    node = Node(expr, "update")
    group = Group(present, (node,), (present,), {}, (variant,), Cost({lowest: size}, {lowest: size}, {}))
    stored = replace(plan, tensors={**plan.tensors, present: rows})
    program = lower(group, variant, stored)
    given, target = program.parameters
    further = tuple(_whole(name, plan.tensors[name], target.level) for name in read)
    inside = tuple(map(kept_inside, update.place, state.shape))
    placed = replace(target, place=Place(state.shape, update.iterators, inside))
    return StateUpdate(
        group,
        replace(program, parameters=(given, *further, placed)),
        (update.rows, *read, present),
        segment,
    )


def _variant(plan: Plan, expr: TensorExpr, rows: str, kernel: str) -> Variant:
    """Tasks of some rows, each a run of whole rows of the innermost dimension, which go by no level between the highest
    and the lowest."""
    core = next((level.name for level in plan.levels[1:] if level.units > 1), plan.levels[1].name)
    levels = tuple(dict.fromkeys((plan.levels[0].name, core, plan.levels[-1].name)))
    *outer, _ = expr.spatial or ("",)
    tiles = dict.fromkeys(outer, 1)
    tasks = {**tiles, outer[-1]: ROWS} if len(outer) > 1 else tiles
    by_level = {core: {expr.tensor: tasks}, plan.levels[-1].name: {expr.tensor: tiles}} if outer else {}
    return Variant(Const(True), levels, by_level, {}, kernel, loads={rows: levels[-1:], expr.tensor: ()})


def _whole(name: str, tensor: Tensor, level: str) -> Buffer:
    shape = tensor.shape
    return Buffer(name, name, level, (Const(0),) * len(shape), shape, shape, tensor.ttype)


def _digest(plan: Plan, update: Update, names: dict[str, str]) -> str:
    """What two updates that share a kernel have in common."""
    iterators: dict[str, Expr] = {name: Var(f"i{n}") for n, name in enumerate(update.iterators)}
    index = [text_of(rename_tensors(substitute(each, iterators), names)) for each in update.place]
    shapes = [repr(plan.tensors[name]) for name in names]
    return digest_bytes("\n".join((*index, *shapes, repr(plan.levels))).encode())[:12]
