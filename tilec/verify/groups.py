"""Per-group verification: each kernel's results against the group's expressions on the same operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, prod, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilec.errors import UnsupportedError
from tilec.ir.dots import WORD
from tilec.ir.evaluate import evaluate
from tilec.ir.expr import Access, Binary, Call, Expr, Reduce, TensorExpr, constant_value, operands, rebuild, walk
from tilec.ir.graph import Node, Tensor
from tilec.ir.numpy_scalars import ttype_of
from tilec.ir.plan import Group, Plan
from tilec.ir.scalars import BITCASTS, type_of
from tilec.ir.types import HALVES, numpy_dtype
from tilec.ir.weights import read_constant
from tilec.lower.promote_halves import PROMOTED_TTYPE, promote_halves, read_wide
from tilec.verify.ball_arithmetic import UNIT_ROUNDOFF
from tilec.verify.compare import Comparison, compare, largest_magnitude
from tilec.verify.inputs import Array
from tilec.verify.rounding_bounds import enclosures, quantising
from tilec.verify.sensitivity import AMPLITUDE, Floats, Movement, deviations, disturbed, explained, flipped
from tilec.verify.tolerance import carried, kernel_tolerances, kernel_variance, variance
from tilec.verify.undefined import CHOICE, with_undefined_elements
from tilec.verify.word_elements import with_elements


@dataclass(frozen=True, slots=True)
class GroupCheck:
    """Result of one group: its output with the largest error; `origin` names the model's nodes it was made from."""

    group: str
    origin: str
    worst: Comparison

    @classmethod
    def of(cls, group: Group, compared: Sequence[Comparison]) -> GroupCheck:
        """The check of a group from the comparisons of its outputs."""
        return cls(group.name, origin_of(group), max(compared, key=lambda each: (not each.passed, each.error)))

    @property
    def passed(self) -> bool:
        """Whether all its outputs are within tolerance."""
        return self.worst.passed

    @property
    def severity(self) -> tuple[bool, float]:
        """Sort key: failures last, then by error."""
        return not self.passed, self.worst.error

    def description(self) -> str:
        """`tensor T: A instead of B at [i, j] (off by 1e-2 of the largest value, 1e-6 is allowed)`."""
        return f"tensor {self.worst.output}: {self.worst.reason}{self.worst.size()}"

    def json(self) -> dict[str, Any]:
        """The numbers of this run."""
        error = self.worst.error
        record = {
            "tensor": self.worst.output,
            "error": error if isfinite(error) else str(error),
            "tolerance": self.worst.tolerance,
            "origin": self.origin,
        }
        return record if self.passed else {**record, "reason": self.worst.reason}


def check_group(group: Group, plan: Plan, tensors: Mapping[str, Array], constants: Mapping[str, Array]) -> GroupCheck:
    """The group's outputs in `tensors` against its expressions evaluated on its operands in `tensors`."""
    group, plan, actual = with_elements(group, plan, {t: tensors[t] for t in group.outputs})
    produced = {node.name for node in group.nodes}
    read = {t for node in group.nodes for t in operands(node.expr) if t not in produced}
    arrays = evaluated(group, plan, {t: tensors[t] if t in tensors else constants[t] for t in read})
    return GroupCheck.of(group, compared(group, plan, actual, arrays))


def compared(group: Group, plan: Plan, actual: Mapping[str, Array], values: Mapping[str, Array]) -> list[Comparison]:
    """Comparisons of a group's `actual` outputs with the `values` of its expressions.

    Outputs that exceed the tolerance are compared again, elements excused that rounding of intermediate results
    explains.
    """
    allowed = kernel_tolerances(group.nodes, plan.tensors)
    sources: dict[str, float] = {}
    for node in group.nodes:
        summed = node.expr.reducer == "sum"  # rounds by itself, also what comes from outside
        size = {t: sources.get(t, _largest(values[t]) if summed else 0.0) for t in operands(node.expr)}
        propagated = [scale * size[tensor] for tensor, scale in carried(node.expr).items()]
        sources[node.name] = max(_largest(values[node.name]), *propagated, 0.0)
    first = [compare(t, actual[t], values[t], allowed[t], sources[t]) for t in group.outputs]
    if all(each.passed or flipped(actual[each.output], values[each.output]) for each in first):
        return [each if each.passed else replace(each, reason="") for each in first]
    right = _enclosed(group, plan, actual, values)
    if right is None:
        right = _explained(group, plan, actual, values)
    excused = {t: np.where(right[t], values[t], actual[t]) for t in group.outputs}
    return [compare(t, excused[t], values[t], allowed[t], sources[t]) for t in group.outputs]


