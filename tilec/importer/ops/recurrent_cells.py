"""Cells of RNN, GRU and LSTM: one step from the input's projection and the state fed back."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.importer.builder import Axis
from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ops.recurrent import (
    Recurrence,
    Step,
    fed_back,
    initial,
    last_state,
    projected,
    recurrence,
    recurrent_bias,
    require_shape,
    run_cells,
)
from tilec.importer.ops.recurrent_activation import Activations, activations
from tilec.importer.registry import operator
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Expr, constant_value


@operator("RNN")
def _rnn(op: Op) -> tuple[Value | None, ...]:
    """`H = f(X W + H R + biases)`."""
    r = recurrence(op, gates=1, expressions=2)
    act = _activations(r, ["Tanh"])

    def cell(step: Step, states: Sequence[Value]) -> Sequence[Value]:
        (state,) = states
        axes = r.axes()
        back = fed_back(r, state, 0, 1, f"back{step.label}")
        body = act.apply(0, _gate(r, step, 0, axes, back), axes[0].var)
        return [op.emit(axes, step.masked(axes, body, state), r.x.ttype, part=f"h{step.label}")]

    output, (state,) = run_cells(r, projected(r), [initial(r, 5, "initial_h")], cell)
    return output, last_state(r, state, 1)


@operator("GRU")
def _gru(op: Op) -> tuple[Value | None, ...]:
    """`H = (1 - z) * c + z * H` with gates z and r; r scales the state before its product, or the product."""
    behind = bool(op.integer("linear_before_reset"))
    r = recurrence(op, gates=3, expressions=2 if behind else 4)
    act = _activations(r, ["Sigmoid", "Tanh"])
    source = projected(r, simplify(formula("2 * h", h=r.shape[2])) if behind else None)

    def cell(step: Step, states: Sequence[Value]) -> Sequence[Value]:
        (state,) = states
        axes, new = _behind(r, step, act, state) if behind else _before(r, step, act, state)
        return [op.emit(axes, step.masked(axes, new, state), r.x.ttype, part=f"h{step.label}")]

    output, (state,) = run_cells(r, source, [initial(r, 5, "initial_h")], cell)
    return output, last_state(r, state, 1)


def _before(r: Recurrence, step: Step, act: Activations, state: Value) -> tuple[tuple[Axis, ...], Expr]:
    """A step whose reset gate scales the state: `c = g(X W + (r * H) R + biases)`."""
    axes = r.axes()
    d, place = axes[0].var, [a.var for a in axes]
    back = fed_back(r, state, 0, 2, f"back{step.label}")
    reset = act.apply(0, _gate(r, step, 1, axes, back), d)
    scaled = state
    if back is not None:
        scaled = r.op.emit(axes, formula("r * h", r=reset, h=state.at(place)), r.x.ttype, part=f"reset{step.label}")
    candidate = _gate(r, step, 2, axes, fed_back(r, scaled, 2, 1, f"candidate{step.label}"), first=2)
    return axes, _mixed(act, _gate(r, step, 0, axes, back), candidate, state.at(place), d)


def _behind(r: Recurrence, step: Step, act: Activations, state: Value) -> tuple[tuple[Axis, ...], Expr]:
    """A step whose reset gate scales the product: `c = g(X W + WB + r * (H R + RB))`."""
    axes = r.axes()
    d, place = axes[0].var, [a.var for a in axes]
    back = fed_back(r, state, 0, 3, f"back{step.label}")
    reset = act.apply(0, _gate(r, step, 1, axes, back), d)
    row = _row(r, 2, axes)
    fed = recurrent_bias(r, d, row)
    if back is not None:
        fed = formula("x + b", x=back.access([d, place[1], row]), b=fed)
    candidate = formula("x + r * y", x=_gate(r, step, 2, axes, None), r=reset, y=fed)
    return axes, _mixed(act, _gate(r, step, 0, axes, back), candidate, state.at(place), d)


def _mixed(act: Activations, update: Expr, candidate: Expr, state: Expr, direction: Expr) -> Expr:
    z, c = act.apply(0, update, direction), act.apply(1, candidate, direction)
    return formula("(1.0 - z) * c + z * h", z=z, c=c, h=state)


@operator("LSTM")
def _lstm(op: Op) -> tuple[Value | None, ...]:
    return lstm(recurrence(op, gates=4, expressions=3))


def lstm(r: Recurrence) -> tuple[Value | None, ...]:
    """`C = f * C + i * c; H = o * h(C)` with gates i, o, f, c; peepholes add `P * C` to the first three."""
    op = r.op
    act = _activations(r, ["Sigmoid", "Tanh", "Tanh"])
    peephole = op.optional(7)
    if peephole is not None:
        require_shape(op, "P", peephole, (r.shape[0], simplify(formula("3 * h", h=r.shape[2]))))
    source, first = projected(r), [initial(r, 5, "initial_h"), initial(r, 6, "initial_c")]

    def step_of(step: Step, states: Sequence[Value]) -> Sequence[Value]:
        state, cell = states
        axes = r.axes()
        place = [a.var for a in axes]
        back = fed_back(r, state, 0, 4, f"back{step.label}")

        def gate(number: int, cell: Value | None) -> Expr:
            total = _gate(r, step, number, axes, back)
            if peephole is None or cell is None:
                return total
            factor = peephole.access([axes[0].var, _row(r, number, axes)])
            return formula("x + p * c", x=total, p=factor, c=cell.at([a.var for a in axes]))

        taken = act.apply(0, gate(0, cell), place[0])
        forget = formula("1.0 - i", i=taken)
        if not op.integer("input_forget"):
            forget = act.apply(0, gate(2, cell), place[0])
        fresh = act.apply(1, gate(3, None), place[0])
        body = formula("f * old + i * c", f=forget, old=cell.at(place), i=taken, c=fresh)
        new = op.emit(axes, step.masked(axes, body, cell), r.x.ttype, part=f"c{step.label}")
        put = act.apply(0, gate(1, new), place[0])
        body = formula("o * h", o=put, h=act.apply(2, new.access(place), place[0], clipped=False))
        return op.emit(axes, step.masked(axes, body, state), r.x.ttype, part=f"h{step.label}"), new

    output, (state, cell) = run_cells(r, source, first, step_of)
    return output, last_state(r, state, 1), last_state(r, cell, 2)


def _activations(r: Recurrence, defaults: Sequence[str]) -> Activations:
    return activations(r.op, defaults, constant_value(r.shape[0]) or 1)


def _row(r: Recurrence, gate: int, axes: Sequence[Axis]) -> Expr:
    """The row of a gate's unit in weights and biases."""
    return simplify(formula("gate * size + h", gate=gate, size=r.shape[2], h=axes[2].var))


def _gate(r: Recurrence, step: Step, gate: int, axes: Sequence[Axis], back: Value | None, first: int = 0) -> Expr:
    """The argument of a gate's activation: the input's projection plus the state fed back (from gate `first` on)."""
    d, b, _ = (a.var for a in axes)
    total = step.source(d, b, _row(r, gate, axes))
    if back is None:
        return total
    return formula("x + z", x=total, z=back.access([d, b, _row(r, gate - first, axes)]))
