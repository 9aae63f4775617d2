"""Recurrences, the common part of RNN, GRU and LSTM: directions, lengths, products and outputs.

States have the shape [d, b, h]: direction, batch, hidden unit. A bidirectional operator runs both directions in one
expression: at step s the first is at time s, the second at time T - 1 - s. Where sequences have lengths of their own, a
state is unchanged at times behind the end of its sequence; a backward state thus keeps its initial value until the
sequence's last time. Few steps are unrolled; more, or a number that depends on sizes, are a serial loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilec.importer.builder import Axis
from tilec.importer.compose import inner_op
from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ops.movement import MAX_PARTS, concatenated, transposed
from tilec.importer.ops.quantized import quantised_over_ranges
from tilec.importer.serial_loop import BodyResults, serial_loop
from tilec.importer.shapes import ShapeError, shape_text
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Const, Expr, constant_value

MAX_EXPRESSIONS = 128
"""Maximal number of tensor expressions that a recurrence is unrolled to; one of more steps is a loop. Scheduling takes
about 0.2 s for each: no two time steps are alike, for each reads other elements of the input."""

DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}


@dataclass(frozen=True, slots=True, eq=False)
class WeightScale:
    """Scale and zero point of a weight of small integers: one for each direction `[d]`, or each row `[d, g]`."""

    scale: Value
    zero: Value

    def of(self, value: Value, direction: Expr, row: Expr) -> Expr:
        """The scale or zero point of a row."""
        return value.access([direction, row][: value.rank])


@dataclass(frozen=True, slots=True, eq=False)
class Recurrence:
    """A recurrent operator's operands and sizes; `lengths` is None where every sequence has all steps. `unrolled` is
    the number of steps that are expressions of their own, None for a loop over `steps`.

    With `scales` (of W and R) the weights are integers, and their other factors are quantised before each product.
    """

    op: Op
    x: Value
    weight: Value
    recurrent: Value
    bias: Value | None
    lengths: Value | None
    steps: Expr
    unrolled: int | None
    backward: bool
    scales: tuple[WeightScale, WeightScale] | None = None

    @property
    def by_batch(self) -> bool:
        """Whether the batch is the outermost dimension (`layout` 1)."""
        return bool(self.op.integer("layout"))

    @property
    def shape(self) -> tuple[Expr, Expr, Expr]:
        """The shape of a state."""
        return self.weight.shape[0], self.x.shape[0 if self.by_batch else 1], self.recurrent.shape[2]

    def axes(self) -> tuple[Axis, ...]:
        """Iterators over a state."""
        return self.op.builder.iterators("dbh", self.shape)

    def time(self, step: int, direction: Expr) -> Expr:
        """The time of a direction at a step that is unrolled."""
        if self.shape[0] == Const(1):
            text = "steps - 1 - s" if self.backward else "s"
            return simplify(formula(text, s=step, steps=self.steps))
        return simplify(formula("s + d * (steps - 1 - 2 * s)", s=step, d=direction, steps=self.steps))


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A step while its expressions are made: a suffix of their names; the input's projection, by direction, batch and
    row; whether the time lies before the end of the sequence, by direction and batch (None: always)."""

    label: str
    source: Callable[[Expr, Expr, Expr], Expr]
    running: Callable[[Expr, Expr], Expr] | None

    def masked(self, axes: Sequence[Axis], new: Expr, old: Value) -> Expr:
        """The state after the step: the old one at times behind the end of the sequence."""
        if self.running is None:
            return new
        d, b, _ = index = [a.var for a in axes]
        return formula("where(running, new, old)", running=self.running(d, b), new=new, old=old.at(index))


Cell = Callable[[Step, Sequence[Value]], Sequence[Value]]
"""The states after a step from those before it, the hidden state first."""


def run_cells(r: Recurrence, source: Value, first: Sequence[Value], cell: Cell) -> tuple[Value, Sequence[Value]]:
    """The output Y and the states after the last step, from the projection of the input and the initial states."""
    if r.unrolled is None:
        return _looped(r, source, first, cell)
    states, hidden = first, list[Value]()
    for number in range(r.unrolled):
        states = cell(_unrolled_step(r, source, number), states)
        hidden.append(states[0])
    return all_states(r, r.unrolled, hidden), states