Elements = Mapping[str, NDArray[np.bool_]]
"""Output -> which of its elements are right."""


def _enclosed(group: Group, plan: Plan, actual: Mapping[str, Array], values: Mapping[str, Array]) -> Elements | None:
    """The elements of a group with quantisers that the error bounds of its expressions allow; None of a
    group without quantisers, or without bounds.

    Where the bounds of many elements hold a step of a quantiser, a group of several layers say, the results as a whole
    must not be farther off than the disturbed evaluations besides.
    """
    if not quantising(group.nodes, plan.tensors):
        return None
    produced = {node.name for node in group.nodes}
    given = {name: array for name, array in values.items() if name not in produced}
    try:
        bounds = enclosures(group.nodes, {name: tensor.ttype for name, tensor in plan.tensors.items()}, given)
    except UnsupportedError:
        return None
    right = {t: bounds[t].holds(actual[t]) for t in group.outputs}
    if not any(bounds[node.name].vague for node in group.nodes):
        return right

    def right_as_a_whole(moved: Movement, tensor: str) -> bool:
        return not moved.jumps or moved.covers(actual[tensor], values[tensor])

    moved = _moved(group, plan, values, lambda now: all(right_as_a_whole(now[t], t) for t in group.outputs))
    return {t: each if right_as_a_whole(moved[t], t) else np.zeros_like(each) for t, each in right.items()}


def _explained(group: Group, plan: Plan, actual: Mapping[str, Array], values: Mapping[str, Array]) -> Elements:
    """The elements that differ no more from `values` than disturbed evaluations do, all of an output that differs no
    more as a whole behind what is quantised or rounded to half precision."""

    def right(moved: Mapping[str, Movement]) -> Elements:
        return {
            t: explained(actual[t], values[t], moved[t]) | moved[t].covers(actual[t], values[t]) for t in group.outputs
        }

    return right(_moved(group, plan, values, lambda now: all(each.all() for each in right(now).values())))


def _moved(
    group: Group, plan: Plan, values: Mapping[str, Array], enough: Callable[[Mapping[str, Movement]], bool]
) -> dict[str, Movement]:
    """How far the outputs of a group move when rounding moves everything."""
    behind = _behind_jumps(group, plan)

    def flagged(moved: Mapping[str, Movement]) -> dict[str, Movement]:
        return {name: replace(each, jumps=name in behind) for name, each in moved.items()}

    moved = deviations(
        lambda generator: evaluated(group, plan, values, generator),
        values,
        group.outputs,
        lambda now: enough(flagged(now)),
    )
    return flagged(moved)


def _behind_jumps(group: Group, plan: Plan) -> frozenset[str]:
    """Nodes that depend on a result of the group in half precision, or on what one of its nodes quantises."""
    found, wide = set[str](), _wide(group)
    for node in group.nodes:
        before = [each for each in group.nodes if each.name in operands(node.expr)]
        halves = any(plan.tensors[each.name].ttype in HALVES for each in before if each.name not in wide)
        if halves or quantising([node], plan.tensors) or any(each.name in found for each in before):
            found.add(node.name)
    return frozenset(found)


def _largest(values: Array) -> float:
    """The largest finite magnitude, 0 for integers."""
    return largest_magnitude(values) if values.dtype.kind in "fV" else 0.0


