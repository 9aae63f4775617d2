"""Partial evaluation: constants, and integers that are expressions of the symbols (results of `Shape`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

from numpy.typing import NDArray

from tilec.importer.value import MAX_TRACKED_ELEMENTS, Value, static
from tilec.importer.weights import Stored
from tilec.ir.algebra import bounds_of, equal, simplify, simplify_scalar
from tilec.ir.evaluate import evaluate, exactly_rounded
from tilec.ir.expr import (
    COMPARISONS,
    Access,
    Binary,
    Call,
    Const,
    Expr,
    Reduce,
    Scalar,
    TensorExpr,
    Var,
    constant_value,
    operands,
    substitute,
    variables,
    walk,
)
from tilec.ir.graph import Node
from tilec.ir.size_facts import SizeFacts, decided
from tilec.ir.types import TTYPES, element_bytes, is_float

MAX_FOLDED_BYTES = 1 << 20
"""Maximal bytes of a result folded at import; larger ones remain nodes that code generation evaluates once."""

MAX_FOLDED_STEPS = 1 << 24
"""Maximal number of evaluations of a body for folding at import."""

MAX_CONDITION_SIZE = 64
"""Maximal number of sub-expressions of an element that depends on conditions of sizes."""

_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def fold_constant(expr: TensorExpr, values: Mapping[str, Value], ttype: str) -> NDArray[Any] | None:
    """The contents of a tensor all of whose operands are constants, or None when it should remain a node.

    Only operations with equal results on every machine are folded: integers, movement and exactly rounded operations.
    """
    shape = static(expr.shape)
    domain = static(expr.extents)
    arrays = {name: values[name].array for name in operands(expr)}
    if shape is None or domain is None or any(array is None for array in arrays.values()):
        return None
    if not variables(expr.value) <= set(expr.iterators):
        return None
    types = {name: values[name].ttype for name in arrays}
    if any(TTYPES[each].coded for each in (ttype, *types.values())):
        return None
    if _dequantizes(shape, values, types, ttype):
        return None
    size = prod(shape) * element_bytes(ttype)
    if size > MAX_FOLDED_BYTES or prod(domain) > MAX_FOLDED_STEPS or not exactly_rounded(expr, types):
        return None
    return evaluate(expr, {name: array for name, array in arrays.items() if array is not None}, ttype=ttype)


def _dequantizes(shape: Sequence[int], values: Mapping[str, Value], types: Mapping[str, str], ttype: str) -> bool:
    """Whether real numbers are made of codes of at most 8 bits, which take less memory; of a few it does not matter."""
    if not is_float(ttype) or prod(shape) <= 1:
        return False
    coded = (name for name, kind in types.items() if TTYPES[kind].kind in ("int", "uint") and TTYPES[kind].bits <= 8)
    return any(static(values[name].shape) == tuple(shape) for name in coded)


def evaluate_constants(
    nodes: Sequence[Node], constants: Mapping[str, Stored], values: Mapping[str, Value]
) -> NDArray[Any] | None:
    """The contents of the last of `nodes`, which are in order and read each other; None unless the rest are constants.

    None also beyond `MAX_FOLDED_STEPS`, and for symbolic sizes.
    """
    domains = [static(node.expr.extents) for node in nodes]
    sources = {operand for node in nodes for operand in operands(node.expr)} - {node.name for node in nodes}
    steps = sum(prod(domain) for domain in domains if domain is not None)
    if None in domains or steps > MAX_FOLDED_STEPS or not nodes or not sources <= constants.keys():
        return None
    if any(not variables(node.expr.value) <= set(node.expr.iterators) for node in nodes):
        return None
    arrays = {name: constants[name].array for name in sources}
    for node in nodes:
        arrays[node.name] = evaluate(node.expr, arrays, ttype=values[node.name].ttype)
    return arrays[nodes[-1].name]


def fold_elements(expr: TensorExpr, values: Mapping[str, Value], facts: SizeFacts) -> tuple[Expr, ...] | None:
    """The elements of a small integer tensor as expressions of the symbols; None when one has no such form."""
    domain = static(expr.extents)
    if domain is None or prod(domain) > MAX_TRACKED_ELEMENTS:
        return None
    known = _Known({}, facts)
    for name in operands(expr):
        shape, elements = static(values[name].shape), values[name].known()
        if shape is None or elements is None:
            return None
        known.tensors[name] = (shape, elements)
    rank = len(expr.spatial)
    result: list[Expr] = []
    for point in product(*(range(extent) for extent in domain[:rank])):
        terms: list[Expr] = []
        for step in product(*(range(extent) for extent in domain[rank:])):
            at: dict[str, Expr] = {i: Const(p) for i, p in zip(expr.iterators, point + step, strict=True)}
            term = _partial(substitute(expr.value, at), known)
            if term is None:
                return None
            terms.append(term)
        element = _reduced(expr.body, terms)
        if element is None:
            return None
        result.append(element)
    return tuple(result)


class _Known(NamedTuple):
    """Shapes and elements of operands, and what is known of sizes."""

    tensors: dict[str, tuple[tuple[int, ...], tuple[Expr, ...]]]
    facts: SizeFacts


def _reduced(body: Expr, terms: list[Expr]) -> Expr | None:
    if not isinstance(body, Reduce):
        return terms[0]
    combine: dict[str, Callable[[Expr, Expr], Expr]] = {
        "sum": lambda a, b: Binary("+", a, b),
        "prod": lambda a, b: Binary("*", a, b),
        "max": lambda a, b: Call("maximum", (a, b)),
        "min": lambda a, b: Call("minimum", (a, b)),
    }
    if not terms:
        return {"sum": Const(0), "prod": Const(1)}.get(body.op)
    result = terms[0]
    for term in terms[1:]:
        result = simplify(combine[body.op](result, term))
    return result


def _partial(expr: Expr, known: _Known) -> Expr | None:
    """A scalar body without iterators as an integer or bool expression of the symbols, None when it has none."""
    match expr:
        case Var():
            return expr
        case Const(value):
            return None if isinstance(value, float) else expr
        case Access(tensor, index):
            at = [constant_value(i) if (i := _partial(e, known)) is not None else None for e in index]
            return _element(known.tensors[tensor], at)
        case Call("where", (condition, yes, no)):
            return _chosen(_partial(condition, known), yes, no, known)
        case Binary("and" | "or" as op, left, right):
            return _logical(op, _partial(left, known), _partial(right, known))
        case Binary(op, left, right):
            return _binary(op, _partial(left, known), _partial(right, known))
        case Call(fn, args):
            parts = [_partial(a, known) for a in args]
            found = [part for part in parts if part is not None]
            return _call(fn, found, known.facts) if len(found) == len(parts) else None
    return None


def _chosen(condition: Expr | None, yes: Expr, no: Expr, known: _Known) -> Expr | None:
    """The branch that a condition chooses; where sizes decide it, both as a selection."""
    if condition is None:
        return None
    condition = _settled(condition, known.facts)
    if isinstance(condition, Const):
        return _partial(yes if condition.value else no, known)
    first, second = _partial(yes, known), _partial(no, known)
    if first is None or second is None:
        return None
    if equal(first, second) or _covers(condition, "!=", first, second):
        return first
    if _covers(condition, "==", second, first):
        return second
    return _limited(Call("where", (condition, first, second)))


def _covers(condition: Expr, op: str, general: Expr, special: Expr) -> bool:
    """Whether an expression has the value of the `special` case as well: `where(a != b, a // b, 1)` is `a // b`."""
    match condition:
        case Binary(found, Var(name) as a, Var() as b) if found == op:
            return a != b and equal(substitute(general, {name: b}), substitute(special, {name: b}))
        case _:
            return False


def _settled(condition: Expr, facts: SizeFacts) -> Expr:
    """A condition without the comparisons that are decided for all sizes."""
    match condition:
        case Binary("and" | "or" as op, left, right):
            return _logical(op, _settled(left, facts), _settled(right, facts)) or condition
        case Call("not", (inner,)):
            return _negated(_settled(inner, facts))
        case Binary():
            answer = decided(facts, condition)
            return condition if answer is None else Const(answer)
        case _:
            return condition


def _limited(expr: Expr) -> Expr | None:
    """An expression unless it is too long to be repeated by those who read it."""
    return expr if sum(1 for _ in walk(expr)) <= MAX_CONDITION_SIZE else None


def _element(known: tuple[tuple[int, ...], tuple[Expr, ...]], index: list[int | None]) -> Expr | None:
    shape, elements = known
    flat = 0
    for i, extent in zip(index, shape, strict=True):
        if i is None or not 0 <= i < extent:
            return None
        flat = flat * extent + i
    return elements[flat]


def _logical(op: str, left: Expr | None, right: Expr | None) -> Expr | None:
    absorbing = Const(op == "or")
    if absorbing in (left, right):
        return absorbing
    if left is None or right is None:
        return None
    return right if isinstance(left, Const) else left if isinstance(right, Const) else _limited(Binary(op, left, right))


def _binary(op: str, left: Expr | None, right: Expr | None) -> Expr | None:
    if left is None or right is None or op == "/":
        return None
    if (
        isinstance(left, Const)
        and isinstance(right, Const)
        and (isinstance(left.value, bool) or isinstance(right.value, bool))
    ):
        equal = left.value == right.value
        return {"==": Const(equal), "!=": Const(not equal)}.get(op)
    if op in ("//", "%"):
        return simplify(Binary(op, left, right)) if _positive(right) else None
    if op in ("+", "-", "*"):
        return simplify(Binary(op, left, right))
    if _is_condition(left) or _is_condition(right):
        return None
    return _limited(simplify_scalar(Binary(op, left, right)))


def _call(fn: str, args: list[Expr], facts: SizeFacts) -> Expr | None:
    first = args[0]
    if fn in ("i64", "i32"):
        if isinstance(first, Const):
            return Const(int(first.value))
        return Call("where", (first, Const(1), Const(0))) if _is_condition(first) else first
    if fn == "bool":
        return first if _is_condition(first) else _binary("!=", first, Const(0))
    if fn == "not":
        return _negated(first)
    if any(_is_condition(each) for each in args):
        return None
    if fn in ("maximum", "minimum", "neg"):
        return simplify(Call(fn, tuple(args)))
    if fn == "abs":
        return first if _at_least(first, 0) else simplify(Call("neg", (first,))) if _at_most(first, 0) else None
    if fn in ("truncdiv", "fmod"):
        if all(isinstance(a, Const) and isinstance(a.value, int) for a in args):
            return _truncated(fn, [constant_value(a) or 0 for a in args])
        if not _positive(args[1]) or not (_at_least(first, 0) or decided(facts, Binary(">=", first, Const(0)))):
            return None
        return simplify(Binary("//" if fn == "truncdiv" else "%", first, args[1]))
    return None


def _truncated(fn: str, args: list[int]) -> Expr | None:
    a, b = args
    if b == 0:
        return None
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return Const(quotient if fn == "truncdiv" else a - quotient * b)


def _negated(condition: Expr) -> Expr:
    match condition:
        case Const(value):
            return Const(not value)
        case Binary(op, left, right) if op in _OPPOSITE:
            return Binary(_OPPOSITE[op], left, right)
        case _:
            return Call("not", (condition,))


def _is_condition(expr: Expr) -> bool:
    """Whether an integer expression of sizes is true or false."""
    match expr:
        case Const(value):
            return isinstance(value, bool)
        case Binary(op, _, _) | Call(op, _):
            return op in COMPARISONS or op in ("and", "or", "not")
        case _:
            return False


def _at_least(expr: Expr, least: int) -> bool:
    low = bounds_of(expr)[0]
    return low is not None and low >= least


def _at_most(expr: Expr, most: int) -> bool:
    high = bounds_of(expr)[1]
    return high is not None and high <= most


def _positive(expr: Expr) -> bool:
    """Whether a divisor is certainly positive; a symbol counts, since dividing by an extent of zero has no meaning."""
    return _at_least(expr, 1) or (not isinstance(expr, Const) and _at_least(expr, 0))


def literal(array: NDArray[Any]) -> Scalar | None:
    """The value of an array with one element; None for others."""
    if array.size != 1:
        return None
    value = array.reshape(()).item()
    return value if isinstance(value, bool | int) else float(value)
