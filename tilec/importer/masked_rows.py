"""What tensors hold behind the last valid row of a state: what a mask makes of rows that no query may look at.

A mask says `row <= place` of places that are inputs. Rows from some number on are behind all places then, so that the
mask is false there, scores with minus infinity added are that, their exponentials are 0, and sums with these as factors
do not change: such rows need not be read. Keys and values are finite, as scores are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal

import ml_dtypes

from tilec.importer.index_ranges import CASTS, input_ranges
from tilec.ir.algebra import simplify
from tilec.ir.expr import Access, Binary, Call, Const, Expr, TensorExpr, Var, rebuild, substitute, variables
from tilec.ir.graph import Graph, IndexRange, Node
from tilec.ir.types import TTYPES, numpy_dtype

Held = Literal["true", "false", "zero", "masked", "any"]
"""What all elements behind the last valid row are: `masked` is minus infinity, or next to the least number; `any` is
known no further."""

NEUTRAL: Mapping[str, Held] = {"sum": "zero", "max": "masked"}
"""Reductions that elements leave as they are: of a maximum there is one more."""


@dataclass(slots=True)
class Behind:
    """What tensors hold from row `end` on; `demands` are ranges of inputs that this depends on."""

    graph: Graph
    end: Expr
    held: dict[str, Held] = field(default_factory=dict)
    demands: list[IndexRange] = field(default_factory=list)

    def of(self, node: Node, row: str) -> Held | None:
        """What a node holds where its iterator `row` is behind; None where it is reduced and such rows count."""
        expr = node.expr
        inside = _Inside(self, node, row).of(expr.value)
        neutral = expr.reducer is not None and NEUTRAL.get(expr.reducer) == inside
        if row in expr.reduce:
            return "any" if neutral else None
        return inside if neutral or not expr.reducer else "any"


class _Inside:
    """Expressions inside of a node."""

    def __init__(self, behind: Behind, node: Node, row: str) -> None:
        self._behind, self._node, self._row = behind, node, row
        self._ttype = behind.graph.tensors[node.name].ttype
        self._nodes = {each.name: each for each in behind.graph.nodes}

    def of(self, expr: Expr) -> Held:
        """What an expression holds where the row is behind."""
        match expr:
            case Const(bool() as value):
                return "true" if value else "false"
            case Const(value):
                return "zero" if value == 0 else "masked" if value == -inf else "any"
            case Access(tensor, index) if Var(self._row) in index:
                return self._behind.held.get(tensor, "any")
            case Binary(op, left, right) if op in _MIRRORED:
                return self._compared(_turned(expr, self._row))
            case Binary(op, left, right):
                return self._binary(op, left, right)
            case Call("where", (condition, yes, no)):
                return self._chosen(condition, yes, no)
            case Call(fn, (inner,)):
                return _of_call(fn, self.of(inner))
        return "any"

    def _binary(self, op: str, left: Expr, right: Expr) -> Held:
        one, other = self.of(left), self.of(right)
        match op:
            case "and" if "false" in (one, other):
                return "false"
            case "or" if one == other == "false":
                return "false"
            case "*" if "zero" in (one, other) and "masked" not in (one, other):
                return "zero"
            case "/" if one == "zero" != other:
                return "zero"
            case "+" if "masked" in (one, other):
                return "masked"
            case "-" if one == "masked" != other:
                return "masked"
        return "any"

    def _chosen(self, condition: Expr, yes: Expr, no: Expr) -> Held:
        holds = self.of(condition)
        if holds == "false" and self._is_least(no):
            return "masked" if self._leaves_one(condition) else "any"
        if holds in ("true", "false"):
            return self.of(yes if holds == "true" else no)
        one, other = self.of(yes), self.of(no)
        return one if one == other else "any"

    def _is_least(self, expr: Expr) -> bool:
        """Whether an expression is the least finite number, which masks only as long as a row is left."""
        if not isinstance(expr, Const) or TTYPES[self._ttype].kind != "float" or isinstance(expr.value, bool):
            return False
        limits: Any = ml_dtypes.finfo
        return -inf < expr.value <= float(limits(numpy_dtype(self._ttype)).min)

    def _compared(self, comparison: Expr) -> Held:
        """A row is behind all places that it is compared with, which is demanded of them."""
        match comparison:
            case Binary("<=" | "<" as op, Var(self._row), right):
                place = _uncast(right)
            case _:
                return "any"
        if not isinstance(place, Access) or self._row in variables(place):
            return "any"
        extent = self._behind.end if op == "<=" else simplify(Binary("+", self._behind.end, Const(1)))
        wanted = IndexRange(place.tensor, extent, (*self._node.origin, self._node.name)[0], wraps=False)
        graph = self._behind.graph
        found = input_ranges([wanted], self._nodes, {name: tensor.shape for name, tensor in graph.tensors.items()})
        if not found or any(each.tensor not in {port.tensor for port in graph.inputs} for each in found):
            return "any"
        self._behind.demands += found
        return "false"

    def _leaves_one(self, condition: Expr) -> bool:
        """Whether the row at the place itself is left: a condition says that rows are up to a place, and what else it
        says holds there."""
        parts = [_turned(part, self._row) for part in _parts(self._inlined(condition))]
        ends = [part for part in parts if isinstance(part, Binary) and (part.op, part.left) == ("<=", Var(self._row))]
        at = [{self._row: end.right} for end in ends if self._row not in variables(end.right)]
        return any(all(_holds(substitute(part, each)) for part in parts) for each in at)

    def _inlined(self, expr: Expr) -> Expr:
        """An expression of integers and bools with the expressions of the nodes that it reads."""
        inside = _uncast(rebuild(expr, self._inlined))
        if not isinstance(inside, Access) or inside.tensor not in self._nodes:
            return inside
        read: TensorExpr = self._nodes[inside.tensor].expr
        if read.reducer or TTYPES[self._behind.graph.tensors[inside.tensor].ttype].kind == "float":
            return inside
        return self._inlined(substitute(read.body, dict(zip(read.spatial, inside.index, strict=True))))


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _of_call(fn: str, inner: Held) -> Held:
    match fn, inner:
        case "exp", "masked":
            return "zero"
        case "isnan", "zero":
            return "false"
        case "not", "false":
            return "true"
        case "not", "true":
            return "false"
        case _ if fn in TTYPES and inner in ("zero", "masked"):
            return inner
    return "any"


def _uncast(expr: Expr) -> Expr:
    return expr.args[0] if isinstance(expr, Call) and expr.fn in CASTS and len(expr.args) == 1 else expr


def _turned(condition: Expr, name: str) -> Expr:
    """A comparison with a variable that stands alone on its left side, if it does on one."""
    match condition:
        case Binary(op, left, Var(right)) if op in _MIRRORED and right == name:
            return Binary(_MIRRORED[op], Var(right), left)
    return condition


def _parts(condition: Expr) -> list[Expr]:
    if isinstance(condition, Binary) and condition.op == "and":
        return [*_parts(condition.left), *_parts(condition.right)]
    return [condition]


def _holds(condition: Expr) -> bool:
    match condition:
        case Const(True):
            return True
        case Binary("<" | "<=" | ">" | ">=" as op, left, right):
            match simplify(Binary("-", left, right)):
                case Const(int() as apart):
                    return {"<": apart < 0, "<=": apart <= 0, ">": apart > 0, ">=": apart >= 0}[op]
    return False
