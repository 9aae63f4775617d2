"""Einsum: sums of products, two operands at a time; the letters of the equation are the iterators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_letters

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.registry import operator
from tilec.importer.value import Value
from tilec.ir.expr import Const, Expr


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """A tensor and the letters of its dimensions."""

    letters: str
    value: Value


@operator("Einsum")
def _einsum(op: Op) -> Value:
    """Indices of a single operand are summed first, then operands are multiplied from left to right."""
    operands = op.values()
    equation = op.text("equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    left, right = _spelled_out(left, right if arrow else None, operands)
    terms = left.split(",")
    if len(terms) != len(operands) or any(len(t) != v.rank for t, v in zip(terms, operands, strict=False)):
        raise op.invalid(f"the equation {equation!r} does not fit the ranks of its operands")
    if not set("".join(terms)) <= set(ascii_letters):
        raise op.invalid(f"the equation {equation!r} has indices that are no letters")
    factors = [Factor(t, v) for t, v in zip(terms, operands, strict=True)]
    sizes = _sizes(op, factors, equation)
    if not set(right) <= set(sizes) or len(set(right)) < len(right):
        raise op.invalid(f"the result of the equation {equation!r} has an index that no operand has, or one twice")
    if len(factors) > 1:
        factors = [_summed_alone(op, f, n, factors, right) for n, f in enumerate(factors)]
    while len(factors) > 2:
        rest = factors[2:]
        later = set(right).union(*(f.letters for f in rest))
        both = dict.fromkeys(factors[0].letters + factors[1].letters)
        letters = "".join(letter for letter in both if letter in later)
        factors = [Factor(letters, _product(op, factors[:2], letters, f"product{len(rest)}")), *rest]
    return _product(op, factors, right, "")


def _sizes(op: Op, factors: Sequence[Factor], equation: str = "") -> dict[str, Expr]:
    """The extent of every letter; an extent of 1 broadcasts."""
    sizes: dict[str, Expr] = {}
    for factor in factors:
        for letter, extent in zip(factor.letters, factor.value.shape, strict=True):
            known = sizes.setdefault(letter, extent)
            if known == Const(1):
                sizes[letter] = extent
            elif extent != Const(1):
                op.require_same(known, extent, f"index {letter} of {equation!r}")
    return sizes


def _summed_alone(op: Op, factor: Factor, number: int, factors: Sequence[Factor], right: str) -> Factor:
    """The factor summed over the letters that neither other factors nor the result have."""
    needed = set(right).union(*(f.letters for n, f in enumerate(factors) if n != number))
    letters = "".join(dict.fromkeys(letter for letter in factor.letters if letter in needed))
    if set(factor.letters) <= needed:
        return factor
    return Factor(letters, _product(op, [factor], letters, f"operand{number}"))


def _product(op: Op, factors: Sequence[Factor], right: str, part: str) -> Value:
    """The product of factors, summed over the letters that are not in `right`."""
    sizes = _sizes(op, factors)
    axes = dict(zip(sizes, op.builder.iterators(list(sizes), list(sizes.values())), strict=True))
    body: Expr | None = None
    for factor in factors:
        pairs = zip(factor.letters, factor.value.shape, strict=True)
        element = factor.value.access([Const(0) if e == Const(1) else axes[c].var for c, e in pairs])
        body = element if body is None else formula("x * y", x=body, y=element)
    assert body is not None
    summed = [axes[c] for c in sizes if c not in right]
    return op.emit([axes[c] for c in right], body, factors[0].value.ttype, summed, part=part)


def _spelled_out(left: str, right: str | None, operands: Sequence[Value]) -> tuple[str, str]:
    """Both sides of an equation with letters for ellipses, and the right one where it is implied."""
    free = [letter for letter in ascii_letters if letter not in left]
    terms = left.split(",")
    most = 0
    for number, (term, value) in enumerate(zip(terms, operands, strict=False)):
        if "..." in term:
            hidden = max(0, value.rank - len(term) + 3)
            most = max(most, hidden)
            terms[number] = term.replace("...", "".join(reversed(free[:hidden])))
    ellipsis = "".join(reversed(free[:most]))
    left = ",".join(terms)
    if right is None:
        single = sorted(c for c in set(left) - {","} if left.count(c) == 1 and c not in ellipsis)
        return left, ellipsis + "".join(single)
    return left, right.replace("...", ellipsis)