def _unrolled_step(r: Recurrence, source: Value, number: int) -> Step:
    def element(d: Expr, b: Expr, row: Expr) -> Expr:
        return source.access([d, r.time(number, d), b, row])

    def running(d: Expr, b: Expr) -> Expr:
        assert r.lengths is not None
        return formula("time < i64(n)", time=r.time(number, d), n=r.lengths.access([b]))

    return Step(str(number), element, None if r.lengths is None else running)


def _looped(r: Recurrence, source: Value, first: Sequence[Value], cell: Cell) -> tuple[Value, Sequence[Value]]:
    """The same as a loop, whose step takes its part of the projection in the order of steps."""
    d, b, _ = r.shape
    s, d_, b_, g = axes = r.op.builder.iterators("sdbg", (r.steps, d, b, source.shape[3]))
    body = _by_direction(r, s.var, d_.var, lambda time: source.access([d_.var, time, b_.var, g.var]))
    sequences = [r.op.emit(axes, body, source.ttype, part="steps")]
    if r.lengths is not None:
        count = r.lengths.access([b_.var])
        running = _by_direction(r, s.var, d_.var, lambda time: formula("time < i64(n)", time=time, n=count))
        sequences.append(r.op.emit(axes[:3], running, "bool", part="running"))
    reads = [value for value in r.op.inputs if value is not None]

    def step(states: Sequence[Value], taken: Sequence[Value]) -> BodyResults:
        running = None if r.lengths is None else lambda d, b: taken[1].access([d, b])
        states = cell(Step("", lambda *index: taken[0].access(index), running), states)
        return BodyResults(states, states[:1])

    last, stacks = serial_loop(r.op, first, sequences, reads, step)
    return _loop_states(r, stacks[0]), last


def recurrence(op: Op, gates: int, expressions: int) -> Recurrence:
    """The checked operands of an operator with this number of gates and of expressions a step.

    A loop is made of more than `MAX_EXPRESSIONS`, and of an unknown number of steps.
    """
    x, weight, recurrent = op.value(0), op.value(1), op.value(2)
    direction = op.text("direction", "forward")
    if direction not in DIRECTIONS:
        raise op.invalid(f"direction is {direction!r}", f"It must be one of {', '.join(DIRECTIONS)}.")
    if x.rank != 3 or weight.rank != 3 or recurrent.rank != 3:
        shapes = ", ".join(shape_text(v.shape) for v in (x, weight, recurrent))
        raise ShapeError(f"X, W and R of shapes {shapes} are not all of rank 3")
    directions, hidden = Const(DIRECTIONS[direction]), recurrent.shape[2]
    rows = simplify(formula("g * h", g=gates, h=hidden))
    require_shape(op, "W", weight, (directions, rows, x.shape[2]))
    require_shape(op, "R", recurrent, (directions, rows, hidden))
    if op.optional(3) is not None:
        require_shape(op, "B", op.value(3), (directions, simplify(formula("r * 2", r=rows))))
    extent = x.shape[1 if op.integer("layout") else 0]
    steps = constant_value(extent)
    unrolled = steps if steps is not None and steps * expressions <= MAX_EXPRESSIONS else None
    lengths = op.optional(4)
    known = None if lengths is None else lengths.known()
    if known is not None and all(n == extent for n in known):
        lengths = None
    result = Recurrence(op, x, weight, recurrent, op.optional(3), lengths, extent, unrolled, direction == "reverse")
    if lengths is not None:
        require_shape(op, "sequence_lens", lengths, result.shape[1:2])
    return result


def require_shape(op: Op, name: str, value: Value, shape: Sequence[Expr]) -> None:
    """Raise ShapeError unless an operand has this shape."""
    described = f"{name} {shape_text(value.shape)} for {shape_text(shape)}"
    if value.rank != len(shape):
        raise ShapeError(f"{described}: the ranks differ")
    for extent, wanted in zip(value.shape, shape, strict=True):
        op.require_same(extent, wanted, described)


