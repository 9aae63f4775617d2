"""Rows of a state that go on at its beginning where they reach its end, as TensorScatter writes them in circular mode.

Such a state is `where(0 <= (t - n) % e and (t - n) % e < s, rows[.., (t - n) % e, ..], past[.., t, ..])`: row r goes to
`(r + n) % e`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilec.importer.scattered_states import Scatter
from tilec.ir.algebra import linear_form, simplify
from tilec.ir.expr import Binary, Const, Expr, TensorExpr, Var, rebuild, substitute, variables
from tilec.ir.sizes import Constraint

_ROW = Var("@row")


def ring_of(expr: TensorExpr, body: Expr, conditions: Sequence[Expr]) -> Scatter | None:
    """The rows that an expression has the value `body` at where all conditions hold, None if they are no ring's."""
    limits = [limit for condition in conditions for limit in _parts(condition)]
    ends = [limit for limit in limits if isinstance(limit, Binary) and limit.op == "<"]
    match ends:
        case [Binary("<", Binary("%", inner, around) as offset, count)]:
            pass
        case _:
            return None
    if any(limit not in (ends[0], Binary(">=", offset, Const(0))) for limit in limits):
        return None
    terms, _ = linear_form(inner)
    along = next((i for i in expr.spatial if terms.get(Var(i)) == 1 and expr.domain[i] == around), None)
    if along is None:
        return None
    start = simplify(Binary("-", inner, Var(along)))
    value = _replaced(body, offset)
    if along in variables(start) | variables(count) | variables(value):
        return None
    place = Binary("%", Binary("-", Var(along), start), around)
    origin = "rows that are written around the end of a state are no more than those of the state"
    room = simplify(Binary("-", around, count))
    demanded = () if isinstance(room, Const) else (Constraint(Binary("<=", count, around), origin),)
    return Scatter(along, count, place, substitute(value, {_ROW.name: Var(along)}), demanded)


def _parts(condition: Expr) -> Iterator[Expr]:
    match condition:
        case Binary("and", left, right):
            yield from _parts(left)
            yield from _parts(right)
        case _:
            yield condition


def _replaced(expr: Expr, offset: Expr) -> Expr:
    return _ROW if expr == offset else rebuild(expr, lambda part: _replaced(part, offset))