def evaluated(
    group: Group,
    plan: Plan,
    given: Mapping[str, Array],
    disturbing: np.random.Generator | None = None,
    *,
    halves: bool = False,
) -> dict[str, Array]:
    """Operands and results of a group: its expressions in NumPy on the `given` operands, rounded as the group rounds.

    With a generator `disturbing`, every inexact result is perturbed at random by `AMPLITUDE` times its rounding
    error, and undefined results are drawn. Half precision hides that error but where it is near the boundary of two
    roundings; not that of nodes that run with partial results, which are rounded where these are. With `halves`,
    results of half precision move as far as one rounding to it, too: a reference rounds some that a kernel does not,
    and the other way around.
    """
    wide = _wide(group)
    ttypes = {name: tensor.ttype for name, tensor in plan.tensors.items()} if wide else {}
    arrays, running = dict(given), running_nodes(group)
    terms: dict[str, float] = {}
    for node in group.nodes:
        ttype = PROMOTED_TTYPE if node.name in wide else plan.tensors[node.name].ttype
        expr = promote_halves(node.expr, wide, ttypes)
        result = evaluate(expr, arrays, ttype=ttype)
        if disturbing is not None:
            result = _with_draws(expr, arrays, result, ttype, disturbing)
        summed = counted_terms(node, plan.tensors, terms)
        added = UNIT_ROUNDOFF["f32"] ** 2 * summed if result.dtype.kind in "fV" else 0.0
        own = (variance if node.name in running else kernel_variance)(node, plan.tensors)
        grid = plan.tensors[node.name].ttype if halves and plan.tensors[node.name].ttype in HALVES else None
        if grid is not None:
            expr = _unrounded(node.expr, {t: plan.tensors[t].ttype for t in operands(node.expr)})
            own += (UNIT_ROUNDOFF[grid] / AMPLITUDE) ** 2
        if disturbing is not None and (off := sqrt(own + added)):
            precise = _precise(expr, arrays, result)
            sizes = _sizes(expr, arrays, precise, bool(added))
            result = disturbed(result, precise, off, sizes, disturbing, numpy_dtype(grid) if grid else None)
        arrays[node.name] = result
    return arrays


def _wide(group: Group) -> frozenset[str]:
    """Nodes of a group whose results no variant rounds to half precision."""
    held = [read_wide(group, variant) for variant in group.variants]
    return frozenset(node.name for node in group.nodes).difference(group.outputs).intersection(*held)


def running_nodes(group: Group) -> frozenset[str]:
    """Nodes in a loop of several reductions that read their partial results and are read by one of them: its rescaling
    makes up for what changes later, but not for where their results were rounded."""
    members = {name for variant in group.variants for name in variant.shared}
    behind: set[str] = set()
    for node in group.nodes:
        if not members.union(behind).isdisjoint(operands(node.expr)) and node.name not in members:
            behind.add(node.name)
    before: set[str] = set()
    for node in reversed(group.nodes):
        if node.name in members or node.name in before:
            before.update(operands(node.expr))
    return frozenset(behind & before)


def counted_terms(node: Node, tensors: Mapping[str, Tensor], terms: dict[str, float]) -> float:
    """Terms of the integer sums that a node makes real, which other implementations sum in f32 and round: integer
    nodes pass on in `terms` what they are made of."""
    most = max((terms.get(tensor, 0.0) for tensor in operands(node.expr)), default=0.0)
    if tensors[node.name].ttype in ("i32", "i64"):
        count = prod(constant_value(node.expr.domain[name]) or 1 for name in node.expr.reduce)
        terms[node.name] = max(most, count if node.expr.reducer == "sum" else 0.0)
    return most


def _with_draws(
    expr: TensorExpr, arrays: Mapping[str, Array], result: Array, ttype: str, generator: np.random.Generator
) -> Array:
    """The result of an expression whose undefined elements are drawn."""
    drawn = with_undefined_elements(expr, {t: ttype_of(arrays[t].dtype) for t in operands(expr)})
    if drawn is expr:
        return result
    return evaluate(drawn, {**arrays, CHOICE: generator.random(result.shape) < 0.5}, ttype=ttype)


