"""Versions of a tile by its guards: where a condition on indices holds at all points, or at none, nobody tests it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import replace
from math import gcd

from tilec.codegen.cpu.guards import conjuncts
from tilec.codegen.cpu.kernel_ir import If, Step, Tile
from tilec.codegen.cpu.simplify_ranges import simplify_in_ranges
from tilec.ir.algebra import linear_form, simplify, simplify_scalar
from tilec.ir.expr import Access, Binary, Call, Const, Expr, Var, accesses, children, constant_value, rebuild, variables
from tilec.ir.known_ranges import Ranges
from tilec.ir.program import ComputeTile
from tilec.ir.verify.structure import is_integer

DEPTH = 4
"""Most conditions of one tile that are decided, one inside the branch of another: each may treble the code."""

NARROWEST = 4
"""Fewest neighbours in memory that are worth a tile of their own."""

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
    return Binary(condition.op, simplify_in_ranges(worst, ranges), Const(0))


def _all(conditions: list[Expr | None]) -> Expr | None:
    total: Expr | None = None
    for condition in conditions:
        if condition is None:
            return None
        total = condition if total is None else Binary("and", total, condition)
    return total


def split_straddling(statement: ComputeTile, along: str, ranges: Ranges) -> tuple[str, int] | None:
    """An iterator whose tile lies on several sides of some conditions, and the width of pieces that never do.

    None where the pieces would be too narrow `along` the iterator whose neighbours lie side by side in memory.
    (Measured: tiles of 64 channels over a concatenation of sixteen maps of 16 channels, gathered element by element,
    took a third of the time of the convolutions that made them.)
    """
    sizes = {name: constant_value(simplify(Binary("-", hi, lo), ranges)) or 0 for name, lo, hi in statement.box}
    first = {name: lo for name, lo, _ in statement.box}
    widths: dict[str, int] = {}
    for choice in _choices(statement.expr.value):
        for name, boundary in _boundaries(choice.args[0], first.keys(), ranges):
            if name in statement.expr.spatial:
                atoms, constant = linear_form(Binary("-", boundary, first[name]), ranges)
                widths[name] = gcd(widths.get(name, sizes[name]), constant, *atoms.values())
    for name, width in widths.items():
        if 0 < width < sizes[name] and (width if name == along else sizes[along]) >= NARROWEST:
            return name, width
    return None


def _boundaries(condition: Expr, iterators: Set[str], ranges: Ranges) -> Iterator[tuple[str, Expr]]:
    """The iterator that a comparison of indices has on one side, and the value from which on it is another one."""
    if not isinstance(condition, Binary) or condition.op not in _OPPOSITE:
        return
    if not (is_integer(condition.left) and is_integer(condition.right)):
        return
    difference = Binary("-", condition.left, condition.right)
    atoms, _ = linear_form(difference, ranges)
    moving = [(atom, factor) for atom, factor in atoms.items() if variables(atom) & iterators]
    iterator, factor = moving[0] if len(moving) == 1 else (None, 0)
    if not isinstance(iterator, Var) or abs(factor) != 1:
        return
    # iterator * factor + others < 0, and so on
    others = Binary("-", difference, Binary("*", iterator, Const(factor)))
    late = (condition.op in ("<=", ">")) == (factor > 0)
    yield iterator.name, Binary("+", Binary("*", others, Const(-factor)), Const(int(late)))


def guard_alternatives(holds: Expr, fails: Expr) -> bool:
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


def specialize_guards(tile: Tile, ranges: Ranges, depth: int = DEPTH) -> tuple[Step, ...]:
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
            apart = guard_alternatives(holds, fails)
            plain = apart and next(_choices(inside.value), None) is None
            rest = specialize_guards(other, ranges, depth if plain else depth - 1)
            rest = rest if apart else (If(fails, rest, (tile,)),)
    return (If(holds, specialize_guards(inside, ranges, depth - 1), rest),)


def specialize_open_guards(tile: Tile, ranges: Ranges) -> tuple[Step, ...]:
    """The versions of a tile with open sizes, those left out that ranges of symbols rule out."""
    return tuple(_possible(specialize_guards(tile, ranges), ranges))


def _possible(steps: Iterable[Step], ranges: Ranges) -> Iterator[Step]:
    for step in steps:
        if not isinstance(step, If):
            yield step
            continue
        condition = simplify_scalar(step.condition, ranges)
        yes, no = (tuple(_possible(branch, ranges)) for branch in (step.yes, step.no))
        if isinstance(condition, Const):
            yield from yes if condition.value else no
        else:
            yield If(condition, yes, no)
