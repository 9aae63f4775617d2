"""Tolerances: the difference that rounding explains between two correct results, from types and reductions.

Every operation rounds once. Errors of independent roundings add like a random walk, so that after N roundings on a path
the result deviates by about sqrt(N) units in the last place of the largest value. A reduction over K elements counts K.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from types import MappingProxyType

from tilec.ir.expr import Access, Binary, Call, Const, Expr, Reduce, TensorExpr, children, constant_value, operands
from tilec.ir.graph import Inline, Node, Tensor
from tilec.ir.numpy_scalars import EXACT
from tilec.ir.plan import Plan
from tilec.ir.types import HALVES, TTYPES
from tilec.verify.nodes import nodes_of

_EPSILON = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}

_EXACT: Mapping[str, float] = MappingProxyType({})

SAFETY = 3.0
"""Multiple of the standard deviation that is allowed; a random walk exceeds three of them once in several hundred."""

GROUP_SAFETY = 8.0
"""The same for a single group: where terms cancel, results are far smaller than the values their errors come from,
which later layers even out."""

FUNCTION = 16.0
"""Number of roundings that a transcendental function counts as: libraries differ by up to four units in the last
place."""


CALL = 4096.0
"""Number of roundings that a part on onnxruntime counts as, including its amplification of the errors of its inputs."""


def tolerances(plan: Plan) -> dict[str, float]:
    """Map from output of the model to the largest |a - b| / max|a| that rounding explains; 0 for integers and
    booleans."""
    strayed = _strayed(plan)
    return {port.name: _allowed(strayed.get(port.tensor, 0.0), SAFETY) for port in plan.outputs}


def tensor_tolerances(plan: Plan) -> dict[str, float]:
    """The same for every tensor that the plan computes from the inputs of the model."""
    return {tensor: _allowed(variance, SAFETY) for tensor, variance in _strayed(plan).items()}


def _strayed(plan: Plan) -> dict[str, float]:
    """Tensor or opaque value -> the variance of its relative error; constants that import computed err, too,
    also where they have become literals."""
    computed = [n for n, constant in plan.constants.items() if isinstance(constant, Inline) or constant.owned]
    folded = {name: _epsilon(plan.tensors[name].ttype) ** 2 * FUNCTION for name in computed}
    nodes = nodes_of(plan)
    literal = {n.name: _epsilon(plan.tensors[n.name].ttype) ** 2 * FUNCTION for n in nodes if not operands(n.expr)}
    strayed = variances(nodes, plan.tensors, folded, literal)
    for call in plan.calls:
        if call.updates:
            strayed |= {present: strayed.get(each.rows, 0.0) for each, present in call.updated}
            strayed |= variances(nodes, plan.tensors, strayed, literal)
            continue
        worst = max((strayed.get(port.tensor, 0.0) for port in call.inputs), default=0.0)
        for port in call.outputs:
            epsilon = _EPSILON["f32"] if port.tensor in plan.opaque else _epsilon(plan.tensors[port.tensor].ttype)
            strayed[port.tensor] = worst + epsilon**2 * CALL if epsilon else 0.0
        strayed |= variances(nodes, plan.tensors, strayed, literal)
    return strayed


def kernel_tolerances(nodes: Sequence[Node], tensors: Mapping[str, Tensor]) -> dict[str, float]:
    """Map from every tensor that `nodes` define to its tolerance in a kernel that is compared with its expressions, on
    the same operands, which round where it rounds.

    Half precision is computed in f32: what both round to the same value differs by no rounding of half precision,
    except where the error in f32 puts a value on the other side of a boundary.
    """
    added = {node.name: kernel_variance(node, tensors) for node in nodes}
    return {name: _allowed(total, GROUP_SAFETY) for name, total in variances(nodes, tensors, added=added).items()}


def kernel_variance(node: Node, tensors: Mapping[str, Tensor]) -> float:
    """Variance of the relative error that a node adds in a kernel, before it is rounded to half precision."""
    halved = tensors[node.name].ttype in HALVES
    return _EPSILON["f32"] ** 2 * _roundings(node.expr) if halved else variance(node, tensors)


def variances(
    nodes: Sequence[Node],
    tensors: Mapping[str, Tensor],
    given: Mapping[str, float] = _EXACT,
    added: Mapping[str, float] = _EXACT,
) -> dict[str, float]:
    """Map from node to the variance of its relative error along the path with the most roundings; `given` are the
    operands' variances, `added` what nodes add if it is not their `variance`."""
    result: dict[str, float] = dict(given)
    for node in nodes:
        own = added[node.name] if node.name in added else variance(node, tensors)
        result[node.name] = own + max((result.get(t, 0.0) for t in operands(node.expr)), default=0.0)
    return {
        name: value if TTYPES[tensors[name].ttype].kind == "float" else 0.0
        for name, value in result.items()
        if name in tensors
    }


