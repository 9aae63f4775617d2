"""Checks of the groups of a shipped library: it runs launch by launch, and each kernel is judged where it stands.

A kernel is wrong when its results differ from its group's expressions on the very operands that it read. Memory is
wrong when an operand is no longer what its producer stored.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import ml_dtypes
import numpy as np

from tilec.abi.manifest import CallInput
from tilec.ir.expr import constant_value
from tilec.ir.plan import Group, Plan
from tilec.runtime.session import Memory
from tilec.verify.groups import GroupCheck, check_group, origin_of
from tilec.verify.inputs import Array
from tilec.verify.nodes import read_by

EVALUATED = 1 << 30
"""Operations of expressions that one verification evaluates in NumPy unless all groups are asked for."""


@dataclass(frozen=True, slots=True)
class Stale:
    """A group that found an operand changed since `producer` stored it."""

    group: str
    origin: str
    tensor: str
    producer: str


@dataclass
class StepChecks:
    """The observer of a stepwise run: checks the `chosen` groups, and the operands of all.

    With a generator `special`, NaN, infinities, zeros of both signs and denormals are written among the operands of
    each chosen group before it runs.
    """

    plan: Plan
    places: Mapping[str, CallInput]
    constants: Mapping[str, Array]
    chosen: Collection[str]
    special: np.random.Generator | None = None
    checks: list[GroupCheck] = field(default_factory=list)
    stale: Stale | None = None
    _operands: dict[str, Array] = field(default_factory=dict)
    _stored: dict[str, tuple[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._groups = {group.name: group for group in self.plan.groups}

    def before(self, group: str, memory: Memory) -> None:
        """Compare the operands with what their producers stored, and keep those of a group to check. Updates of states
        are no groups."""
        if group not in self._groups:
            return
        read = [tensor for tensor in read_by(self._groups[group]) if tensor in self.places]
        self._operands = {}
        for tensor in read:
            array = self._value(memory, tensor)
            producer, digest = self._stored.get(tensor, ("", 0))
            if self.special is None and self.stale is None and producer and _digest(array) != digest:
                self.stale = Stale(group, origin_of(self._groups[group]), tensor, producer)
            if group not in self.chosen:
                continue
            if self.special is not None:
                write_special(array, self.special)
            self._operands[tensor] = np.array(array)

    def after(self, group: str, memory: Memory) -> None:
        """Note what the group stored, and check it."""
        if group not in self._groups:
            return
        this = self._groups[group]
        stored = {tensor: self._value(memory, tensor) for tensor in this.outputs}
        if self.special is None:
            self._stored |= {tensor: (group, _digest(array)) for tensor, array in stored.items()}
        if group in self.chosen:
            self.checks.append(check_group(this, self.plan, {**self._operands, **stored}, self.constants))

    def _value(self, memory: Memory, tensor: str) -> Any:
        """The value of a tensor where it lies, codes as bytes."""
        value = memory(self.places[tensor])
        return value.view(np.uint8) if tensor in self.plan.elements else value


def write_special(array: Any, generator: np.random.Generator) -> None:
    """Write special values into a tensor of floats: one NaN, one infinity of each sign, zeros and denormals at one
    place of 16."""
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fV" or not array.size:
        return
    flat = array.reshape(-1)
    least = float(ml_dtypes.finfo(array.dtype).smallest_subnormal)  # type: ignore[no-untyped-call]
    small = [0.0, -0.0, least, -least]
    some = generator.integers(0, flat.size, -(-flat.size // 16))
    flat[some] = generator.choice(small, some.shape).astype(array.dtype)
    flat[generator.integers(0, flat.size, 3)] = np.array([np.nan, np.inf, -np.inf]).astype(array.dtype)


def affordable(cases: Sequence[tuple[Plan, Mapping[str, Any]]]) -> list[frozenset[str]]:
    """For each case, a plan of known sizes with its kernels, the groups that one verification evaluates: one of each
    kernel where it has the least to do, the cheapest first, at least one, until `EVALUATED` operations are spent."""
    cheapest: dict[str, tuple[bool, int, int, str]] = {}
    for number, (plan, kernels) in enumerate(cases):
        groups = {group.name: group for group in plan.groups}
        for kernel, name in {step["kernel"]: step["group"] for step in reversed(kernels["steps"])}.items():
            operations = constant_value(groups[name].cost.flops) or 0
            this = (not _has_elements(plan, groups[name]), operations, number, name)
            cheapest[kernel] = min(cheapest.get(kernel, this), this, key=lambda each: each[:3])
    left = EVALUATED
    chosen: list[list[str]] = [[] for _ in cases]
    for _, operations, number, group in sorted(cheapest.values(), key=lambda each: each[:2]):
        left -= operations
        if any(chosen) and left < 0:
            break
        chosen[number].append(group)
    return [frozenset(names) for names in chosen]


def _has_elements(plan: Plan, group: Group) -> bool:
    """Whether the outputs of a group, whose shapes are known, have elements."""
    return all(constant_value(extent) != 0 for tensor in group.outputs for extent in plan.tensors[tensor].shape)


def covered(checked: Collection[str], kernels_of: Mapping[str, Collection[str]]) -> dict[str, int]:
    """The number of groups, and of those all of whose kernels are among the checked ones."""
    return {"total": len(kernels_of), "verified": sum(set(names) <= set(checked) for names in kernels_of.values())}


def _digest(array: Any) -> int:
    return crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data) if isinstance(array, np.ndarray) else 0