def _precise(expr: TensorExpr, arrays: Mapping[str, Array], result: Array) -> Array:
    """The expression in f64, rounded only by its casts to half precision; its `result` if it looks at bits."""
    if _looks_at_bits(expr):
        return result
    return _evaluated_in_f64(expr, _in_f64(expr.value), arrays)


def _unrounded(expr: TensorExpr, ttypes: Mapping[str, str]) -> TensorExpr:
    """The expression without the roundings of results of half precision to their own type, where nodes of the model
    end that are part of it; conversions from other types stay."""

    def visit(part: Expr) -> Expr:
        if isinstance(part, Access):
            return part
        new = rebuild(part, visit)
        match part, new:
            case Call(fn, (before,)), Call(_, (after,)) if fn in HALVES and type_of(before, ttypes) == fn:
                return after
        return new

    value = visit(expr.value)
    return replace(expr, body=replace(expr.body, body=value) if isinstance(expr.body, Reduce) else value)


def _looks_at_bits(expr: TensorExpr) -> bool:
    return any(isinstance(part, Call) and part.fn in {*BITCASTS, WORD} for part in walk(expr.value))


def _sizes(expr: TensorExpr, arrays: Mapping[str, Array], precise: Array, summed: bool) -> Floats | float:
    """Sizes of the partial sums behind the elements of a node, which is a sum or is made of what was `summed`: those of
    a random walk of its terms, and the typical size of the results, where a single one cancels."""
    if expr.reducer != "sum" and not summed:
        return 0.0
    wide = precise.astype(np.float64)
    finite = np.isfinite(wide)
    typical = float(np.sqrt(np.mean(np.square(wide), where=finite))) if finite.any() else 0.0
    if expr.reducer != "sum" or _looks_at_bits(expr):
        return typical
    value = _in_f64(expr.value)
    with np.errstate(invalid="ignore", over="ignore"):
        squares = _evaluated_in_f64(expr, Binary("*", value, value), arrays)
        return np.maximum(np.sqrt(np.where(np.isfinite(squares), squares, 0.0)), typical)


def _evaluated_in_f64(expr: TensorExpr, value: Expr, arrays: Mapping[str, Array]) -> Array:
    """An expression with another value, in f64."""
    body = replace(expr.body, body=value) if isinstance(expr.body, Reduce) else value
    wide = {t: arrays[t].astype(np.float64) if arrays[t].dtype.kind in "fV" else arrays[t] for t in operands(expr)}
    return evaluate(replace(expr, body=body), wide, ttype="f64")


def _in_f64(expr: Expr) -> Expr:
    if isinstance(expr, Access):
        return expr
    new = rebuild(expr, _in_f64)
    match new:
        case Call("f32", args):
            return Call("f64", args)
        case Call(fn, _) if fn in HALVES:
            return Call("f64", (new,))
    return new


def origin_of(group: Group) -> str:
    """The names of the model's nodes behind a group: the first two, and the number of the others."""
    names = origins(group)
    return ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")


def origins(group: Group) -> list[str]:
    """The names of the model's nodes behind a group, in the order of its nodes."""
    return list(dict.fromkeys(name for node in group.nodes for name in node.origin))


class Constants(Mapping[str, Array]):
    """Constants and prepared nodes of a plan, read or computed on access."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan = plan
        self._folder = folder
        self._prepared = {node.name: node.expr for node in plan.prepared}

    def __getitem__(self, name: str) -> Array:
        if name in self._prepared:
            expr = self._prepared[name]
            return evaluate(expr, {t: self[t] for t in operands(expr)}, ttype=self._plan.tensors[name].ttype)
        return read_constant(name, self._plan.constants[name], self._plan.tensors[name], self._folder)

    def __iter__(self) -> Any:
        return iter((*self._plan.constants, *self._prepared))

    def __len__(self) -> int:
        return len(self._plan.constants) + len(self._prepared)