def initial(r: Recurrence, position: int, part: str) -> Value:
    """The initial state from an input; zeros where it is absent. A loop carries values of one shape, so that a state of
    extents that are only assumed to be the operator's own is copied."""
    given = r.op.optional(position)
    if given is None:
        return r.op.full(r.shape, 0.0, r.x.ttype, part)
    d, b, h = r.shape
    require_shape(r.op, part, given, (b, d, h) if r.by_batch else (d, b, h))
    state = transposed(r.op, given, (1, 0, 2), part) if r.by_batch else given
    if r.unrolled is not None or state.shape == r.shape:
        return state
    axes = r.axes()
    return r.op.emit(axes, state.at([axis.var for axis in axes]), state.ttype, part=f"{part}_copy")


def projected(r: Recurrence, apart: Expr | None = None) -> Value:
    """`P[d,t,b,g] = sum(i, X[t,b,i] * W[d,g,i]) + WB[d,g] + RB[d,g]` of all times and gates at once.

    From row `apart` on the second bias is left out, for a cell that adds it elsewhere.
    """
    rows, width = r.weight.shape[1:]
    sizes = (r.shape[0], r.steps, r.shape[1], rows, width)
    d, t, b, g, i = axes = r.op.builder.iterators("dtbgi", sizes)
    index = [b.var, t.var, i.var] if r.by_batch else [t.var, b.var, i.var]
    row = (d.var, g.var, i.var)
    total = _product(r, axes, (r.x, index), (r.weight, row), 0, "input" if r.bias is None else "input_product")
    if r.bias is None:
        return total
    text = "w + r" if apart is None else "where(g < apart, w + r, w)"
    operands = {"w": r.bias.access([d.var, g.var]), "r": recurrent_bias(r, d.var, g.var), "g": g.var}
    bias = r.op.emit([d, g], formula(text, **operands, apart=0 if apart is None else apart), r.x.ttype, part="bias")
    body = formula("x + b", x=total.access([a.var for a in axes[:4]]), b=bias.at([d.var, g.var]))
    return r.op.emit(axes[:4], body, r.x.ttype, part="input")


def recurrent_bias(r: Recurrence, direction: Expr, row: Expr) -> Expr:
    """The bias of the recurrent product; 0 where there is none."""
    if r.bias is None:
        return Const(0.0)
    return r.bias.access([direction, formula("rows + g", rows=r.weight.shape[1], g=row)])


def fed_back(r: Recurrence, state: Value, first: int, gates: int, part: str) -> Value | None:
    """`Z[d,b,g] = sum(k, H[d,b,k] * R[d,g,k])` for gates from `first` on; None for a zero state."""
    if state.literal == Const(0.0):
        return None
    rows = simplify(formula("n * h", n=gates, h=r.shape[2]))
    d, b, g, k = axes = r.op.builder.iterators("dbgk", (*r.shape[:2], rows, r.shape[2]))
    row = simplify(formula("first * h + g", first=first, h=r.shape[2], g=g.var))
    return _product(r, axes, (state, (d.var, b.var, k.var)), (r.recurrent, (d.var, row, k.var)), 1, part)


def _product(
    r: Recurrence,
    axes: Sequence[Axis],
    left: tuple[Value, Sequence[Expr]],
    right: tuple[Value, Sequence[Expr]],
    weight: int,
    part: str,
) -> Value:
    """The sum of products of two elements over the last axis; `weight` is 0 for W, 1 for R.

    With weights of small integers the other factor is quantised to u8 over its range, a state over that of each
    direction, and the sum is exact in i32.
    """
    *spatial, inner = axes
    (x, index), (w, row) = left, right
    if r.scales is None:
        return r.op.emit(spatial, formula("x * w", x=x.access(index), w=w.access(row)), r.x.ttype, [inner], part=part)
    scale = r.scales[weight]
    kept = 1 if weight == 1 and r.shape[0] != Const(1) else 0
    quantiser = inner_op(r.op, "DynamicQuantizeLinear", x, part=f"{part}_factor", results=3)
    values, step, zero = quantised_over_ranges(quantiser, kept)
    shift = {"z": zero.access(index[:kept]), "v": scale.of(scale.zero, *row[:2])}
    body = formula("(i32(x) - i32(z)) * (i32(w) - i32(v))", x=values.access(index), w=w.access(row), **shift)
    total = r.op.emit(spatial, body, "i32", [inner], part=f"{part}_sum")
    factors = {"s": step.access(index[:kept]), "t": scale.of(scale.scale, *row[:2])}
    body = formula("f32(x) * (s * t)", x=total.access([axis.var for axis in spatial]), **factors)
    return r.op.emit(spatial, body, "f32", part=part)


