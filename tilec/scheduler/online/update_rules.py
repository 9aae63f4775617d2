"""Update rules of partial results that depend on other partial results (online softmax, Welford).

    sum(t, g(X) * data[t])           ->  acc * g(new) / g(old)
    sum(t, data[t] + g(T / count))   ->  acc + count * (g(new) - g(old))
    sum(t, s * (y[t] - mean(y))**2)  ->  acc + s * count * (mean_old - mean_new)**2

`count` is the number of elements summed so far. Bodies of any other form have no rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tilec.ir.expr import NEUTRAL, Access, Binary, Call, Const, Expr, rebuild, walk
from tilec.lower.shared_loops import BEFORE
from tilec.scheduler.online.scalar_algebra import Term, Terms, added, positive, replaced, terms_of, vanishes


@dataclass(frozen=True, slots=True)
class RunningReduction:
    """A reduction that is read before it is complete: its operator and its body's normal form in the reader's
    iterators."""

    reducer: str
    body: Terms


RunningReductions = Mapping[Access, RunningReduction]
"""The accesses of a body to reductions that are not complete yet."""


def update_rule(partial: Access, body: Expr, running: RunningReductions, count: Access | None) -> Expr | None:
    """The value `partial` of a sum over `body` after the reductions it depends on took a step.

    The elements of this step are not added yet. `count` is the running number of elements, if there is one. None when
    no rule applies.
    """
    if not any(isinstance(part, Access) and part in running for part in walk(body)):
        return partial
    scaled = _scaled(partial, terms_of(body), running)
    if scaled is not None or count is None:
        return scaled
    return _shifted(partial, body, running, count) or _centred(partial, body, running, count)


def previous_value(value: Expr) -> Expr:
    """The value before this step."""
    return Call(BEFORE, (value,))


# acc * g(new) / g(old)


def _scaled(partial: Access, body: Terms, running: RunningReductions) -> Expr | None:
    """acc * g(new) / g(old), for a product with exponentials and reciprocals of running values; None if one can
    overflow."""
    parts_of_terms = [_growing_part(term, running) for term in body]
    if not parts_of_terms or parts_of_terms[0] is None or any(parts != parts_of_terms[0] for parts in parts_of_terms):
        return None
    powers, slopes = parts_of_terms[0]
    if not all(_bounded(term, powers, slopes, running) for term in body):
        return None
    factors: list[Expr] = []
    resets: list[Expr] = []
    for value in running:
        if value not in powers and value not in slopes:
            continue
        old = previous_value(value)
        factor = Binary("/", old, value) if value in powers else _exp(value, slopes[value])
        factors.append(Call("where", (Binary("==", old, value), Const(1.0), factor)))
        neutral = Const(NEUTRAL[running[value].reducer])
        resets.append(Binary("and", Binary("==", old, neutral), Binary("!=", old, value)))
    return Call("where", (_joined("or", resets), Const(0.0), _joined("*", [partial, *factors])))


def _exp(value: Expr, slope: Fraction) -> Expr:
    """exp(slope * (new - old))."""
    ends = (previous_value(value), value) if slope < 0 else (value, previous_value(value))
    difference: Expr = Binary("-", *ends)
    if abs(slope) != 1:
        difference = Binary("*", difference, Const(float(abs(slope))))
    return Call("exp", (difference,))


def _growing_part(term: Term, running: RunningReductions) -> tuple[dict[Expr, int], dict[Expr, Fraction]] | None:
    """Powers of running values and their factors in the exponent; None where other expressions contain them."""
    powers: dict[Expr, int] = {}
    for atom, power in term.powers:
        if atom in running:
            powers[atom] = power
        elif _reads(atom, running):
            return None
    slopes: dict[Expr, Fraction] = {}
    for inner, coefficient in term.exponent:
        if not _term_reads(inner, running):
            continue
        match tuple(inner.powers):
            case ((Access() as atom, 1),) if atom in running and not inner.exponent:
                slopes[atom] = coefficient
            case _:
                return None
    return powers, slopes


def _bounded(
    term: Term, powers: Mapping[Expr, int], slopes: Mapping[Expr, Fraction], running: RunningReductions
) -> bool:
    """Whether no factor can overflow.

    Exponents stay at most 0: the running value is the largest (smallest) of the values it is subtracted from. A divisor
    is a sum of non-negative values of which the body is a multiple.
    """
    for value, slope in slopes.items():
        if running[_access(value)].reducer != ("max" if slope < 0 else "min"):
            return False
    exponent = dict(term.exponent)
    if slopes and not vanishes(replaced(exponent, lambda atom: _body(atom, running)), exponent):
        return False
    for value, power in powers.items():
        growing = running[_access(value)]
        if power != -1 or growing.reducer != "sum" or len(growing.body) != 1 or not positive(growing.body):
            return False
        (share,) = growing.body
        if share.exponent != term.exponent or not _divides(share, term):
            return False
    return True


def _body(atom: Expr, running: RunningReductions) -> Terms | None:
    return running[atom].body if isinstance(atom, Access) and atom in running else None


def _access(value: Expr) -> Access:
    assert isinstance(value, Access)
    return value


def _divides(share: Term, term: Term) -> bool:
    """Whether a product is a multiple of another one in magnitude."""
    have = dict(term.powers)
    for atom, power in share.powers:
        inner = atom.args[0] if isinstance(atom, Call) and atom.fn == "abs" else atom
        if max(have.get(atom, 0), have.get(inner, 0)) < power:
            return False
    return True


# acc + count * (g(new) - g(old))


def _shifted(partial: Access, body: Expr, running: RunningReductions, count: Access) -> Expr | None:
    """acc + count * (g(new) - g(old)), for a sum of constant summands and of running means."""
    ends = _means(body, running, count)
    if not ends:
        return None
    moved = _joined("+", [_difference(sign, part, running) for sign, part in ends])
    return _counted(partial, count, Binary("*", previous_value(count), moved))


def _means(body: Expr, running: RunningReductions, count: Access) -> list[tuple[int, Expr]] | None:
    """The summands that change in the loop, with their signs; None if one is not a running mean."""
    growing: list[tuple[int, Expr]] = []
    for sign, part in _summands(body):
        if not _reads(part, running):
            continue
        for term in terms_of(part):
            powers = dict(term.powers)
            rest = [atom for atom in powers if atom != count]
            if term.exponent or powers.get(count) != -1 or len(rest) != 1 or powers[rest[0]] != 1:
                return None
            if _body(rest[0], running) is None or running[_access(rest[0])].reducer != "sum":
                return None
        growing.append((sign, part))
    return growing


def _summands(expr: Expr, sign: int = 1) -> list[tuple[int, Expr]]:
    match expr:
        case Binary("+" | "-" as op, left, right):
            return [*_summands(left, sign), *_summands(right, sign if op == "+" else -sign)]
        case Call("neg", (operand,)):
            return _summands(operand, -sign)
    return [(sign, expr)]


def _difference(sign: int, part: Expr, running: RunningReductions) -> Expr:
    """sign * (new - old)."""
    old = _former(part, running)
    return Binary("-", part, old) if sign > 0 else Binary("-", old, part)


def _former(expr: Expr, running: RunningReductions) -> Expr:
    if isinstance(expr, Access):
        return previous_value(expr) if expr in running else expr
    return rebuild(expr, lambda part: _former(part, running))


def _counted(partial: Access, count: Access, more: Expr) -> Expr:
    return Call("where", (Binary("==", previous_value(count), Const(0.0)), partial, Binary("+", partial, more)))


# acc + s * count * (mean_old - mean_new)**2


def _centred(partial: Access, body: Expr, running: RunningReductions, count: Access) -> Expr | None:
    """acc + s * count * (mean_old - mean_new)**2, for squared distances from a running mean."""
    split = _square(body, running)
    if split is None:
        return None
    base, scale = split
    ends = _means(base, running, count)
    if not ends or not any(_is_mean(base, value, growing, count) for value, growing in running.items()):
        return None
    moved = _joined("+", [_difference(sign, part, running) for sign, part in ends])
    more = Binary("*", previous_value(count), Binary("*", moved, moved))
    return _counted(partial, count, more if scale == 1 else Binary("*", more, Const(float(scale))))


def _square(body: Expr, running: RunningReductions) -> tuple[Expr, Fraction] | None:
    """(b, s) with body = s * b * b."""
    match body:
        case Call("pow", (base, Const(2 | 2.0))):
            return base, Fraction(1)
        case Binary("*", left, right) if left == right:
            return left, Fraction(1)
        case Binary("*" | "/" as op, left, right):
            sides = ((left, right), (right, left)) if op == "*" else ((left, right),)
            for inner, factor in sides:
                value, inner_square = terms_of(factor), _square(inner, running)
                if inner_square is not None and list(value) == [Term()]:
                    scale = value[Term()] if op == "*" else 1 / value[Term()]
                    return inner_square[0], inner_square[1] * scale
    return None


def _is_mean(base: Expr, value: Access, growing: RunningReduction, count: Access) -> bool:
    """Whether the base is the summand of a sum `value` minus its mean, up to a factor."""
    if growing.reducer != "sum" or value == count:
        return False
    mean = terms_of(Binary("/", value, count))
    distance, terms = added(growing.body, mean, Fraction(-1)), terms_of(base)
    if distance.keys() != terms.keys():
        return False
    first = next(iter(distance))
    return vanishes(added(terms, distance, -terms[first] / distance[first]), terms)


def _term_reads(term: Term, running: RunningReductions) -> bool:
    inner = (atom for part, _ in term.exponent for atom, _ in part.powers)
    return any(_reads(atom, running) for atom in (*(atom for atom, _ in term.powers), *inner))


def _reads(expr: Expr, running: RunningReductions) -> bool:
    return any(isinstance(part, Access) and part in running for part in walk(expr))


def _joined(op: str, parts: Sequence[Expr]) -> Expr:
    first, *rest = parts
    for part in rest:
        first = Binary(op, first, part)
    return first
