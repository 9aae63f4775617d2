"""Units that multiply matrices: how lanes hold their fragments, and which products they compute (L13, L21, L24).

An instruction adds the product of `rows` x `depth` and `depth` x `columns` elements to `rows` x `columns` sums. Every
lane of a warp holds a part of each of the three, its fragment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from tilec.ir.by_identity import ById
from tilec.ir.expr import Access, Binary, Call, Const, Expr, TensorExpr, Var, constant_value, operands, variables
from tilec.ir.scalars import is_weak, type_of
from tilec.ir.types import HALVES

SUMS = ("f32", "i32")
"""Types of sums."""

LONG = 1 << 16
"""Extent assumed for one that varies."""


@dataclass(frozen=True, slots=True)
class Span:
    """How lanes lie along an axis of a fragment: `lane // step % lanes`, each with `vector` neighbours a round."""

    lanes: int = 1
    step: int = 1
    vector: int = 1


@dataclass(frozen=True, slots=True)
class MatrixUnit:
    """A unit of a device: types of the factors and of the sum, extents of one instruction in a warp, and the spans of
    the fragments: (rows, depth) of the left factor, (depth, columns) of the right one, (rows, columns) of the sums.

    A unit whose factors have no spans reads them in memory. Its instructions take multiples of `columns` up to `most`;
    `warps` along the rows execute one together, each with rows of its own."""

    name: str
    inputs: tuple[str, str]
    accumulator: str
    rows: int
    columns: int
    depth: int
    left: tuple[Span, Span] | None
    right: tuple[Span, Span] | None
    sums: tuple[Span, Span]
    most: int = 0
    warps: int = 1

    @property
    def reads_memory(self) -> bool:
        """Whether instructions read factors in memory."""
        return self.left is None


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """A sum of products as a unit computes it: the iterators of rows, columns and depth, and the factors in the types
    that the unit takes."""

    rows: str
    columns: str
    depth: str
    left: Expr
    right: Expr


def matrix_product(expr: TensorExpr, ttypes: Mapping[str, str], unit: MatrixUnit) -> MatrixProduct | None:
    """A node as products of matrices of a unit; None where it is none. `ttypes` are those of its tensors.

    Columns are the last spatial iterator that one factor alone has, rows the last one that the other alone has; depth
    is the longest reduce iterator. Other iterators are loops around.
    """
    found = _typed_product(ById(expr), tuple(ttypes[tensor] for tensor in operands(expr)))
    return found[2] if found is not None and found[:2] == (unit.inputs, unit.accumulator) else None


@lru_cache(maxsize=1 << 14)
def _typed_product(node: ById[TensorExpr], types: tuple[str, ...]) -> tuple[tuple[str, str], str, MatrixProduct] | None:
    """A node whose operands have some types as products of matrices, the types of their factors and of their sums."""
    expr, value = node.value, node.value.value
    ttypes = dict(zip(operands(expr), types, strict=True))
    converted = value.fn if isinstance(value, Call) and value.fn in SUMS and len(value.args) == 1 else ""
    if isinstance(value, Call) and converted:
        value = value.args[0]
    if expr.reducer != "sum" or not isinstance(value, Binary) or value.op != "*":
        return None
    kind = type_of(value, ttypes)
    accumulator = "f32" if kind in HALVES else kind
    if accumulator not in SUMS or converted not in ("", accumulator):
        return None
    factors = [narrow_factor(each, ttypes) for each in (value.left, value.right)]
    if any(body is None for body, _ in factors):
        return None
    bodies = [body for body, _ in factors if body is not None]
    used = [variables(body) for body in bodies]
    moving = [i for i, extent in zip(expr.spatial, expr.shape, strict=True) if constant_value(extent) != 1]
    columns = next((i for i in reversed(moving) if (i in used[0]) != (i in used[1])), None)
    if columns is None:
        return None
    right = 0 if columns in used[0] else 1
    rows = next((i for i in reversed(moving) if i in used[1 - right] and i not in used[right]), None)
    depths = [i for i in expr.reduce if i in used[0] and i in used[1]]
    if rows is None or not depths:
        return None
    domain = expr.domain
    depth = max(reversed(depths), key=lambda i: constant_value(domain[i]) or LONG)
    product = MatrixProduct(rows, columns, depth, bodies[1 - right], bodies[right])
    return (factors[1 - right][1], factors[right][1]), accumulator, product


def reads_in_memory(product: MatrixProduct) -> bool:
    """Whether factors lie in memory as units read them there: rows (or columns) and depth are their last dimensions, in
    either order, and nothing else moves along these."""
    sides = ((product.left, product.rows), (product.right, product.columns))
    return all(_is_matrix(body, {along, product.depth}) for body, along in sides)


def _is_matrix(body: Expr, moving: set[str]) -> bool:
    if not isinstance(body, Access) or len(body.index) < len(moving):
        return False
    *around, last, innermost = body.index
    named = {each.name for each in (last, innermost) if isinstance(each, Var)}
    return named == moving and not any(moving & variables(each) for each in around)


def narrow_factor(factor: Expr, ttypes: Mapping[str, str]) -> tuple[Expr | None, str]:
    """A factor before it is converted to the type of the sum, which may happen inside a guard, and its type; None and
    "" for any other. A literal of a guard keeps its value."""
    match factor:
        case Call("where", (condition, yes, Const() as no)):
            body, kind = narrow_factor(yes, ttypes)
            return (None if body is None else Call("where", (condition, body, no))), kind
        case Call("i32" | "f32", (inner,)):
            kind = type_of(inner, ttypes)
            return (None, "") if is_weak(kind) else (inner, kind)
    kind = type_of(factor, ttypes)
    return (factor, kind) if kind in HALVES or kind == "f32" else (None, "")
