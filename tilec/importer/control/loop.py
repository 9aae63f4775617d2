"""Loop: unrolled by its trip count, or a serial loop where that depends on sizes; it has to be known from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilec.importer.control.body import NO_NAMES, Body
from tilec.importer.control.counting import Condition, counters, entered, iteration
from tilec.importer.control.region import Region
from tilec.importer.control.repeat import repeated, repeats
from tilec.importer.control.unroll import Budget, known, require_same_kind, stacked, zeros
from tilec.importer.element_types import ELEMENT_TYPES
from tilec.importer.formula import formula
from tilec.importer.named_values import NamedValue
from tilec.importer.ops.movement import reshaped
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Const, Expr, constant_value


def loop(region: Region) -> list[NamedValue]:
    """The outputs of `Loop`: the carried values after the last iteration, then the stacked scan outputs.

    Raises UnsupportedError when the trip count is computed from the model's inputs or too large.
    """
    limit = region.optional(0)
    condition = region.optional(1)
    carried = [region.optional(position) for position in range(2, len(region.node.input))]
    body = Body(region, "body", region.path)
    gathered = max(0, len(body.graph.output) - 1 - len(carried))
    body.expect(2 + len(carried), 1 + len(carried) + gathered, f"the loop carries {len(carried)} values")
    if len(region.node.output) > len(carried) + gathered:
        raise region.invalid(f"{len(region.node.output)} outputs, the body gives {len(carried) + gathered}")
    count = None if limit is None else _count(region, region.tensor(0))
    if count is not None and repeats(body, count) and _goes_on(region, body, count, condition):
        return _repeated_loop(region, body, count, carried)
    trips = None if limit is None else max(0, region.scalar(region.tensor(0), "the trip count"))
    budget = Budget(region)
    rows: list[list[NamedValue]] = []
    while (trips is None or len(rows) < trips) and (condition is None or _holds(region, condition)):
        done = len(rows)
        names = _carried_names(region, body, len(carried)) if done + 1 == trips else NO_NAMES
        iteration, true = _given(region, body, str(done), done, True)
        results = body.call([iteration, true, *carried], str(done), names)
        condition = results[0]
        for number, (before, after) in enumerate(zip(carried, results[1:], strict=False)):
            require_same_kind(region, f"carried value {number}", before, after)
        carried = results[1 : 1 + len(carried)]
        rows.append(results[1 + len(carried) :])
        budget.spend(len(rows), trips if condition is true or not body.varies(0) else None)
    if not rows:
        return [*carried, *_nothing(region, body, carried)]
    return [*carried, *_stacks(region, rows, len(carried))]


def _count(region: Region, limit: Value) -> Expr | None:
    """The trip count as an expression of sizes; None where it is not known from them."""
    if limit.form is not None and not limit.rank:
        return limit.form
    elements = region.translator.builder.known(limit)
    return elements[0] if elements is not None and len(elements) == 1 else None


def _goes_on(region: Region, body: Body, count: Expr, condition: NamedValue) -> bool:
    """Whether the trip count alone may end a loop. What the body computes is looked at where nothing else is left, for
    a count that is a size."""
    begins = condition is None or (isinstance(condition, Value) and _holds_at_first(region, count, condition))
    return begins and (_keeps_condition(body) or constant_value(count) is None)


def _holds_at_first(region: Region, count: Expr, condition: Value) -> bool:
    """Whether a loop of one iteration or more is entered."""
    elements = condition.known()
    if elements is not None and all(isinstance(element, Const) for element in elements):
        return _holds(region, condition)
    return Condition(region.op.builder, region.op.sizes, count, {}, entered(count)).holds(condition)


def _keeps_condition(body: Body) -> bool:
    """Whether every iteration hands its condition on, or has one that depends on no iteration."""
    return _hands_on(body, 0, 1) or not body.varies(0)


def _hands_on(body: Body, output: int, argument: int) -> bool:
    """Whether an output of the body is an argument as it is."""
    same = {node.output[0]: node.input[0] for node in body.graph.node if node.op_type == "Identity"}
    name = body.graph.output[output].name
    while name in same:
        name = same[name]
    return bool(name == body.graph.input[argument].name)


def _repeated_loop(region: Region, body: Body, count: Expr, carried: Sequence[NamedValue]) -> list[NamedValue]:
    """The outputs of `Loop` from a serial loop, whose condition has to hold in every iteration. What every iteration
    hands on as it is is read from around the loop."""
    values = [value for value in carried if isinstance(value, Value)]
    if len(values) < len(carried):
        raise region.unsupported("a carried value is no tensor", "Only tensors are carried through a loop.")
    moving = [number for number in range(len(values)) if not _hands_on(body, 1 + number, 2 + number)]
    trips = simplify(formula("maximum(n, 0)", n=count))
    numbers = region.op.indices(trips, 0, 1)
    ranks = [len(info.type.tensor_type.shape.dim) for info in body.graph.input[:2]]

    def call(now: Sequence[Value], taken: Sequence[Value]) -> Sequence[NamedValue]:
        number = taken[0] if not ranks[0] else reshaped(region.op, taken[0], (Const(1),) * ranks[0])
        given = [*values]
        for place, value in zip(moving, now, strict=True):
            given[place] = value
        results = body.call([number, known(region, "step/condition", True, ranks[1]), *given], "step")
        following = [results[1 + place] for place in moving]
        first = [values[place] for place in moving]
        if not _always_holds(region, count, results[0], taken[0], first, now, following):
            reason = "the condition of a loop whose trip count depends on sizes is computed in its body"
            raise region.unsupported(reason, "Bind the sizes with --shape SYMBOL=SIZE.")
        return [*following, *results[1 + len(values) :]]

    still = [value for number, value in enumerate(values) if number not in moving]
    last, stacks = repeated(region, body, [values[place] for place in moving], [numbers], call, still)
    outputs: list[NamedValue] = [*values]
    for place, value in zip(moving, last, strict=True):
        outputs[place] = value
    return [*outputs, *stacks]


def _always_holds(
    region: Region,
    count: Expr,
    held: NamedValue,
    number: Value,
    first: Sequence[Value],
    before: Sequence[Value],
    after: Sequence[NamedValue],
) -> bool:
    """Whether the condition of every iteration that another one may follow is true."""
    if not isinstance(held, Value):
        return False
    if held.literal == Const(True):
        return True
    builder, sizes = region.op.builder, region.op.sizes
    outside = Condition(builder, sizes, count, {}, {})
    numbers = {number.name: iteration(count), **counters(outside, first, before, after)}
    return Condition(builder, sizes, count, numbers, {}).holds(held)


def _given(region: Region, body: Body, step: str, number: int, holds: bool) -> list[Value]:
    """Arguments of an iteration: its number and the condition; of rank 1 where the body declares that."""
    ranks = [len(info.type.tensor_type.shape.dim) for info in body.graph.input[:2]]
    parts = zip(("iteration", "condition"), (number, holds), ranks, strict=True)
    return [known(region, f"{step}/{part}", value, rank) for part, value, rank in parts]


def _holds(region: Region, condition: NamedValue) -> bool:
    if not isinstance(condition, Value) or condition.ttype != "bool":
        raise region.invalid("the condition is no bool tensor")
    return bool(region.scalar(condition, "the condition of the loop"))


def _carried_names(region: Region, body: Body, carried: int) -> Mapping[str, str]:
    """The body's names of the carried values -> the node's names."""
    names = [info.name for info in body.graph.output[1 : 1 + carried]]
    return dict(zip(names, region.node.output, strict=False))


def _stacks(region: Region, rows: Sequence[Sequence[NamedValue]], carried: int) -> list[NamedValue]:
    """Scan outputs stacked along a new first dimension; None where nobody reads one."""
    result: list[NamedValue] = []
    for number, column in enumerate(zip(*rows, strict=True)):
        output = carried + number
        parts = [value for value in column if isinstance(value, Value)]
        if len(parts) < len(column):
            raise region.invalid(f"output {1 + output} of the body is no tensor", "Only tensors can be stacked.")
        result.append(stacked(region.op, parts, output=output) if region.op.wants(output) else None)
    return result


def _nothing(region: Region, body: Body, carried: Sequence[NamedValue]) -> list[NamedValue]:
    """Empty stacks of no iterations: a body call that is dropped gives types and shapes that the body does not
    declare."""
    declared = [_declared(info) for info in body.graph.output[1 + len(carried) :]]
    results: Sequence[NamedValue] = ()
    if any(described is None for described in declared):
        results = body.call([*_given(region, body, "never", 0, False), *carried], "never")[1 + len(carried) :]
    stacks: list[NamedValue] = []
    for number, described in enumerate(declared):
        if described is None:
            value = results[number]
            if not isinstance(value, Value):
                raise region.invalid(f"output {1 + len(carried) + number} of the body is no tensor")
            described = (value.shape, value.ttype)
        output = len(carried) + number
        stacks.append(
            zeros(region.op, [Const(0), *described[0]], described[1], output=output)
            if region.op.wants(output)
            else None
        )
    return stacks


def _declared(info: Any) -> tuple[Sequence[Expr], str] | None:
    """Shape and type of an output as declared by the body; None when it leaves something open."""
    tensor = info.type.tensor_type
    ttype = ELEMENT_TYPES.get(tensor.elem_type)
    if ttype is None or not tensor.HasField("shape") or any(not d.HasField("dim_value") for d in tensor.shape.dim):
        return None
    return [Const(d.dim_value) for d in tensor.shape.dim], ttype
