"""Algebra of integer expressions: polynomials over atoms, with floor division and modulo split where ranges allow it.

`simplify` brings an index or a size into one canonical form. With the ranges of its variables it also undoes reshapes
(`(h*64 + d) // 64 -> h` for 0 <= d < 64), so that movement operators cost nothing once they are composed into accesses.
Symbolic sizes are variables like any other, hence polynomials.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd

from tilec.ir.expr import Access, Binary, Call, Const, Expr, Var, as_expr, rebuild, variables
from tilec.ir.index_forms import DECIDE, fold_boolean, is_index
from tilec.ir.known_ranges import NO_RANGES, KnownRanges, Ranges, shared_ranges
from tilec.ir.polynomials import (
    Monomial,
    Polynomial,
    add,
    common_factors,
    expression_of,
    key_of,
    multiply,
    product_of,
    quotient_term,
    split,
)


def polynomial(expr: Expr, ranges: Ranges = NO_RANGES) -> Polynomial:
    """The expression as {monomial of atoms: coefficient}; the constant term has the monomial `()`."""
    match expr:
        case Var():
            return {(expr,): 1}
        case Const(value):
            return {(): int(value)} if value else {}
    ranges = _known(ranges)
    known = ranges.polynomials.get(expr)
    if known is None:
        known = ranges.polynomials[expr] = _polynomial(expr, ranges)
    return known


def _known(ranges: Ranges) -> KnownRanges:
    """The ranges as `KnownRanges`. Even a single query needs memoisation: nested extrema simplify the same operands
    many times."""
    return ranges if isinstance(ranges, KnownRanges) else KnownRanges(ranges)


def _polynomial(expr: Expr, ranges: KnownRanges) -> Polynomial:
    match expr:
        case Binary("+", left, right):
            return _recompose(add(polynomial(left, ranges), polynomial(right, ranges)))
        case Binary("-", left, right):
            return _recompose(add(polynomial(left, ranges), polynomial(right, ranges), -1))
        case Call("neg", (operand,)):
            return add({}, polynomial(operand, ranges), -1)
        case Binary("*", left, right):
            return multiply(polynomial(left, ranges), polynomial(right, ranges))
        case Binary("//", left, right):
            return _divide(polynomial(left, ranges), polynomial(right, ranges), ranges)[0]
        case Binary("%", left, right):
            return _divide(polynomial(left, ranges), polynomial(right, ranges), ranges)[1]
        case Call("minimum" | "maximum" as fn, (left, right)):
            return _extremum(fn, polynomial(left, ranges), polynomial(right, ranges), ranges)
        case Call("where", (condition, yes, no)):
            return _choice(simplify_scalar(condition, ranges), yes, no, ranges)
        case _:
            return {(_simplify_inside(expr, ranges),): 1}


def _simplify_inside(expr: Expr, ranges: Ranges) -> Expr:
    match expr:
        case Access():
            return rebuild(expr, lambda e: simplify_scalar(e, ranges))
        case _:
            return expr


def _choice(condition: Expr, yes: Expr, no: Expr, ranges: KnownRanges) -> Polynomial:
    """One of two expressions, the only one that is left where the condition is decided or both are equal, as in
    where(n == 1, 1, n)."""
    if isinstance(condition, Const):
        return polynomial(yes if condition.value else no, ranges)
    a, b = polynomial(yes, ranges), polynomial(no, ranges)
    if isinstance(condition, Binary) and condition.op == "==" and is_index(condition.left):
        sides = polynomial(condition.left, ranges), polynomial(condition.right, ranges)
        if a in sides and b in sides:
            return b
    return a if a == b else {(Call("where", (condition, expression_of(a), expression_of(b))),): 1}


def _extremum(fn: str, a: Polynomial, b: Polynomial, ranges: KnownRanges) -> Polynomial:
    difference = add(a, b, -1)
    low = _limit(difference, ranges, -1)
    if low is not None and low >= 0:
        return a if fn == "maximum" else b
    high = _limit(difference, ranges, +1)
    if high is not None and high <= 0:
        return b if fn == "maximum" else a
    first, second = sorted((expression_of(a), expression_of(b)), key=key_of)
    return {(Call(fn, (first, second)),): 1}


def _recompose(p: Polynomial) -> Polynomial:
    """Merge of a quotient and its remainder, the trace of a merged dimension after a split.

    rewrite: `c*k*(x // c) + k*(x % c) -> k*x`
    """
    for term, k in p.items():
        for position, atom in enumerate(term):
            if not (isinstance(atom, Binary) and atom.op == "%"):
                continue
            rest = term[:position] + term[position + 1 :]
            quotient = Binary("//", atom.left, atom.right)
            split = _quotient_polynomial(quotient)
            scaled = multiply(multiply(split, polynomial(atom.right)), {rest: k})
            if all(p.get(t, 0) == c for t, c in scaled.items() if t) and scaled:
                without = add(add(p, {term: k}, -1), scaled, -1)
                return _recompose(add(without, multiply(polynomial(atom.left), {rest: k})))
    return p


@lru_cache(maxsize=262144)
def _quotient_polynomial(quotient: Binary) -> Polynomial:
    """`x // c` in the form that `_divide` produces: nested divisions merged."""
    known = KnownRanges()
    return _divide(polynomial(quotient.left, known), polynomial(quotient.right, known), known)[0]


def _divide(p: Polynomial, d: Polynomial, ranges: KnownRanges) -> tuple[Polynomial, Polynomial]:
    """Exact quotient and remainder of floor division; a part that cannot be split stays one `//` or `%` atom.

    Both are 0 for a divisor of 0, which occurs in dimensions without elements.
    """
    if not d:
        return {}, {}
    if d == {(): 1}:
        return p, {}
    if len(d) == 1 and next(iter(d.values())) < 0:
        quotient, remainder = _divide(add({}, p, -1), add({}, d, -1), ranges)
        return quotient, add({}, remainder, -1)
    if len(d) != 1:
        left, right = expression_of(p), expression_of(d)
        return {(Binary("//", left, right),): 1}, {(Binary("%", left, right),): 1}
    ((divisor, scale),) = d.items()
    whole: Polynomial = {}
    rest: Polynomial = {}
    for term, coefficient in p.items():
        factor = quotient_term(term, divisor)
        if factor is not None and coefficient % scale == 0:
            whole[factor] = coefficient // scale
        elif factor is not None and not term and not divisor:
            q, r = divmod(coefficient, scale)
            if q:
                whole[()] = whole.get((), 0) + q
            if r:
                rest[()] = r
        else:
            rest[term] = coefficient
    if divisor:
        # A divisor is at least 1, also where a size may be 0.
        sizes = {atom.name: ranges.get(atom.name, (Const(0), atom)) for atom in divisor if isinstance(atom, Var)}
        least = {name: (Const(1), high) for name, (low, high) in sizes.items() if low == Const(0)}
        if least:
            ranges = shared_ranges({**ranges, **least})
    if not rest or _within(rest, d, ranges):
        return whole, rest
    if _within(add(rest, d), d, ranges):
        return add(whole, {(): 1}, -1), add(rest, d)
    quotient, remainder = _reduced(rest, divisor, scale, ranges)
    return add(whole, quotient), remainder


def _reduced(rest: Polynomial, divisor: Monomial, scale: int, ranges: KnownRanges) -> tuple[Polynomial, Polynomial]:
    """Quotient and remainder atoms of a rest that is not certainly below the divisor; nested divisions are merged."""
    left, right = expression_of(rest), expression_of({divisor: scale})
    if not divisor and len(rest) == 1:
        ((term, coefficient),) = rest.items()
        if coefficient == 1 and len(term) == 1 and isinstance(term[0], Binary):
            atom = term[0]
            inner = atom.right.value if isinstance(atom.right, Const) else None
            if atom.op == "//" and isinstance(inner, int):
                merged = Binary("//", atom.left, Const(inner * scale))
                return {(merged,): 1}, {(Binary("%", left, right),): 1}
            if atom.op == "%" and isinstance(inner, int) and inner % scale == 0:
                below = polynomial(Binary("//", atom.left, right), ranges)
                high = _divide(below, {(): inner // scale}, ranges)[1]
                return high, polynomial(Binary("%", atom.left, right), ranges)
    shifted = None if divisor else _shifted_quotient(rest)
    if shifted is not None:
        # (x // c + k) // d = (x + c*k) // (c*d)
        quotient = _divide(polynomial(shifted[0], ranges), {(): shifted[1] * scale}, ranges)[0]
        return quotient, {(Binary("%", left, right),): 1}
    for common in common_factors(rest, scale) if not divisor else ():
        # (c*x + y) // (c*d) = x // d and (c*x + y) % (c*d) = c * (x % d) + y, for 0 <= y < c
        coarse, fine = split(rest, common)
        if not fine or _within(fine, {(): common}, ranges):
            quotient, remainder = _divide(coarse, {(): scale // common}, ranges)
            return quotient, add(fine, remainder, common)
    return {(Binary("//", left, right),): 1}, {(Binary("%", left, right),): 1}


def _shifted_quotient(p: Polynomial) -> tuple[Expr, int] | None:
    """(x + c*k, c) of a polynomial `x // c + k`; None for any other."""
    constant = p.get((), 0)
    match [(term, coefficient) for term, coefficient in p.items() if term]:
        case [((Binary("//", below, Const(int() as inner)),), 1)] if constant and inner > 0:
            return Binary("+", below, Const(constant * inner)), inner
    return None


def _within(rest: Polynomial, d: Polynomial, ranges: KnownRanges) -> bool:
    """Whether 0 <= rest < d holds for all values in the ranges."""
    low = _limit(rest, ranges, -1)
    if low is None or low < 0:
        return False
    slack = _limit(add(add(d, rest, -1), {(): 1}, -1), ranges, -1)
    return slack is not None and slack >= 0


def _bounds(p: Polynomial, ranges: KnownRanges) -> tuple[int | None, int | None]:
    """Integer limits (lowest, highest) of a polynomial, None where there is none. Variables without a range are >=
    0."""
    return _limit(p, ranges, -1), _limit(p, ranges, +1)


def _limit(p: Polynomial, ranges: KnownRanges, sign: int) -> int | None:
    """The lowest (`sign` -1) or highest (1) value."""
    if not p:
        return 0
    key = frozenset(p.items()), sign
    if key not in ranges.limits:
        ranges.limits[key] = _extreme(p, ranges, sign)
    return ranges.limits[key]


MOST_RELAXATIONS = 3
"""Most quotients that give way to what they divide in one query; each may double its work."""


def _extreme(
    p: Polynomial, ranges: KnownRanges, sign: int, pushed: frozenset[str] = frozenset(), quotients: int = 0
) -> int | None:
    """The limit of a polynomial in the direction of `sign`: ranged variables are replaced by the end of their range
    that is extreme, then sizes by theirs; `quotients` counts those that were relaxed on the way."""
    name = _next_variable(p, ranges, sign, pushed)
    if name is None:
        found = _size_extreme(p, ranges, sign)
    else:
        found = _extreme(_pushed(p, name, ranges, sign), ranges, sign, pushed | {name}, quotients)
    if quotients == MOST_RELAXATIONS or not any(isinstance(a, Binary) for t in p for a in t):
        return found
    unit = gcd(*(c for term, c in p.items() if term))
    relaxed = _relaxed({term: c // unit for term, c in p.items() if term}, name, ranges, sign)
    if relaxed is None:
        return found
    scaled = _extreme(relaxed[0], ranges, sign, frozenset(), quotients + 1)
    if scaled is None:
        return found
    limit = unit * (scaled // relaxed[1] if sign > 0 else -(-scaled // relaxed[1])) + p.get((), 0)
    return limit if found is None else min(limit, found) if sign > 0 else max(limit, found)


def _next_variable(p: Polynomial, ranges: KnownRanges, sign: int, pushed: frozenset[str]) -> str | None:
    """The ranged variable that is replaced first: a loop before the sizes that its ends mention, so that what is known
    of both together is kept; in products one that goes the same way in all of them."""
    names = {a.name for t in p for a in t if isinstance(a, Var) and a.name in ranges} - pushed
    if len(names) > 1:
        names -= {inner for name in names for inner in ranges.mentioned(name) if inner != name}
    if len(names) > 1 and any(len(term) > 1 for term in p):
        return min(names, key=lambda name: (_moves_both_ways(p, name, sign), name))
    return min(names, default=None)


def _moves_both_ways(p: Polynomial, name: str, sign: int) -> bool:
    """Whether one term of a polynomial is extreme at the low end of a variable, another at the high end."""
    return len({(c > 0) == (sign > 0) for term, c in p.items() if Var(name) in term}) > 1


def _pushed(p: Polynomial, name: str, ranges: KnownRanges, sign: int) -> Polynomial:
    """The polynomial with a variable at the end of its range that is extreme for each term."""
    low, high = ranges[name]
    pushed: Polynomial = {}
    for term, coefficient in p.items():
        if Var(name) not in term:
            pushed = add(pushed, {term: coefficient})
            continue
        upward = (coefficient > 0) == (sign > 0)
        end = polynomial(high if upward else low, ranges.free)
        factor = tuple(a for a in term if a != Var(name))
        power = len(term) - len(factor)
        value: Polynomial = {factor: coefficient}
        for _ in range(power):
            value = multiply(value, end)
        pushed = add(pushed, value)
    return pushed


def _relaxed(p: Polynomial, name: str | None, ranges: KnownRanges, sign: int) -> tuple[Polynomial, int] | None:
    """(q, n), where q is n times a limit of the polynomial without one quotient: `d * (x // d)` lies in [x - d + 1, x].

    Only for quotients of variable `name` (None: of any) that others of its terms depend on as well, and with factors
    that are never negative.
    """
    for term, coefficient in p.items():
        for place, atom in enumerate(term):
            match atom:
                case Binary("//", left, Const(int() as divisor)) if divisor > 0:
                    inside = variables(left)
                case _:
                    continue
            others = frozenset[str]().union(*(variables(a) for t in p if t != term for a in t))
            if not inside & others or (name is not None and name not in inside):
                continue
            rest = (*term[:place], *term[place + 1 :])
            lows = [_atom_bounds(a, ranges)[0] for a in rest]
            if any(low is None or low < 0 for low in lows):
                continue
            scale = divisor // gcd(divisor, coefficient)
            value = polynomial(left, ranges)
            if (coefficient > 0) != (sign > 0):
                value = add(value, {(): 1 - divisor})
            without = {t: c * scale for t, c in p.items() if t != term}
            return add(without, multiply(value, {rest: 1}), coefficient * scale // divisor), scale
    return None


def _size_extreme(p: Polynomial, ranges: KnownRanges, sign: int) -> int | None:
    total = 0
    for term, coefficient in p.items():
        low, high = 1, 1
        unbounded = False
        for atom in term:
            atom_low, atom_high = _atom_bounds(atom, ranges)
            if atom_low is None or atom_low < 0:
                return None
            low *= atom_low
            unbounded = unbounded or atom_high is None
            high *= atom_high or 0
        upward = (coefficient > 0) == (sign > 0)
        if upward and unbounded:
            return None
        total += coefficient * (high if upward else low)
    return total


def _atom_bounds(atom: Expr, ranges: KnownRanges) -> tuple[int | None, int | None]:
    if isinstance(atom, Var):
        return 0, None
    known = ranges.atom_bounds.get(atom)
    if known is None:
        known = ranges.atom_bounds[atom] = _compound_bounds(atom, ranges)
    return known


def _compound_bounds(atom: Expr, ranges: KnownRanges) -> tuple[int | None, int | None]:
    match atom:
        case Binary("%", _, Const(int() as modulus)):
            return min(0, modulus + 1), max(0, modulus - 1)
        case Binary("//", left, Const(int() as divisor)) if divisor > 0:
            low, high = _bounds(polynomial(left, ranges), ranges)
            return (
                None if low is None else low // divisor,
                None if high is None else high // divisor,
            )
        case Binary("//" | "%" as op, left, right):  # by a size, 0 by 0
            a, b = _bounds(polynomial(left, ranges), ranges), _bounds(polynomial(right, ranges), ranges)
            if a[0] is None or a[0] < 0 or b[0] is None or b[0] < 0:
                return None, None
            below = None if op == "//" or b[1] is None else max(0, b[1] - 1)
            return 0, min((n for n in (a[1], below) if n is not None), default=None)
        case Call("minimum" | "maximum" as fn, (left, right)):
            a, b = _bounds(polynomial(left, ranges), ranges), _bounds(polynomial(right, ranges), ranges)
            pick = min if fn == "minimum" else max
            lows = [x for x in (a[0], b[0]) if x is not None]
            highs = [x for x in (a[1], b[1]) if x is not None]
            enough = 2 if fn == "minimum" else 1
            low = pick(lows) if len(lows) >= enough else None
            high = pick(highs) if len(highs) >= 3 - enough else None
            return low, high
        case Call("where", (_, yes, no)):
            a, b = _bounds(polynomial(yes, ranges), ranges), _bounds(polynomial(no, ranges), ranges)
            return (
                None if a[0] is None or b[0] is None else min(a[0], b[0]),
                None if a[1] is None or b[1] is None else max(a[1], b[1]),
            )
        case _:
            return None, None


@lru_cache(maxsize=262144)
def _simplify_plain(expr: Expr) -> Expr:
    return expression_of(polynomial(expr, KnownRanges()))


def simplify(expr: int | Expr, ranges: Ranges = NO_RANGES) -> Expr:
    """The canonical form of an integer expression; `ranges` of variables allow more to be cancelled."""
    expr = as_expr(expr)
    if isinstance(expr, Const | Var):
        return expr
    if not ranges:
        return _simplify_plain(expr)
    return expression_of(polynomial(expr, _known(ranges)))


def bounds_of(expr: int | Expr, ranges: Ranges = NO_RANGES) -> tuple[int | None, int | None]:
    """Lowest and highest value of an integer expression, None where no integer limit is known."""
    ranges = _known(ranges)
    return _bounds(polynomial(as_expr(expr), ranges), ranges)


def equal(a: int | Expr, b: int | Expr, ranges: Ranges = NO_RANGES) -> bool:
    """Whether two integer expressions have the same polynomial, hence are equal for all values of their variables."""
    return not add(polynomial(as_expr(a), ranges), polynomial(as_expr(b), ranges), -1)


def linear_form(expr: Expr, ranges: Ranges = NO_RANGES) -> tuple[dict[Expr, int], int]:
    """({atom: coefficient}, constant) of an index; a product of several atoms counts as one atom."""
    p = polynomial(expr, _known(ranges))
    return {product_of(t): c for t, c in p.items() if t}, p.get((), 0)


def simplify_scalar(expr: Expr, ranges: Ranges = NO_RANGES) -> Expr:
    """Simplify the integer parts of any expression: indices of accesses and comparisons of indices.

    Comparisons that the ranges decide become `True` or `False`; `and`, `or`, `not` and `where` fold over them.
    """
    ranges = _known(ranges)
    match expr:
        case Access(tensor, index):
            return Access(tensor, tuple(_simplify_index(i, ranges) for i in index))
        case Binary(op, left, right) if op in DECIDE:
            a, b = _simplify_side(left, ranges), _simplify_side(right, ranges)
            if not (is_index(a) and is_index(b)):
                return expr if a is left and b is right else Binary(op, a, b)
            low, high = _bounds(add(polynomial(a, ranges), polynomial(b, ranges), -1), ranges)
            decided = DECIDE[op](low, high)
            return Binary(op, a, b) if decided is None else Const(decided)
        case Call("not", (operand,)):
            inside = simplify_scalar(operand, ranges)
            return Const(not inside.value) if isinstance(inside, Const) else Call("not", (inside,))
        case Binary("and" | "or" as op, left, right):
            return fold_boolean(op, simplify_scalar(left, ranges), simplify_scalar(right, ranges))
        case Call("where", (condition, yes, no)):
            c = simplify_scalar(condition, ranges)
            if isinstance(c, Const):
                return simplify_scalar(yes if c.value else no, ranges)
            a, b = simplify_scalar(yes, ranges), simplify_scalar(no, ranges)
            return a if a == b else Call("where", (c, a, b))
        case Call("u32", (place,)) if is_index(place):
            return Call("u32", (simplify(place, ranges),))
        case _:
            return rebuild(expr, lambda e: simplify_scalar(e, ranges))


def _simplify_index(index: Expr, ranges: Ranges) -> Expr:
    """An index simplified; one that reads tensors as far as it does not."""
    if is_index(index):
        return simplify(index, ranges)
    match index:
        case Call("where", (condition, yes, no)):
            c = simplify_scalar(condition, ranges)
            if isinstance(c, Const):
                return _simplify_index(yes if c.value else no, ranges)
            a, b = _simplify_index(yes, ranges), _simplify_index(no, ranges)
            return a if a == b else Call("where", (c, a, b))
        case Access():
            return simplify_scalar(index, ranges)
        case _:
            made = rebuild(index, lambda e: _simplify_index(e, ranges))
            return simplify(made, ranges) if made is not index and is_index(made) else made


def _simplify_side(expr: Expr, ranges: Ranges) -> Expr:
    """One side of a comparison."""
    made = simplify_scalar(expr, ranges)
    return simplify(made, ranges) if is_index(made) else made
