"""Rows of a state that a scatter places: each goes along one dimension to where data say.

A scatter is imported in gather form: `where(last[t] >= 0, rows[.., last[t], ..], past[.., t, ..])`, where `last` is the
number of the last row that goes to t, `max(r, where(place(r) == t, r, -1))`. In place it is row r that is stored at
place(r). Of rows that share a place all store what the last one is, so that their order is of no account.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilec.ir.algebra import linear_form, simplify
from tilec.ir.expr import Access, Binary, Call, Const, Expr, TensorExpr, Var, rebuild, substitute, variables
from tilec.ir.sizes import Constraint
from tilec.ir.types import TTYPES


@dataclass(frozen=True, slots=True)
class Scatter:
    """`count` rows along an iterator, which numbers them in `body`, their values, and in `place`, where they go.
    `constraints` are what sizes must fulfil."""

    iterator: str
    count: Expr
    place: Expr
    body: Expr
    constraints: tuple[Constraint, ...] = ()


def scatter_of(
    expr: TensorExpr,
    body: Expr,
    conditions: Sequence[Expr],
    nodes: Mapping[str, TensorExpr],
    ttypes: Mapping[str, str],
) -> Scatter | None:
    """The scatter by which an expression has the value `body` where all conditions hold, None if it is none."""
    match conditions:
        case (Binary(">=", Access(name, index) as number, Const(0)),) if name in nodes:
            search = _search_of(nodes[name])
        case _:
            return None
    names = [each.name for each in index if isinstance(each, Var)]
    if search is None or len(set(names)) < len(index) or not set(names) <= set(expr.spatial):
        return None
    axes = dict(zip(nodes[name].spatial, names, strict=True))
    along = axes[search.axis]
    row = Var(along)
    place = substitute(search.place, {search.row: row, **{i: Var(axis) for i, axis in axes.items()}})
    apart = search.count == Const(1) or _apart(place, along, nodes, ttypes)
    extent = expr.domain[along]
    inside = Call("maximum", (Call("minimum", (place, Binary("-", extent, Const(1)))), Const(0)))
    chosen: Expr = row if apart else Access(name, tuple(inside if each == row else each for each in index))
    value = substitute(_replaced(body, number, Var("@row")), {along: inside})
    value = substitute(value, {"@row": chosen})
    room = Binary("<=", search.count, extent)
    demanded = apart and not isinstance(simplify(Binary("-", extent, search.count)), Const)
    origin = "rows that are written in place are no more than those of the state"
    return Scatter(along, search.count, place, value, (Constraint(room, origin),) if demanded else ())


@dataclass(frozen=True, slots=True)
class _Search:
    """The last of `count` rows, numbered by the iterator `row`, whose place is that of the iterator `axis`. One row
    alone has no number."""

    axis: str
    row: str
    count: Expr
    place: Expr


def _search_of(expr: TensorExpr) -> _Search | None:
    one: Expr = Const(1)
    zero: Expr = Const(0)
    if not expr.reducer:
        row, count, first = "", one, zero
    elif expr.reducer == "max" and len(expr.reduce) == 1:
        (row,) = expr.reduce
        count, first = expr.domain[row], Var(row)
    else:
        return None
    match expr.value:
        case Call("where", (Binary("==", place, Var(axis)), number, Const(-1))):
            if number == first and axis in expr.spatial and axis not in variables(place):
                return _Search(axis, row, count, place)
    return None


def _apart(place: Expr, row: str, nodes: Mapping[str, TensorExpr], ttypes: Mapping[str, str]) -> bool:
    """Whether no two rows have one place: it is a number per row, or that counted from the end where it is negative,
    and the number is that of the row but for a constant. There are no more rows than places."""
    match place:
        case Call("where", (Binary("<", at, Const(0)), Binary("+", behind, _), front)) if at == behind == front:
            place = at
    terms, _ = linear_form(_inlined(place, nodes, ttypes))
    factor = terms.pop(Var(row), 0)
    return factor in (1, -1) and not any(row in variables(term) for term in terms)


def _inlined(expr: Expr, nodes: Mapping[str, TensorExpr], ttypes: Mapping[str, str]) -> Expr:
    """An expression of integers with the expressions of the nodes that it reads."""
    inside = rebuild(expr, lambda part: _inlined(part, nodes, ttypes))
    match inside:
        case Call("i64", (Access(tensor, _) as given,)) if TTYPES[ttypes[tensor]].kind == "int":
            return given
        case Access(tensor, index) if tensor in nodes and ttypes[tensor] == "i64" and not nodes[tensor].reducer:
            read = nodes[tensor]
            return _inlined(substitute(read.body, dict(zip(read.spatial, index, strict=True))), nodes, ttypes)
    return inside


def _replaced(expr: Expr, one: Expr, other: Expr) -> Expr:
    if expr == one:
        return other
    return rebuild(expr, lambda part: _replaced(part, one, other))