def all_states(r: Recurrence, steps: int, states: Sequence[Value]) -> Value:
    """The output Y: the states of all times, 0 behind the end of a sequence."""
    parts = [
        _states(r, states, first, min(first + MAX_PARTS, steps), "" if steps <= MAX_PARTS else f"times{first}")
        for first in range(0, steps, MAX_PARTS)
    ]
    if not parts:
        d, b, h = r.shape
        return r.op.full((b, Const(0), d, h) if r.by_batch else (Const(0), d, b, h), 0.0, r.x.ttype)
    return concatenated(r.op, parts, 1 if r.by_batch else 0)


def _states(r: Recurrence, states: Sequence[Value], first: int, last: int, part: str) -> Value:
    t, d, b, h = r.op.builder.iterators("tdbh", (Const(last - first), *r.shape))
    index = (d.var, b.var, h.var)
    body: Expr | None = None
    for time in reversed(range(first, last)):
        ahead, behind = states[time].at(index), states[-1 - time].at(index)
        if r.shape[0] == Const(1):
            element = behind if r.backward else ahead
        else:
            element = formula("where(d == 0, ahead, behind)", d=d.var, ahead=ahead, behind=behind)
        body = element if body is None else formula("where(t == n, x, y)", t=t.var, n=time - first, x=element, y=body)
    assert body is not None
    return _output(r, (t, d, b, h), formula("t + first", t=t.var, first=first), body, part)


def _loop_states(r: Recurrence, stack: Value) -> Value:
    """The output Y from the states in the order of steps: that of times, or the opposite one."""
    t, d, b, h = axes = r.op.builder.iterators("tdbh", (r.steps, *r.shape))
    body = _by_direction(r, t.var, d.var, lambda step: stack.access([step, d.var, b.var, h.var]))
    return _output(r, axes, t.var, body)


def _by_direction(r: Recurrence, step: Expr, direction: Expr, element: Callable[[Expr], Expr]) -> Expr:
    """An element at the time of a step, or at the step of a time, where both are iterators."""
    last = simplify(formula("steps - 1 - s", s=step, steps=r.steps))
    if r.shape[0] == Const(1):
        return element(last if r.backward else step)
    return formula("where(d == 0, x, y)", d=direction, x=element(step), y=element(last))


def _output(r: Recurrence, axes: Sequence[Axis], time: Expr, body: Expr, part: str = "") -> Value:
    """A part of Y from states at a time, 0 behind the end of a sequence."""
    t, d, b, h = axes
    if r.lengths is not None:
        body = formula("where(t < i64(n), x, 0.0)", t=time, n=r.lengths.access([b.var]), x=body)
    return r.op.emit([b, t, d, h] if r.by_batch else [t, d, b, h], body, r.x.ttype, part=part)


def last_state(r: Recurrence, state: Value, output: int) -> Value | None:
    """The state after a sequence's last step, if it is an output; 0 for a sequence of no steps, as in the reference."""
    if not r.op.wants(output):
        return None
    d, b, h = axes = r.axes()
    body = state.at([a.var for a in axes])
    if r.lengths is not None:
        body = formula("where(n > 0, x, 0.0)", n=r.lengths.access([b.var]), x=body)
    return r.op.emit([b, d, h] if r.by_batch else axes, body, r.x.ttype, output=output)
