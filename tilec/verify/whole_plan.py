"""A plan evaluated in NumPy from inputs to outputs: the meaning of its graph, and how far rounding moves them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tilec.abi.manifest import CallInput, CallOutput, CallSpec, LibraryFile
from tilec.ir.call_segments import segment_of
from tilec.ir.expr import operands
from tilec.ir.graph import Call
from tilec.ir.plan import Group, Plan
from tilec.runtime.fallback import Fallback
from tilec.verify.groups import Constants, evaluated
from tilec.verify.inputs import Array
from tilec.verify.nodes import nodes_of
from tilec.verify.sensitivity import Floats, deviations


class WholePlan:
    """A plan in NumPy; parts that fall back run on onnxruntime. `folder` holds its files."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan = plan
        self._constants = Constants(plan, folder)
        self._calls = [fallback_of(folder, plan, call) for call in plan.calls]
        self._segments = segment_of(nodes_of(plan), plan.calls)

    def outputs(self, feeds: Mapping[str, Array], disturbing: np.random.Generator | None = None) -> dict[str, Any]:
        """The model's outputs by name; with a generator, every intermediate result is disturbed."""
        kept = {port.tensor for port in self._plan.outputs}
        values = {port.tensor: feeds[port.name] for port in self._plan.inputs}
        last = self._last_reads()
        for step, produced in self._steps(values, disturbing):
            values |= produced
            for tensor in last.get(step, ()):
                if tensor not in kept:
                    values.pop(tensor, None)
        return {port.name: self._value(port.tensor, values) for port in self._plan.outputs}

    def results(self, feeds: Mapping[str, Array]) -> Iterator[tuple[Group, dict[str, Array]]]:
        """Every group with its outputs, in execution order."""
        values = {port.tensor: feeds[port.name] for port in self._plan.inputs}
        groups = {group.name: group for group in self._plan.groups}
        for step, produced in self._steps(values, None):
            values |= produced
            if step in groups:
                yield groups[step], produced

    def moved(self, feeds: Mapping[str, Array]) -> dict[str, Floats]:
        """How far each element of each floating-point or integer output moves when rounding moves everything."""
        values = self.outputs(feeds)
        names = [name for name, value in values.items() if isinstance(value, np.ndarray) and value.dtype.kind != "O"]
        return deviations(lambda generator: self.outputs(feeds, generator), values, names)

    def _steps(
        self, values: Mapping[str, Any], disturbing: np.random.Generator | None
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Groups and calls in execution order with what they produce from `values`, which the caller extends."""
        called = 0
        for group in self._plan.groups:
            segment = max(self._segments[node.name] for node in group.nodes)
            while called < segment:
                yield self._call(called, values)
                called += 1
            read = {t for node in group.nodes for t in operands(node.expr)} - {node.name for node in group.nodes}
            results = evaluated(group, self._plan, {t: self._value(t, values) for t in read}, disturbing)
            yield group.name, {tensor: results[tensor] for tensor in group.outputs}
        while called < len(self._calls):
            yield self._call(called, values)
            called += 1

    def _call(self, number: int, values: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        call = self._plan.calls[number]
        results = self._calls[number].run([self._value(port.tensor, values) for port in call.inputs])
        return call.file, {port.tensor: value for port, value in zip(call.outputs, results, strict=True)}

    def _value(self, tensor: str, values: Mapping[str, Any]) -> Any:
        return values[tensor] if tensor in values else self._constants[tensor]

    def _last_reads(self) -> dict[str, list[str]]:
        """Map from step to the tensors that no later step reads."""
        last: dict[str, str] = {}
        called = 0
        for group in self._plan.groups:
            segment = max(self._segments[node.name] for node in group.nodes)
            for call in self._plan.calls[called:segment]:
                last |= {port.tensor: call.file for port in call.inputs}
            called = max(called, segment)
            last |= {tensor: group.name for node in group.nodes for tensor in operands(node.expr)}
        for call in self._plan.calls[called:]:
            last |= {port.tensor: call.file for port in call.inputs}
        steps: dict[str, list[str]] = {}
        for tensor, step in last.items():
            steps.setdefault(step, []).append(tensor)
        return steps


def fallback_of(folder: Path, plan: Plan, call: Call) -> Fallback:
    """A part of the model on onnxruntime, with its inputs and outputs in the order of its ports."""
    inputs = tuple(CallInput(port.name, "result", 0) for port in call.inputs)
    outputs = tuple(CallOutput(port.name, 0) for port in call.outputs)
    files = [LibraryFile(name, plan.files[name]) for name in (call.file, *call.data)]
    return Fallback(folder, CallSpec(files[0], inputs, outputs, tuple(files[1:])), threads=1)
