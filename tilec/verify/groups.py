"""Per-group verification: each kernel's results against the group's expressions on the same operands."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import isfinite, sqrt
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tilec.ir.call_segments import call_results
from tilec.ir.evaluate import evaluate
from tilec.ir.expr import operands
from tilec.ir.graph import Port
from tilec.ir.plan import Group, Plan
from tilec.ir.weights import read_constant
from tilec.lower.promote_halves import PROMOTED_TTYPE, promote_halves
from tilec.verify.compare import Comparison, compare
from tilec.verify.inputs import Array
from tilec.verify.remote import Remote
from tilec.verify.runners import Compiled
from tilec.verify.tolerance import GROUP_SAFETY, carried, group_tolerances, variance

Floats = NDArray[np.float64]

DISTURBED = 4
"""Number of perturbed evaluations that estimate the sensitivity of results; in a single one an element may not move by
chance."""


class Instrument(Protocol):
    """Compiles a plan, with more outputs than the model has, into an empty folder."""

    def __call__(self, plan: Plan, folder: Path, /) -> None:
        """Raises TilecError when that fails."""


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


def keep_all(plan: Plan) -> Plan:
    """The plan with the results of all groups and calls as outputs of the model, under names that the model does not
    use."""
    model = {port.tensor for port in plan.outputs}
    inner = [tensor for group in plan.groups for tensor in group.outputs if tensor not in model]
    inner += [port.tensor for port in call_results(plan.calls, plan.tensors) if port.tensor not in model]
    return replace(plan, outputs=plan.outputs + tuple(Port(f"kept:{tensor}", tensor) for tensor in inner))


@dataclass(frozen=True, slots=True)
class InstrumentedModel:
    """A plan compiled with the outputs of every group as outputs of the model."""

    plan: Plan
    compiled: Remote

    def run(self, feeds: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
        """The model's outputs by name, and every tensor in the plan's lowest level."""
        outputs: dict[str, Array] = self.compiled.call("run", feeds)
        tensors = {port.tensor: feeds[port.name] for port in self.plan.inputs}
        tensors |= {port.tensor: outputs[port.name] for port in keep_all(self.plan).outputs}
        return {port.name: outputs[port.name] for port in self.plan.outputs}, tensors


@contextmanager
def instrumented(plan: Plan, instrument: Instrument) -> Iterator[InstrumentedModel]:
    """Compile the plan again with the outputs of all groups, and load it in a process of its own. Raises TilecError."""
    with tempfile.TemporaryDirectory(prefix="tilec-") as temporary:
        instrument(keep_all(plan), Path(temporary))
        with Remote("the compiled model", Compiled, Path(temporary)) as compiled:
            compiled.ready()
            yield InstrumentedModel(plan, compiled)


def check_groups(
    plan: Plan, tensors: Mapping[str, Array], constants: Mapping[str, Array], groups: Sequence[Group] | None = None
) -> Iterator[GroupCheck]:
    """One check per group in execution order. `tensors` holds the operands and results of all kernels."""
    for group in plan.groups if groups is None else groups:
        yield check_group(group, plan, tensors, constants)


def check_group(group: Group, plan: Plan, tensors: Mapping[str, Array], constants: Mapping[str, Array]) -> GroupCheck:
    """The group's outputs in `tensors` against its expressions evaluated on its operands in `tensors`."""
    produced = {node.name for node in group.nodes}
    read = {t for node in group.nodes for t in operands(node.expr) if t not in produced}
    arrays = evaluated(group, plan, {t: tensors[t] if t in tensors else constants[t] for t in read})
    return GroupCheck.of(group, compared(group, plan, tensors, arrays))


def compared(group: Group, plan: Plan, actual: Mapping[str, Array], values: Mapping[str, Array]) -> list[Comparison]:
    """Comparisons of a group's `actual` outputs with the `values` of its expressions.

    Outputs that exceed the tolerance are compared again, elements excused that rounding of intermediate results
    explains.
    """
    allowed = group_tolerances(group.nodes, plan.tensors)
    sources: dict[str, float] = {}
    for node in group.nodes:
        summed = node.expr.reducer == "sum"  # rounds by itself, also what comes from outside
        size = {t: sources.get(t, _largest(values[t]) if summed else 0.0) for t in operands(node.expr)}
        propagated = [scale * size[tensor] for tensor, scale in carried(node.expr).items()]
        sources[node.name] = max(_largest(values[node.name]), *propagated, 0.0)
    first = [compare(t, actual[t], values[t], allowed[t], sources[t]) for t in group.outputs]
    if all(each.passed for each in first):
        return first
    strayed = _strayed(group, plan, values)
    excused = {t: _excused(actual[t], values[t], strayed[t]) for t in group.outputs}
    return [compare(t, excused[t], values[t], allowed[t], sources[t]) for t in group.outputs]


def _strayed(group: Group, plan: Plan, values: Mapping[str, Array]) -> dict[str, Floats]:
    """Map from output to the deviation of its elements when every intermediate result is perturbed by its rounding
    error.

    The softmax of large scores depends on their last digits, so that the size of a value does not bound its error.
    """
    deviation: dict[str, Floats] = {t: np.zeros(values[t].shape) for t in group.outputs}
    for seed in range(DISTURBED):
        disturbed = evaluated(group, plan, values, np.random.default_rng(seed))
        deviation = {t: np.fmax(off, _apart(disturbed[t], values[t])) for t, off in deviation.items()}
    return deviation


def _excused(actual: Array, expected: Array, strayed: Floats) -> Array:
    """The computed output, with the expected value in place of every element whose error rounding explains."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype or actual.dtype.kind not in "fV":
        return actual
    return np.where(_apart(actual, expected) <= GROUP_SAFETY * strayed, expected, actual)


def _apart(one: Array, other: Array) -> Floats:
    with np.errstate(invalid="ignore"):
        off: Floats = np.abs(one.astype(np.float64) - other.astype(np.float64))
    return off


def _largest(values: Array) -> float:
    """The largest finite magnitude, 0 for integers."""
    if values.dtype.kind not in "fV":
        return 0.0
    wide = np.abs(values.astype(np.float64))
    return float(wide.max(initial=0.0, where=np.isfinite(wide)))


def evaluated(
    group: Group, plan: Plan, given: Mapping[str, Array], disturbing: np.random.Generator | None = None
) -> dict[str, Array]:
    """Operands and results of a group: its expressions in NumPy on the `given` operands, rounded as the group rounds.

    With a generator `disturbing`, every inexact result is perturbed at random by its rounding error.
    """
    wide = frozenset.intersection(*(frozenset(variant.wide) for variant in group.variants))
    ttypes = {name: tensor.ttype for name, tensor in plan.tensors.items()} if wide else {}
    arrays = dict(given)
    for node in group.nodes:
        ttype = PROMOTED_TTYPE if node.name in wide else plan.tensors[node.name].ttype
        expr = promote_halves(node.expr, wide, ttypes)
        result = evaluate(expr, arrays, ttype=ttype)
        if disturbing is not None and (off := sqrt(variance(node, plan.tensors))):
            precise = evaluate(expr, {t: _precise(arrays[t]) for t in operands(expr)}, ttype="f64")
            perturbed = result * (1 + off * disturbing.standard_normal(result.shape))
            result = np.where(precise == result, result, perturbed).astype(result.dtype)  # what is exact stays so
        arrays[node.name] = result
    return arrays


def _precise(values: Array) -> Array:
    return values.astype(np.float64) if values.dtype.kind in "fV" else values


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
