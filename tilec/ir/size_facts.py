"""What is known of symbolic sizes, and what follows from it: equalities, ranges, divisors and other conditions (B06).

An equality that gives one symbol as an expression of others is substituted. A condition on one symbol alone becomes
part of its range. Every other condition stays as it is, to be checked when sizes are known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import gcd, lcm, prod

from tilec.ir.algebra import bounds_of, equal, polynomial, simplify, simplify_scalar
from tilec.ir.evaluate import integer
from tilec.ir.expr import Binary, Call, Const, Expr, Var, substitute, variables, walk
from tilec.ir.sizes import ANY_SIZE, Constraint, SymbolRange, SymbolValue, intersected, upper_bound
from tilec.ir.text import text_of

Term = tuple[Expr, ...]

LONGEST_PERIOD = 4096
"""Sizes that are looked at for what an equality of quotients amounts to."""


class ContradictionError(ValueError):
    """No sizes fulfil a condition."""


@dataclass(frozen=True, slots=True)
class SizeFacts:
    """What is known of symbols: a range of each, the value of those that are expressions of others, and constraints.

    `solvable` are the symbols that an equality may replace by an expression, in order; an earlier one stays where two
    are equal. `reported` are those that results of calls report.
    """

    solvable: tuple[str, ...] = ()
    ranges: Mapping[str, SymbolRange] = field(default_factory=dict)
    values: Mapping[str, SymbolValue] = field(default_factory=dict)
    constraints: tuple[Constraint, ...] = ()
    reported: tuple[str, ...] = ()

    @property
    def symbols(self) -> tuple[str, ...]:
        """All symbols without a value."""
        return (*self.solvable, *self.reported)

    def without(self, symbols: Collection[str]) -> SizeFacts:
        """What is known of all but some reported symbols."""
        gone = set(symbols)
        return replace(
            self,
            ranges={symbol: entry for symbol, entry in self.ranges.items() if symbol not in gone},
            constraints=tuple(each for each in self.constraints if not variables(each.holds) & gone),
            reported=tuple(symbol for symbol in self.reported if symbol not in gone),
        )

    def says_more_than(self, other: SizeFacts) -> bool:
        """Whether shapes are others than with other facts: a size has a value, or fits another one."""
        return self.values.keys() != other.values.keys() or not self._fitting() <= other._fitting()

    def limits_more_than(self, other: SizeFacts) -> bool:
        """Whether a size that inputs have is in a smaller range than with other facts."""
        pairs = [(self.ranges.get(s, ANY_SIZE), other.ranges.get(s, ANY_SIZE)) for s in self.solvable]
        return any((a.low, a.high, a.divisor) != (b.low, b.high, b.divisor) for a, b in pairs)

    def _fitting(self) -> set[Expr]:
        """The conditions that a size which inputs have is another one or 1."""
        pairs = (each.holds for each in self.constraints if sum(1 for _ in alternatives(each.holds)) == 2)
        return {holds for holds in pairs if not variables(holds) & set(self.reported)}

    def reduced(self, expr: Expr) -> Expr:
        """The expression without symbols that have a value."""
        if not self.values:
            return expr
        return substitute(expr, {symbol: each.value for symbol, each in self.values.items()})


def same(facts: SizeFacts, a: Expr, b: Expr) -> bool | None:
    """Whether two extents are equal for all sizes (True), for none (False), or for some (None)."""
    return True if equal(a, b) else decided(facts, Binary("==", a, b))


def decided(facts: SizeFacts, condition: Expr) -> bool | None:
    """Whether a condition holds for all sizes (True), for none (False), or for some (None)."""
    condition = facts.reduced(condition)
    plain = simplify_scalar(condition)
    if not isinstance(plain, Const):
        if any(each.holds in (condition, plain) or _implies(each.holds, condition) for each in facts.constraints):
            return True
        plain = in_ranges(condition, facts.ranges)
    if isinstance(plain, Const):
        return bool(plain.value)
    if isinstance(condition, Binary) and condition.op == "<=" and _is_least(condition.left, condition.right):
        return True
    if isinstance(condition, Binary) and condition.op == "==":
        zeros = [zero for each in facts.constraints if (zero := _zero(each.holds)) is not None]
        difference = polynomial(Binary("-", condition.left, condition.right))
        return True if any(_is_multiple(difference, polynomial(zero)) for zero in zeros) else None
    return None


def _is_least(expr: Expr, of: Expr) -> bool:
    """Whether an expression is the least of another one and more."""
    if isinstance(expr, Call) and expr.fn == "minimum":
        return any(_is_least(each, of) for each in expr.args)
    return equal(expr, of)


def in_ranges(condition: Expr, ranges: Mapping[str, SymbolRange]) -> Expr:
    """A condition simplified over the ranges and divisors of its symbols: `seq` is replaced by `d * seq` for divisor
    d, so that the symbols of the result are quotients. Only `True` and `False` are of use to callers."""
    known = {symbol: ranges[symbol] for symbol in variables(condition) if symbol in ranges}
    scaled: dict[str, Expr] = {s: Binary("*", Var(s), Const(entry.divisor)) for s, entry in known.items()}
    ends: dict[str, tuple[Expr, Expr]] = {}
    for symbol, entry in known.items():
        most = entry.most
        high: Expr = Var(symbol) if most is None else Const(most // entry.divisor)
        ends[symbol] = (Const(entry.least // entry.divisor), high)
    return simplify_scalar(substitute(condition, scaled), ends)


def assumed(facts: SizeFacts, condition: Expr, origin: str) -> SizeFacts:
    """The facts with one more condition, demanded by `origin`. Raises ContradictionError where no sizes fulfil it."""
    condition = _of_broadcast(facts, _normal(facts.reduced(condition)))
    match decided(facts, condition):
        case True:
            return facts
        case False:
            raise ContradictionError(f"{text_of(condition)} holds for no sizes")
    solved = _solved(facts, _without_exact_quotients(condition, facts.ranges))
    if solved is not None:
        return _with_value(facts, *solved, origin)
    limited = range_of(condition) or _divisor_of(condition, facts.ranges)
    if limited is not None:
        symbol, entry = limited
        return with_range(facts, symbol, replace(entry, origin=origin))
    stronger = tuple(each for each in facts.constraints if not _implies(condition, each.holds))
    return replace(facts, constraints=(*stronger, Constraint(condition, origin)))


def with_range(facts: SizeFacts, symbol: str, entry: SymbolRange) -> SizeFacts:
    """The facts with one more range of a symbol. Raises ContradictionError where no size is left."""
    value = facts.values[symbol].value if symbol in facts.values else None
    if isinstance(value, Var):
        return with_range(facts, value.name, entry)
    if value is not None:
        for condition in conditions_of(value, entry):
            facts = assumed(facts, condition, entry.origin)
        return facts
    known = facts.ranges.get(symbol, ANY_SIZE)
    try:
        both = intersected(known, entry)
    except ValueError as error:
        raise ContradictionError(str(error)) from error
    ranges = {**facts.ranges, symbol: both}
    left = tuple(each for each in facts.constraints if in_ranges(each.holds, ranges) != Const(True))
    return replace(facts, ranges=ranges, constraints=left)


def settled(facts: SizeFacts) -> SizeFacts:
    """The same facts with constraints on one symbol alone as its range, and with upper ends for symbols that a
    constraint limits by others: `found <= batch * 4` where batch is at most 8. Raises ContradictionError."""
    result = _assumed_anew(facts)
    while len(result.constraints) < len(facts.constraints):
        facts, result = result, _assumed_anew(result)
    for _ in range(len(result.constraints)):
        for each in result.constraints:
            match each.holds:
                case Binary("<=", Var(symbol), limit):
                    result = _limited(result, symbol, upper_bound(limit, result.ranges), each.origin)
    return result


def _assumed_anew(facts: SizeFacts) -> SizeFacts:
    """The facts with their constraints assumed once more: one may follow from what is known by now, or be a range."""
    result = replace(facts, constraints=())
    for each in facts.constraints:
        result = assumed(result, each.holds, each.origin)
    return result


def _limited(facts: SizeFacts, symbol: str, high: int | None, origin: str) -> SizeFacts:
    """The facts with an upper end of a symbol, where it is lower than the known one."""
    now = facts.ranges.get(symbol, ANY_SIZE).most
    if high is None or high < 0 or (now is not None and now <= high):
        return facts
    return with_range(facts, symbol, SymbolRange(high=high, origin=origin))


def conditions_of(expr: Expr, entry: SymbolRange) -> list[Expr]:
    """The conditions that an expression is in a range."""
    conditions: list[Expr] = []
    if entry.low:
        conditions.append(Binary(">=", expr, Const(entry.low)))
    if entry.high is not None:
        conditions.append(Binary("<=", expr, Const(entry.high)))
    if entry.divisor > 1:
        conditions.append(divides(Const(entry.divisor), expr))
    return conditions


def divides(divisor: Expr, expr: Expr) -> Expr:
    """The condition that `divisor` divides `expr`, without factors that decide nothing: `s % 2 == 0` for 9 * s by 6."""
    size = divisor.value if isinstance(divisor, Const) else None
    content = gcd(*polynomial(expr).values())
    if isinstance(size, int) and size > 0 and content:
        expr, divisor = simplify(Binary("//", expr, Const(content))), Const(size // gcd(size, content))
    return Binary("==", simplify(Binary("%", expr, divisor)), Const(0))


def fits(extent: Expr, whole: Expr) -> Expr:
    """The condition that a dimension is another one, or is repeated along it."""
    return Binary("or", Binary("==", extent, whole), Binary("==", extent, Const(1)))


def alternatives(condition: Expr) -> Iterator[Expr]:
    """The conditions of which one holds."""
    if isinstance(condition, Binary) and condition.op == "or":
        yield from alternatives(condition.left)
        yield from alternatives(condition.right)
    else:
        yield condition


def _implies(condition: Expr, other: Expr) -> bool:
    """Whether all alternatives of a condition are some of another one."""
    return set(map(_unordered, alternatives(condition))) <= set(map(_unordered, alternatives(other)))


def _unordered(condition: Expr) -> Expr:
    """An equality with its sides in a fixed order."""
    match condition:
        case Binary("==", left, right) if text_of(right) < text_of(left):
            return Binary("==", right, left)
    return condition


def range_of(condition: Expr) -> tuple[str, SymbolRange] | None:
    """The symbol and the range that a condition on one symbol alone amounts to; None for any other condition."""
    match condition:
        case Binary("==", Binary("%", Var(symbol), Const(int() as divisor)), Const(0)) if divisor > 0:
            return symbol, SymbolRange(divisor=divisor)
        case Binary("<=" | ">=" | "<" | ">" | "==" as op, left, right):
            terms = polynomial(Binary("-", left, right))
            constant = terms.get((), 0)
            rest = {term: c for term, c in terms.items() if term}
            if len(rest) != 1:
                return None
            ((term, scale),) = rest.items()
            match term:
                case (Var(symbol),) if op != "==":
                    return _linear_range(symbol, scale, constant, op)
                case (Binary("//", below, Const(int() as divisor)),) if divisor > 0:
                    return _range_below(below, divisor, scale, constant, op)
            return None
        case _:
            return None


def _range_below(below: Expr, divisor: int, scale: int, constant: int, op: str) -> tuple[str, SymbolRange] | None:
    """The range that `scale * (below // divisor) + constant op 0` amounts to."""
    if op == "==":
        # A quotient of 0 says that sizes are less than a divisor, which may be far more than they ever are.
        quotient, rest = divmod(-constant, scale)
        first = range_of(Binary(">=", below, Const(quotient * divisor)))
        last = range_of(Binary("<", below, Const((quotient + 1) * divisor)))
        if rest or not quotient or first is None or last is None:
            return None
        low = max(first[1].low, last[1].low)
        highs = [each.high for each in (first[1], last[1]) if each.high is not None]
        return (first[0], SymbolRange(low, min(highs))) if highs and low <= min(highs) else None
    scale, constant = _from_below(scale, constant, op)
    if scale > 0:
        return range_of(Binary(">=", below, Const(-(constant // scale) * divisor)))
    return range_of(Binary("<", below, Const((constant // -scale + 1) * divisor)))


def _from_below(scale: int, constant: int, op: str) -> tuple[int, int]:
    """The numbers of the condition `scale * size + constant >= 0` that a comparison with 0 amounts to."""
    if op in ("<=", "<"):
        scale, constant = -scale, -constant
    return scale, constant - 1 if op in ("<", ">") else constant


def _linear_range(symbol: str, scale: int, constant: int, op: str) -> tuple[str, SymbolRange] | None:
    """The range of sizes with `scale * size + constant op 0`."""
    scale, constant = _from_below(scale, constant, op)
    if scale > 0:
        return symbol, SymbolRange(max(0, -(constant // scale)))
    high = constant // -scale
    return (symbol, SymbolRange(high=high)) if high >= 0 else None


def accepted_divisor(constraint: Expr, most: int = 64) -> tuple[str, int] | None:
    """The least divisor (up to `most`) for which a constraint on one symbol alone always holds, and the symbol."""
    names = sorted(variables(constraint))
    if len(names) != 1:
        return None
    symbol = names[0]
    fits = (d for d in range(2, most + 1) if in_ranges(constraint, {symbol: SymbolRange(divisor=d)}) == Const(True))
    divisor = next(fits, None)
    return None if divisor is None else (symbol, divisor)


def _divisor_of(condition: Expr, ranges: Mapping[str, SymbolRange]) -> tuple[str, SymbolRange] | None:
    """The symbol and the divisor that an equality of its quotients amounts to: `s == s // 2 * 2` that 2 divides s. None
    where other sizes fulfil it as well.

    Both sides differ by a number that is periodic in the symbol, with the product of all divisors as its period, if
    they are equal for all multiples of some number.
    """
    if not (isinstance(condition, Binary) and condition.op == "=="):
        return None
    accepted = accepted_divisor(condition)
    parts = [part for part in walk(condition) if isinstance(part, Binary) and part.op in ("//", "%")]
    period = prod(int(part.right.value) for part in parts if isinstance(part.right, Const))
    if accepted is None or not 0 < period <= LONGEST_PERIOD:
        return None
    symbol, divisor = accepted
    step = ranges.get(symbol, ANY_SIZE).divisor
    others = (size for size in range(0, lcm(period, step), step) if size % divisor)
    fulfilled = any(integer(condition, {symbol: size}) for size in others)
    return None if fulfilled else (symbol, SymbolRange(divisor=divisor))


def _normal(condition: Expr) -> Expr:
    """A condition with sides in canonical form."""
    if isinstance(condition, Binary) and condition.op in ("and", "or"):
        return replace(condition, left=_normal(condition.left), right=_normal(condition.right))
    if not isinstance(condition, Binary):
        return simplify_scalar(condition)
    return replace(condition, left=simplify(condition.left), right=simplify(condition.right))


def _of_broadcast(facts: SizeFacts, condition: Expr) -> Expr:
    """An equality; of the extent where two sizes broadcast and one of the two, that the other one fits it, also where
    both are multiplied by the same sizes."""
    if not (isinstance(condition, Binary) and condition.op == "=="):
        return condition
    sides = _without_common_factors(condition.left, condition.right)
    for extent, whole in (sides, sides[::-1]):
        match extent:
            case Call("where", (Binary("==", size, Const(1)), other, no)) if no == size and whole in (size, other):
                known = Binary("or", fits(size, other), Binary("==", other, Const(1)))
                if decided(facts, known):
                    return fits(other if whole == size else size, whole)
    return condition


def _without_common_factors(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """Two products without the factors that both have; other expressions as they are."""
    p, q = polynomial(left), polynomial(right)
    if len(p) != 1 or len(q) != 1 or list(p.values()) != list(q.values()):
        return left, right
    (ours,), (theirs,) = p, q
    shared = [atom for atom in dict.fromkeys(ours) for _ in range(min(ours.count(atom), theirs.count(atom)))]
    rest, other = _quotient(ours, tuple(shared)), _quotient(theirs, tuple(shared))
    return (left, right) if rest is None or other is None else (_product(rest), _product(other))


def _solved(facts: SizeFacts, condition: Expr) -> tuple[str, Expr] | None:
    """A symbol and its value, an expression that is certainly no negative number, from an equality."""
    if not (isinstance(condition, Binary) and condition.op == "=="):
        return None
    difference = _reduced(Binary("-", condition.left, condition.right))
    terms = polynomial(difference)
    allowed = set(facts.solvable)
    if not {name for term in terms for atom in term for name in variables(atom)} <= allowed:
        return None
    for symbol in reversed(facts.solvable):
        scale = terms.get((Var(symbol),), 0)
        if scale not in (1, -1):
            continue
        value = simplify(Binary("*", Binary("-", difference, _scaled(symbol, scale)), Const(-scale)))
        low = bounds_of(value)[0]
        if symbol not in variables(value) and low is not None and low >= 0:
            return symbol, value
    return None


def _without_exact_quotients(condition: Expr, ranges: Mapping[str, SymbolRange]) -> Expr:
    """An equality multiplied by the divisors of its quotients that leave no rest: `a // 9 == b // 3` is `a == 3 * b`
    where 9 divides a and 3 divides b."""
    if not (isinstance(condition, Binary) and condition.op == "=="):
        return condition
    terms = polynomial(Binary("-", condition.left, condition.right))
    divided = {term: [_exact_quotient(atom, ranges) for atom in term] for term in terms}
    common = lcm(*(prod(divisor for _, divisor in atoms) for atoms in divided.values()))
    if common == 1:
        return condition
    total: Expr = Const(0)
    for term, coefficient in terms.items():
        scale = coefficient * common // prod(divisor for _, divisor in divided[term])
        whole = _product(dividend for dividend, _ in divided[term])
        total = Binary("+", total, Binary("*", whole, Const(scale)))
    return Binary("==", total, Const(0))


def _exact_quotient(atom: Expr, ranges: Mapping[str, SymbolRange]) -> tuple[Expr, int]:
    """The symbol and the divisor of a quotient without a rest; anything else as it is, by 1."""
    match atom:
        case Binary("//", Var(symbol) as size, Const(int() as divisor)) if divisor > 0:
            return (atom, 1) if ranges.get(symbol, ANY_SIZE).divisor % divisor else (size, divisor)
        case _:
            return atom, 1


def _reduced(difference: Expr) -> Expr:
    """A difference without the common factor of its terms: `32 * a - 32 * b` is 0 where `a - b` is."""
    common = gcd(*polynomial(difference).values())
    return difference if common <= 1 else simplify(Binary("//", difference, Const(common)))


def _scaled(symbol: str, scale: int) -> Expr:
    return Binary("*", Var(symbol), Const(scale))


def _with_value(facts: SizeFacts, symbol: str, value: Expr, origin: str) -> SizeFacts:
    """The facts with a symbol replaced by its value everywhere."""
    new = {symbol: value}
    values = {s: replace(each, value=simplify(substitute(each.value, new))) for s, each in facts.values.items()}
    values[symbol] = SymbolValue(value, origin)
    ranges = dict(facts.ranges)
    entry = ranges.pop(symbol, None)
    solvable = tuple(each for each in facts.solvable if each != symbol)
    result = SizeFacts(solvable, ranges, values, reported=facts.reported)
    for each in facts.constraints:
        result = assumed(result, substitute(each.holds, new), each.origin)
    return result if entry is None else with_range(result, symbol, entry)


def _zero(holds: Expr) -> Expr | None:
    """An expression that is 0 where a constraint holds; for a divisibility the rest without the `%`."""
    match holds:
        case Binary("==", Binary("%", left, divisor), Const(0)):
            return Binary("-", Binary("*", Binary("//", left, divisor), divisor), left)
        case Binary("==", left, right):
            return Binary("-", left, right)
        case _:
            return None


def _is_multiple(p: Mapping[Term, int], zero: Mapping[Term, int]) -> bool:
    """Whether a polynomial is another one times a monomial."""
    if not zero or len(p) != len(zero):
        return False
    first, scale = next(iter(zero.items()))
    return any(
        coefficient % scale == 0
        and (factor := _quotient(term, first)) is not None
        and equal(_sum(p), Binary("*", Binary("*", _sum(zero), _product(factor)), Const(coefficient // scale)))
        for term, coefficient in p.items()
    )


def _quotient(term: Term, divisor: Term) -> Term | None:
    rest = list(term)
    for atom in divisor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def _product(term: Iterable[Expr]) -> Expr:
    factors = tuple(term)
    product: Expr = factors[0] if factors else Const(1)
    for atom in factors[1:]:
        product = Binary("*", product, atom)
    return product


def _sum(p: Mapping[Term, int]) -> Expr:
    total: Expr = Const(0)
    for term, coefficient in p.items():
        total = Binary("+", total, Binary("*", _product(term), Const(coefficient)))
    return total
