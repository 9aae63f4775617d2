"""Versions of a tile by its guards: where a condition on indices holds at all points, or at none, nobody tests it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import gcd

from tilec.codegen.cpu.guards import conjuncts
from tilec.codegen.cpu.settle import settle
from tilec.codegen.cpu.tree import Choose, Step, Tile
from tilec.ir.algebra import Ranges, linear_form
from tilec.ir.expr import Access, Binary, Call, Const, Expr, Var, accesses, children, rebuild, variables
from tilec.ir.program_structure import is_integer

DEPTH = 4
"""Most conditions of one tile that are decided, one inside the branch of another: each may treble the code."""

_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def _choices(expr: Expr) -> Iterator[Call]:
    """`where` of conditions on indices, outermost first; offsets of accesses are left alone."""
    if isinstance(expr, Access):
        return
    if isinstance(expr, Call) and expr.fn == "where" and not accesses(expr.args[0]):
        yield expr
    for child in children(expr):
        yield from _choices(child)


def _taken(expr: Expr, choice: Call, branch: Expr) -> Expr:
    """The expression with a choice replaced by one of its branches."""
    if expr == choice:
        return branch
    return expr if isinstance(expr, Access) else rebuild(expr, lambda e: _taken(e, choice, branch))


def everywhere(condition: Expr, extents: dict[str, Expr], ranges: Ranges) -> Expr | None:
    """The condition on variables outside under which a comparison of indices holds at all points of a box.

    None where a dimension enters the comparison in another way than linearly, and for comparisons of other numbers.
    """
    if not isinstance(condition, Binary) or condition.op not in _OPPOSITE:
        return None
    if not (is_integer(condition.left) and is_integer(condition.right)):
        return None
    difference = Binary("-", condition.left, condition.right)
    atoms, constant = linear_form(difference, ranges)
    worst: Expr = Const(constant)
    for atom, coefficient in atoms.items():
        term = atom
        if isinstance(atom, Var) and atom.name in extents:
            upward = (condition.op in ("<", "<=")) == (coefficient > 0)
            term = Binary("-", extents[atom.name], Const(1)) if upward else Const(0)
        elif variables(atom) & set(extents):
            return None
        worst = Binary("+", worst, Binary("*", term, Const(coefficient)))
    return Binary(condition.op, settle(worst, ranges), Const(0))


def _all(conditions: list[Expr | None]) -> Expr | None:
    total: Expr | None = None
    for condition in conditions:
        if condition is None:
            return None
        total = condition if total is None else Binary("and", total, condition)
    return total


def alternatives(holds: Expr, fails: Expr) -> bool:
    """Whether a comparison of indices always holds at all points of a box or at none, from the conditions for both.

    Between them lie sums of multiples that leave some of the points on one side: none, where all step over that gap.
    """
    if not (isinstance(holds, Binary) and isinstance(fails, Binary)):
        return False
    (atoms, first), (others, last) = linear_form(holds.left), linear_form(fails.left)
    gap = {
        "<": (-first, -last - 1),
        "<=": (1 - first, -last),
        ">": (1 - last, -first),
        ">=": (-last, -first - 1),
    }[holds.op]
    step = gcd(*atoms.values())
    return atoms == others and step > 0 and gap[1] // step * step < gap[0]


def versions(tile: Tile, ranges: Ranges, depth: int = DEPTH) -> tuple[Step, ...]:
    """The tile with its guards decided where that can be said of all its points at once, and as it is elsewhere.

    Each part of a concatenation that tiles do not straddle is a tile of its own, however many there are.  (Measured:
    after four of eight operands the rest was gathered element by element, 5 % of a network's time.)
    """
    choice = next(_choices(tile.value), None)
    if choice is None or not depth:
        return (tile,)
    extents = {d.name: d.extent for d in tile.dims}
    condition, yes, no = choice.args
    holds = _all([everywhere(c, extents, ranges) for c in conjuncts(condition)])
    if holds is None:
        return (tile,)
    rest: tuple[Step, ...] = (tile,)
    inside = replace(tile, value=_taken(tile.value, choice, yes))
    if isinstance(condition, Binary) and condition.op in _OPPOSITE:
        fails = everywhere(Binary(_OPPOSITE[condition.op], condition.left, condition.right), extents, ranges)
        if fails is not None:
            other = replace(tile, value=_taken(tile.value, choice, no))
            apart = alternatives(holds, fails)
            plain = apart and next(_choices(inside.value), None) is None
            rest = versions(other, ranges, depth if plain else depth - 1)
            rest = rest if apart else (Choose(fails, rest, (tile,)),)
    return (Choose(holds, versions(inside, ranges, depth - 1), rest),)
