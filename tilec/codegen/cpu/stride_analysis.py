"""Stride analysis: how a flat offset moves along the dimensions of a tile."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tilec.codegen.cpu.extents import Extent, extent_of
from tilec.ir.algebra import linear_form, simplify
from tilec.ir.expr import Access, Binary, Const, Expr, Var, as_expr, substitute, variables, walk

PERIODS = (2, 4, 8)
"""Moduli of interleaved accesses that are looked for; they divide the lanes of a vector."""


@dataclass(frozen=True, slots=True)
class Form:
    """An offset as `base + constant + sum(strides[d] * d) + rest`.

    `base` is free of the tile's dimensions and of data, `rest` (None when there is none) is what dimensions or
    loaded values enter in any other way; it varies along `varying`. Strides over rows of open sizes are expressions.
    """

    base: Expr
    constant: int
    strides: tuple[tuple[str, Extent], ...]
    rest: Expr | None
    varying: frozenset[str]

    def stride(self, dim: str) -> Extent | None:
        """Elements from one point to the next along a dimension; None when that is not a constant."""
        return None if dim in self.varying else dict(self.strides).get(dim, 0)

    @property
    def dims(self) -> frozenset[str]:
        """Dimensions along which the offset moves."""
        return self.varying | {d for d, _ in self.strides}


@dataclass(frozen=True, slots=True)
class Displacement:
    """Elements from where a tile begins to one of its points: a number, and what is passed over in rows of open sizes,
    in canonical form, so that points which come to the same have equal ones."""

    elements: int
    rows: Expr | None = None


def displacement(form: Form, offsets: Mapping[str, int]) -> Displacement:
    """Where the point at some offsets lies, apart from the form's base and rest."""
    elements = form.constant
    rows: list[Expr] = []
    for dim, stride in form.strides:
        at = offsets.get(dim, 0)
        if isinstance(stride, int):
            elements += stride * at
        elif at:
            rows.append(Binary("*", stride, Const(at)))
    total = _total(rows)
    return Displacement(elements, None if total is None else simplify(total))


def _total(terms: Sequence[Expr]) -> Expr | None:
    total: Expr | None = None
    for term in terms:
        total = term if total is None else Binary("+", total, term)
    return total


@lru_cache(maxsize=65536)
def _form(offset: Expr, dims: frozenset[str]) -> Form:
    terms, constant = linear_form(offset)
    base: list[Expr] = []
    rest: list[Expr] = []
    strides: dict[str, Extent] = {}
    varying: set[str] = set()
    for atom, coefficient in terms.items():
        inside = {part.name for part in walk(atom) if isinstance(part, Var)} & dims
        data = any(isinstance(part, Access) for part in walk(atom))
        moving = _times_dimension(atom, dims) if inside and not data else None
        if moving is not None:
            name, factor = moving
            step = Binary("*", factor, Const(coefficient))
            strides[name] = extent_of(simplify(Binary("+", as_expr(strides.get(name, 0)), step)))
            continue
        term = atom if coefficient == 1 else Binary("*", atom, Const(coefficient))
        if inside or data:
            rest.append(term)
            varying |= inside
        else:
            base.append(term)
    both = {d: c for d, c in strides.items() if d in varying}
    rest += [Binary("*", Var(d), as_expr(c)) for d, c in both.items()]
    linear = tuple((d, c) for d, c in strides.items() if d not in both)
    return Form(_total(base) or Const(0), constant, linear, _total(rest), frozenset(varying))


def _times_dimension(product: Expr, dims: frozenset[str]) -> tuple[str, Expr] | None:
    """(dimension, factor) of a product of a single dimension and what does not vary; None for any other."""
    match product:
        case Var(name) if name in dims:
            return name, Const(1)
        case Binary("*", left, right):
            for one, other in ((left, right), (right, left)):
                found = _times_dimension(one, dims) if not variables(other) & dims else None
                if found is not None:
                    return found[0], Binary("*", found[1], other)
    return None


def form_of(offset: Expr, dims: Collection[str]) -> Form:
    """The form of a flat offset with respect to the dimensions of a tile."""
    return _form(offset, frozenset(dims))


@dataclass(frozen=True, slots=True)
class Period:
    """An offset that repeats every `modulus` positions of a dimension: at position `modulus * q + t` it is `forms[t]`,
    in which the dimension stands for q."""

    modulus: int
    forms: tuple[Form, ...]


@lru_cache(maxsize=16384)
def _period(offset: Expr, dims: frozenset[str], dim: str) -> Period | None:
    for modulus in PERIODS:
        forms = []
        for t in range(modulus):
            position = Binary("+", Binary("*", Var(dim), Const(modulus)), Const(t))
            forms.append(_form(simplify(substitute(offset, {dim: position})), dims))
        if len({f.stride(dim) for f in forms}) == 1 and forms[0].stride(dim) is not None:
            return Period(modulus, tuple(forms))
    return None


def period_of(offset: Expr, dims: Collection[str], dim: str) -> Period | None:
    """How an offset without a constant stride along a dimension repeats: channels shuffled, pixels doubled."""
    return _period(offset, frozenset(dims), dim)
