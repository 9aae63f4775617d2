"""Gathers: data-dependent indices, affine again where their values are known."""

from __future__ import annotations

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.registry import operator
from tilec.importer.shapes import ShapeError, shape_text
from tilec.importer.value import Value, position
from tilec.ir.algebra import bounds_of, polynomial, simplify, simplify_scalar
from tilec.ir.expr import Access, Binary, Call, Const, Expr, Var, constant_value, substitute, walk
from tilec.ir.graph import IndexRange
from tilec.ir.text import text_of


def looked_up(op: Op, index: Expr, ttype: str, size: Expr) -> Expr:
    """An index from a tensor, usable in an access: counted from the end where negative, and clamped to the dimension.

    Indices outside the tensor are refused where `require_range` knows them; others read its first or last element,
    never other memory.
    """
    fixed, extent = constant_value(index), constant_value(size)
    if fixed is not None:
        if extent is not None and not -extent <= fixed < extent:
            raise op.invalid(f"index {fixed} lies outside a dimension of extent {extent}")
        return Const(fixed) if fixed >= 0 else simplify(formula("i + size", i=index, size=size))
    if ttype != "i64":
        index = Call("i64", (index,))
    elif not any(isinstance(e, Access) for e in walk(index)):
        low = bounds_of(index)[0]
        if low is not None and low >= 0:
            return formula("minimum(i, size - 1)", i=index, size=size)
    wrapped = formula("where(i < 0, i + size, i)", i=index, size=size)
    return formula("maximum(minimum(i, last), 0)", i=wrapped, last=simplify(formula("size - 1", size=size)))


def require_range(
    op: Op,
    indices: Value,
    extent: Expr,
    coordinate: int | None = None,
    wraps: bool = True,
    besides: int | None = None,
) -> None:
    """Require that `indices` (of the last dimension the one at `coordinate`) are below `extent`, and -extent or more
    where they count from the end (`wraps`), else 0 or more; or that they are `besides`.

    Known indices are compared here: raises ConfigError, or demands as much of an extent that varies. Those that are an
    input of the model are compared at every run. Computed ones are not compared: code that looks them up reads the
    first or the last element instead.
    """
    size = constant_value(extent)
    computed = _one_index(indices)
    if computed is not None:
        first = formula("-n", n=extent) if wraps else Const(0)
        for holds in (Binary("<=", first, computed), Binary("<", computed, extent)):
            op.sizes.demand(holds, f"the index {text_of(computed)} is looked up in a dimension of {text_of(extent)}")
        return
    if indices.array is None:
        column = None if coordinate is None or indices.shape[-1] == Const(1) else (indices.rank - 1, coordinate)
        op.builder.require_range(IndexRange(indices.name, extent, op.origin.node, column, wraps, besides))
        return
    array = indices.array if coordinate is None else indices.array[..., coordinate]
    array = array if besides is None else array[array != besides]
    if not array.size:
        return
    low, high = int(array.min()), int(array.max())
    if low < 0 and not wraps:
        raise op.invalid(f"index {low} is negative")
    if size is None:
        least = max(high + 1, -low)
        op.sizes.demand(Binary(">=", extent, Const(least)), f"{least} elements are looked up in")
    elif low < -size or high >= size:
        raise op.invalid(f"index {low if low < -size else high} lies outside a dimension of extent {size}")


def _one_index(indices: Value) -> Expr | None:
    """The only index of a tensor that is computed from sizes."""
    if indices.array is not None or indices.form is None or any(n != Const(1) for n in indices.shape):
        return None
    return indices.at([Const(0)] * indices.rank)


def _is_inside(op: Op, indices: Value, extent: Expr) -> bool:
    """Whether known indices that grow along dimensions, such as positions of tokens in a table, are below an extent;
    where sizes decide, that is demanded of them."""
    form = indices.form
    if form is None or indices.array is not None or not all(_is_sum(e) for e in walk(form)):
        return False
    last = {position(d): formula("n - 1", n=n) for d, n in enumerate(indices.shape)}
    growing = all(c > 0 for term, c in polynomial(form).items() if any(_named(atom) in last for atom in term))
    low = bounds_of(form)[0]
    if not growing or low is None or low < 0 or not last:
        return False
    holds = simplify_scalar(formula("i < n", i=substitute(form, last), n=extent))
    op.sizes.demand(holds, f"the last index is {text_of(simplify(substitute(form, last)))}")
    return op.sizes.decided(holds) is True


