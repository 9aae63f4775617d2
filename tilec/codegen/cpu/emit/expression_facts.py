"""What is known of the expressions of a tile: types, dependence, where accesses lie; equal parts are one object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilec.codegen.cpu.extents import Extent
from tilec.codegen.cpu.stride_analysis import Form, form_of, period_of
from tilec.ir.expr import Access, Expr, Var, rebuild, walk
from tilec.ir.scalars import type_of


@dataclass(frozen=True, slots=True)
class Place:
    """The form of an access, its stride along the vector dimension, and numbers of its base, of base and strides,
    and of everything but the constant: equal numbers mean equal parts."""

    form: Form
    along: Extent
    base: int
    chain: int
    load: int


@dataclass(slots=True)
class Fact:
    """What is known of one expression object; `expr` keeps it alive, so that its identity stays its own. A `constant`
    is made of literals alone."""

    expr: Expr
    kind: str
    depends: tuple[str, ...]
    constant: bool
    place: Place | None = None
    phases: tuple[Place, ...] | None = None


class ExpressionFacts:
    """Facts about expressions, by their identity."""

    def __init__(self, dims: tuple[str, ...], vector: str | None, ttypes: Mapping[str, str]) -> None:
        self._dims = dims
        self._vector = vector
        self._ttypes = ttypes
        self._known: dict[int, Fact] = {}
        self._numbers: dict[Any, int] = {}
        self._shared: dict[Expr, Expr] = {}

    def interned(self, expr: Expr) -> Expr:
        """The expression with equal parts being one object, so that identity stands for equality from here on."""
        new = rebuild(expr, self.interned)
        return self._shared.setdefault(new, new)

    def of(self, expr: Expr) -> Fact:
        """Type and dependence of an expression."""
        found = self._known.get(id(expr))
        if found is None:
            leaves = [e for e in walk(expr) if isinstance(e, Var | Access)]
            names = {e.name for e in leaves if isinstance(e, Var)}
            depends = tuple(d for d in self._dims if d in names)
            found = self._known[id(expr)] = Fact(expr, type_of(expr, self._ttypes), depends, not leaves)
        return found

    def place(self, access: Access) -> Place:
        """Where an access lies."""
        fact = self.of(access)
        if fact.place is None:
            fact.place = self._placed(access.tensor, form_of(access.index[0], self._dims))
        return fact.place

    def phases(self, access: Access) -> tuple[Place, ...]:
        """Where a periodic access lies at each position of its period; empty for any other."""
        fact = self.of(access)
        if fact.phases is None:
            vector = self._vector or ""
            period = period_of(access.index[0], self._dims, vector) if self.place(access).form.rest else None
            fact.phases = tuple(self._placed(access.tensor, form) for form in period.forms) if period else ()
        return fact.phases

    def _placed(self, tensor: str, form: Form) -> Place:
        return Place(
            form,
            dict(form.strides).get(self._vector or "", 0),
            self._number(form.base),
            self._number((form.base, form.strides)),
            self._number((tensor, form.base, form.strides, form.rest)),
        )

    def _number(self, key: Any) -> int:
        return self._numbers.setdefault(key, len(self._numbers))
