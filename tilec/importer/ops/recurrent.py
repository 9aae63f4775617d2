"""Unrolled recurrences, the common part of RNN, GRU and LSTM: directions, lengths, products and outputs.

States have the shape [d, b, h]: direction, batch, hidden unit. A bidirectional operator runs both directions in one
expression: at step s the first is at time s, the second at time T - 1 - s. Where sequences have lengths of their own, a
state is unchanged at times behind the end of its sequence; a backward state thus keeps its initial value until the
sequence's last time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilec.importer.builder import Axis
from tilec.importer.compose import every_result
from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ops.movement import MAX_PARTS, concatenated, transposed
from tilec.importer.shapes import ShapeError, shape_text, symbols_of
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Const, Expr, constant_value

MAX_EXPRESSIONS = 128
"""Maximal number of tensor expressions that a recurrence is unrolled to. Scheduling takes about 0.2 s for each: no two
time steps are alike, for each reads other elements of the input."""

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
    """A recurrent operator's operands and sizes; `lengths` is None where every sequence has all steps.

    With `scales` (of W and R) the weights are integers, and their other factors are quantised before each product.
    """

    op: Op
    x: Value
    weight: Value
    recurrent: Value
    bias: Value | None
    lengths: Value | None
    steps: int
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
        """The time of a direction at a step."""
        last = self.steps - 1
        if self.shape[0] == Const(1):
            return Const(last - step if self.backward else step)
        return simplify(formula("s + d * rest", s=step, d=direction, rest=last - 2 * step))

    def masked(self, step: int, axes: Sequence[Axis], new: Expr, old: Value) -> Expr:
        """The state after a step: the old one at times behind the end of the sequence."""
        if self.lengths is None:
            return new
        d, b, _ = index = [a.var for a in axes]
        text = "where(time < i64(n), new, old)"
        return formula(text, time=self.time(step, d), n=self.lengths.access([b]), new=new, old=old.at(index))


def recurrence(op: Op, gates: int, expressions: int) -> Recurrence:
    """The checked operands of an operator with this number of gates and of expressions a step.

    Raises UnsupportedError beyond `MAX_EXPRESSIONS` and for an unknown number of steps.
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
    if steps is None:
        flags = " ".join(f"--shape {symbol}=SIZE" for symbol in symbols_of((extent,)))
        raise op.unsupported("the number of time steps depends on a symbolic size", f"Bind it with {flags}.")
    if steps * expressions > MAX_EXPRESSIONS:
        raise op.unsupported(
            f"unrolling {steps} steps takes {steps * expressions} tensor expressions, the limit is {MAX_EXPRESSIONS}",
            f"Up to {MAX_EXPRESSIONS // expressions} steps are compiled; the fallback runs more.",
        )
    lengths = op.optional(4)
    known = None if lengths is None else lengths.known()
    if known is not None and all(n == Const(steps) for n in known):
        lengths = None
    result = Recurrence(op, x, weight, recurrent, op.optional(3), lengths, steps, direction == "reverse")
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
    """The initial state from an input; zeros where it is absent."""
    given = r.op.optional(position)
    if given is None:
        return r.op.full(r.shape, 0.0, r.x.ttype, part)
    d, b, h = r.shape
    require_shape(r.op, part, given, (b, d, h) if r.by_batch else (d, b, h))
    return transposed(r.op, given, (1, 0, 2), part) if r.by_batch else given


def projected(r: Recurrence, apart: Expr | None = None) -> Value:
    """`P[d,t,b,g] = sum(i, X[t,b,i] * W[d,g,i]) + WB[d,g] + RB[d,g]` of all times and gates at once.

    From row `apart` on the second bias is left out, for a cell that adds it elsewhere.
    """
    rows, width = r.weight.shape[1:]
    sizes = (r.shape[0], Const(r.steps), r.shape[1], rows, width)
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

    With weights of small integers the other factor is quantised to u8 over its range, and the sum is exact in i32.
    """
    *spatial, inner = axes
    (x, index), (w, row) = left, right
    if r.scales is None:
        return r.op.emit(spatial, formula("x * w", x=x.access(index), w=w.access(row)), r.x.ttype, [inner], part=part)
    scale = r.scales[weight]
    values, step, zero = every_result(r.op, "DynamicQuantizeLinear", x, part=f"{part}_factor", results=3)
    shift = {"z": zero.access(()), "v": scale.of(scale.zero, *row[:2])}
    body = formula("(i32(x) - i32(z)) * (i32(w) - i32(v))", x=values.access(index), w=w.access(row), **shift)
    total = r.op.emit(spatial, body, "i32", [inner], part=f"{part}_sum")
    factors = {"s": step.access(()), "t": scale.of(scale.scale, *row[:2])}
    body = formula("f32(x) * (s * t)", x=total.access([axis.var for axis in spatial]), **factors)
    return r.op.emit(spatial, body, "f32", part=part)


def all_states(r: Recurrence, states: Sequence[Value]) -> Value:
    """The output Y: the states of all times, 0 behind the end of a sequence."""
    parts = [
        _states(r, states, first, min(first + MAX_PARTS, r.steps), "" if r.steps <= MAX_PARTS else f"times{first}")
        for first in range(0, r.steps, MAX_PARTS)
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
        ahead, behind = states[time].at(index), states[r.steps - 1 - time].at(index)
        if r.shape[0] == Const(1):
            element = behind if r.backward else ahead
        else:
            element = formula("where(d == 0, ahead, behind)", d=d.var, ahead=ahead, behind=behind)
        body = element if body is None else formula("where(t == n, x, y)", t=t.var, n=time - first, x=element, y=body)
    assert body is not None
    if r.lengths is not None:
        place = {"t": formula("t + first", t=t.var, first=first), "n": r.lengths.access([b.var])}
        body = formula("where(t < i64(n), x, 0.0)", **place, x=body)
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
