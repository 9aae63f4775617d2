"""Sizes that are equal unless one of them is 1, and plans where a guard says that they are equal.

Tensors whose sizes inputs have on their own broadcast: each size is the other one, or 1 (`fits`). Decisions are made
for equal sizes, and a variant whose guard says that they are equal reads no operand as if it were repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tilec.ir.algebra import simplify
from tilec.ir.bind import bound_node, bound_tensor
from tilec.ir.evaluate import integer
from tilec.ir.expr import Binary, Const, Expr, Var, substitute, variables
from tilec.ir.graph import Node
from tilec.ir.plan import Group, Plan
from tilec.ir.size_facts import alternatives
from tilec.ir.sizes import Constraint


def equal_sizes(constraints: Iterable[Constraint]) -> dict[str, Expr]:
    """The symbols that constraints demand to be an expression of others unless one of both is 1, with that expression
    in symbols that are none of them."""
    values: dict[str, Expr] = {}
    for each in constraints:
        match list(alternatives(each.holds)):
            case [Binary("==", a, b), Binary("==", _, Const(1)), *rest] if all(map(_is_one, rest)):
                left, right = (simplify(substitute(side, values)) for side in (a, b))
                found = _solved(left, right)
                if found is not None:
                    name, value = found
                    values = {symbol: simplify(substitute(known, {name: value})) for symbol, known in values.items()}
                    values[name] = value
    return values


def equalities(values: Mapping[str, Expr], symbols: Iterable[str]) -> Expr:
    """The guard that those of some symbols with a value have it."""
    guard: Expr = Const(True)
    for symbol in sorted(set(symbols) & values.keys()):
        holds = Binary("==", Var(symbol), values[symbol])
        guard = holds if guard == Const(True) else Binary("and", guard, holds)
    return guard


def made_equal(sizes: Mapping[str, int], values: Mapping[str, Expr]) -> dict[str, int]:
    """Sizes of all symbols, with those equal that are so unless one is 1."""
    return {**sizes, **{symbol: int(integer(value, sizes)) for symbol, value in values.items()}}


def values_where(guard: Expr) -> dict[str, Expr]:
    """The symbols that a guard says to equal an expression of others."""
    return {symbol: value for symbol, value in _equalities(guard) if symbol not in variables(value)}


def plan_where(plan: Plan, guard: Expr) -> Plan:
    """The plan with tensors of the shapes that they have where a guard holds."""
    values = values_where(guard)
    if not values:
        return plan
    return replace(plan, tensors={name: bound_tensor(tensor, values) for name, tensor in plan.tensors.items()})


def group_where(group: Group, guard: Expr) -> Group:
    """The group with its nodes as they are where a guard holds."""
    values = values_where(guard)
    return group if not values else replace(group, nodes=nodes_where(group.nodes, values))


def nodes_where(nodes: Iterable[Node], values: Mapping[str, Expr]) -> tuple[Node, ...]:
    """Nodes where symbols have values."""
    return tuple(bound_node(node, values) for node in nodes)


def _solved(left: Expr, right: Expr) -> tuple[str, Expr] | None:
    """One of two sides that is a symbol which the other one does not have, and the other one."""
    for side, other in ((left, right), (right, left)):
        if isinstance(side, Var) and side.name not in variables(other):
            return side.name, other
    return None


def _is_one(condition: Expr) -> bool:
    return isinstance(condition, Binary) and condition.op == "==" and condition.right == Const(1)


def _equalities(guard: Expr) -> Iterator[tuple[str, Expr]]:
    match guard:
        case Binary("and", left, right):
            yield from _equalities(left)
            yield from _equalities(right)
        case Binary("==", Var(symbol), value):
            yield symbol, value