def variance(node: Node, tensors: Mapping[str, Tensor]) -> float:
    """Variance of the relative error that a node adds."""
    return _epsilon(tensors[node.name].ttype) ** 2 * _roundings(node.expr)


def _allowed(variance: float, safety: float) -> float:
    """The tolerance for a variance, to two digits so that reports are the same on any machine."""
    return float(f"{safety * sqrt(variance):.1e}")


def _epsilon(ttype: str) -> float:
    """Half a unit in the last place, relative."""
    return _EPSILON.get(ttype, 0.0)


def _roundings(expr: TensorExpr) -> float:
    """Number of roundings in the computation of one element."""
    total = 0.0
    for part in _computed(expr.value):
        match part:
            case Binary("+" | "-" | "*" | "/", _, _):
                total += 1.0
            case Call("where" | "maximum" | "minimum" | "neg" | "abs" | "not"):
                pass
            case Call(fn, _) if fn in TTYPES or fn in EXACT:
                total += 1.0
            case Call():
                total += FUNCTION
    if isinstance(expr.body, Reduce) and expr.body.op in ("sum", "prod"):
        summed = 1.0
        for iterator in expr.reduce:
            summed *= constant_value(expr.domain[iterator]) or 1
        total += summed
    return total


def carried(expr: TensorExpr) -> Mapping[str, float]:
    """Map from operand to its scale, for operands whose absolute errors a node passes on however small its own value
    is.

    These are operands that are added, summed up, subtracted, scaled down, selected or clipped. The mean of a tensor
    whose mean was subtracted is all error: its own size does not bound it. Operands that are scaled up are left out:
    the -3e38 of a mask would let any error pass.
    """
    scales: dict[str, float] = {}
    for tensor, scale in _carried(expr.value, 1.0) if expr.reducer in (None, "max", "min", "sum") else ():
        scales[tensor] = max(scale, scales.get(tensor, 0.0))
    return scales


def _carried(expr: Expr, scale: float) -> Iterator[tuple[str, float]]:
    match expr:
        case Access(tensor, _):
            yield tensor, scale
        case Binary("+" | "-", left, right):
            yield from (*_carried(left, scale), *_carried(right, scale))
        case Binary("*", Const(factor), other) | Binary("*", other, Const(factor)) if abs(factor) <= 1:
            yield from _carried(other, scale * abs(factor))
        case Binary("/", one, Const(divisor)) if abs(divisor) >= 1:
            yield from _carried(one, scale / abs(divisor))
        case Call("where", (_, one, other)):
            yield from (*_carried(one, scale), *_carried(other, scale))
        case Call("maximum" | "minimum" | "neg" | "abs", args):
            for each in args:
                yield from _carried(each, scale)


def _computed(expr: Expr) -> Iterator[Expr]:
    """Every sub-expression except those of indices, which are exact."""
    yield expr
    if not isinstance(expr, Access):
        for child in children(expr):
            yield from _computed(child)
