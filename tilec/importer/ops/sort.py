"""TopK, also for sorting: by counting the elements before each one, or for few results by repeated maxima."""

from __future__ import annotations

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.registry import operator
from tilec.importer.value import Value
from tilec.importer.work_estimate import require_affordable
from tilec.ir.algebra import bounds_of
from tilec.ir.expr import Binary, Const, Expr, constant_value
from tilec.ir.types import TTYPES

MAX_COUNTED = 128
"""Maximal number of elements that are ranked by counting for any k."""

MAX_MAXIMA = 16
"""Maximal k of a longer row for which the results are computed one maximum after the other."""


@operator("TopK")
def _top_k(op: Op) -> tuple[Value, Value]:
    """The k largest (or smallest) elements along an axis, sorted, and their indices.

    Of equal elements the first comes first; NaN counts as infinity (onnxruntime leaves its place open). Unsorted
    results come sorted as well.
    """
    x = op.value(0)
    axis = op.axis(op.integer("axis", -1), x.rank)
    k = Const(op.integer("k")) if "k" in op.attributes else op.single(1)
    most = bounds_of(Binary("-", k, x.shape[axis]))[0]
    least = constant_value(k)
    if (most is not None and most > 0) or (least is not None and least < 0):
        raise op.invalid(f"k is {least} of an axis of {constant_value(x.shape[axis])} elements")
    op.sizes.demand(Binary("<=", k, x.shape[axis]), "k is at most the number of elements")
    keys = _keys(op, x, largest=bool(op.integer("largest", 1)))
    few = least is not None and least <= MAX_MAXIMA and (constant_value(x.shape[axis]) or MAX_COUNTED + 1) > MAX_COUNTED
    indices = _by_maxima(op, keys, axis, least or 0) if few else _by_counting(op, keys, axis, k)
    axes = op.axes_of(indices.shape)
    at = indices.access([a.var for a in axes])
    inside = formula("maximum(minimum(at, e - 1), 0)", at=at, e=x.shape[axis])
    values = op.emit(axes, x.at([inside if d == axis else a.var for d, a in enumerate(axes)]), x.ttype)
    return values, indices


def _keys(op: Op, x: Value, largest: bool) -> Value:
    """The keys to compare, largest first in any mode; integers are inverted by their bits."""
    if TTYPES[x.ttype].kind == "float":
        return op.map("where(isnan(x), inf, x)" if largest else "where(isnan(x), -inf, -x)", x=x, part="keys")
    return x if largest else op.map("bitnot(x)", x=x, part="keys")


def _by_counting(op: Op, keys: Value, axis: int, k: Expr) -> Value:
    """The rank of element i is the number of elements before it; result j is the element of rank j."""
    axes = op.axes_of(keys.shape)
    (r,) = op.builder.iterators("r", [keys.shape[axis]])
    require_affordable(op, [*keys.shape, r.extent])
    place = [a.var for a in axes]
    other = [r.var if d == axis else i for d, i in enumerate(place)]
    before = "where(a > b or (a == b and r < i), 1, 0)"
    body = formula(before, a=keys.access(other), b=keys.access(place), r=r.var, i=place[axis])
    ranks = op.emit(axes, body, "i32", [r], part="rank")
    results = op.axes_of([k if d == axis else extent for d, extent in enumerate(keys.shape)])
    rank = ranks.access([r.var if d == axis else a.var for d, a in enumerate(results)])
    chosen = formula("where(i64(rank) == j, r, 0)", rank=rank, j=results[axis].var, r=r.var)
    return op.emit(results, chosen, "i64", [r], output=1)


def _by_maxima(op: Op, keys: Value, axis: int, k: int) -> Value:
    """Each result is the first maximum of the elements that come after the previous one in the order of results."""
    lowest = _lowest(keys.ttype)
    places: list[Value] = []
    previous: Value | None = None
    behind: Expr = Const(True)
    for number in range(k):
        spatial = op.axes_of([Const(1) if d == axis else extent for d, extent in enumerate(keys.shape)])
        (r,) = op.builder.iterators("r", [keys.shape[axis]])
        here = [a.var for a in spatial]
        key = keys.access([r.var if d == axis else i for d, i in enumerate(here)])
        if previous is not None:
            last, at = previous.access(here), places[-1].access(here)
            behind = formula("a < b or (a == b and r > at)", a=key, b=last, r=r.var, at=at)
        candidate = formula("where(c, a, low)", c=behind, a=key, low=lowest) if number else key
        previous = op.emit(spatial, candidate, keys.ttype, [r], "max", part=f"key{number}")
        holds = formula("a == b", a=key, b=previous.access(here))
        holds = formula("c and d", c=behind, d=holds) if number else holds
        body = formula("where(c, r, e)", c=holds, r=r.var, e=r.extent)
        places.append(op.emit(spatial, body, "i64", [r], "min", part=f"place{number}"))
    axes = op.axes_of([Const(k) if d == axis else extent for d, extent in enumerate(keys.shape)])
    first: list[Expr] = [Const(0) if d == axis else a.var for d, a in enumerate(axes)]
    chosen: Expr = places[-1].access(first) if places else Const(0)
    for number, value in reversed(list(enumerate(places[:-1]))):
        chosen = formula("where(i == n, a, b)", i=axes[axis].var, n=number, a=value.access(first), b=chosen)
    return op.emit(axes, chosen, "i64", output=1)


def _lowest(ttype: str) -> float | int:
    """A literal that is at most every element of this type."""
    kind, bits = TTYPES[ttype].kind, TTYPES[ttype].bits
    return {"float": float("-inf"), "int": -(1 << (bits - 1))}.get(kind, 0)