def _is_sum(expr: Expr) -> bool:
    return isinstance(expr, Var | Const) or (isinstance(expr, Binary) and expr.op in ("+", "-", "*"))


def _named(atom: Expr) -> str:
    return atom.name if isinstance(atom, Var) else ""


@operator("Gather")
def _gather(op: Op) -> Value:
    """`Y[before, of the indices, behind] = X[before, indices[...], behind]`."""
    x, indices = op.value(0), op.value(1)
    axis = op.axis(op.integer("axis"), x.rank)
    require_range(op, indices, x.shape[axis])
    axes = op.axes_of([*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]])
    place = [a.var for a in axes]
    at = indices.at(place[axis : axis + indices.rank])
    if not _is_inside(op, indices, x.shape[axis]):
        at = looked_up(op, at, indices.ttype, x.shape[axis])
    return op.emit(axes, x.at([*place[:axis], at, *place[axis + indices.rank :]]), x.ttype)


@operator("GatherElements")
def _gather_elements(op: Op) -> Value:
    x, indices = op.value(0), op.value(1)
    axis = op.axis(op.integer("axis"), x.rank)
    if indices.rank != x.rank:
        raise ShapeError(f"indices {shape_text(indices.shape)} and data {shape_text(x.shape)} have different ranks")
    for d, (looked_at, extent) in enumerate(zip(indices.shape, x.shape, strict=True)):
        if d != axis:
            op.sizes.demand(Binary("<=", looked_at, extent), f"indices reach as far as the data in dimension {d}")
    require_range(op, indices, x.shape[axis])
    axes = op.axes_of(indices.shape)
    place: list[Expr] = [a.var for a in axes]
    at = looked_up(op, indices.at(place), indices.ttype, x.shape[axis])
    return op.emit(axes, x.at([at if d == axis else i for d, i in enumerate(place)]), x.ttype)


@operator("GatherND")
def _gather_nd(op: Op) -> Value:
    """The last dimension of the indices has the leading coordinates behind `batch_dims` shared dimensions."""
    x, indices = op.value(0), op.value(1)
    shared = op.integer("batch_dims")
    depth = op.fixed(indices.shape[-1], "the rank of the result") if indices.rank else x.rank + 1
    if shared < 0 or shared + depth > x.rank or shared >= indices.rank:
        raise ShapeError(f"indices {shape_text(indices.shape)} into data {shape_text(x.shape)}")
    for d in range(shared):
        op.require_same(x.shape[d], indices.shape[d], f"shared dimension {d}")
    for c in range(depth):
        require_range(op, indices, x.shape[shared + c], c)
    outer = indices.rank - 1
    axes = op.axes_of([*indices.shape[:-1], *x.shape[shared + depth :]])
    place: list[Expr] = [a.var for a in axes]
    coordinates = [
        looked_up(op, indices.at([*place[:outer], Const(c)]), indices.ttype, x.shape[shared + c]) for c in range(depth)
    ]
    return op.emit(axes, x.at([*place[:shared], *coordinates, *place[outer:]]), x.ttype)


@operator("Trilu")
def _trilu(op: Op) -> Value:
    """The upper (or lower) triangle from diagonal `k` on; zero elsewhere."""
    x = op.value(0)
    if x.rank < 2:
        raise ShapeError(f"an input {shape_text(x.shape)} that is no matrix")
    diagonal = op.element(1) or Const(0)
    axes = op.axes_of(x.shape)
    row, column = axes[-2].var, axes[-1].var
    compare = ">=" if op.integer("upper", 1) else "<="
    zero: bool | float | int = False if x.ttype == "bool" else 0.0 if x.ttype.startswith(("f", "b")) else 0
    element = x.access([a.var for a in axes])
    body = formula(f"where(j - i {compare} k, x, zero)", i=row, j=column, k=diagonal, x=element, zero=zero)
    return op.emit(axes, body, x.ttype)
