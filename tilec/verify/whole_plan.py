"""A plan evaluated in NumPy from inputs to outputs: the meaning of its graph, and how far rounding moves them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tilec.abi.manifest import CallInput, CallOutput, CallSpec, LibraryFile
from tilec.ir.call_segments import segment_of
from tilec.ir.expr import operands
from tilec.ir.graph import Call
from tilec.ir.plan import Group, Plan
from tilec.ir.types import HALVES
from tilec.runtime.fallback import Fallback
from tilec.runtime.serial_loop import LoopRun
from tilec.verify.groups import Constants, evaluated
from tilec.verify.inputs import Array
from tilec.verify.look_budget import LookBudget
from tilec.verify.nodes import nodes_of
from tilec.verify.port_values import as_element, input_values
from tilec.verify.rounding_bounds import quantising
from tilec.verify.sensitivity import EVALUATIONS, Movement, deviations
from tilec.verify.state_updates import read_by, updated


class WholePlan:
    """A plan in NumPy; parts that fall back run on onnxruntime. `folder` holds its files."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan = plan
        self._constants = Constants(plan, folder)
        self._kept: dict[str, Array] | None = {} if any(call.loop for call in plan.calls) else None
        self._calls = [fallback_of(folder, plan, call) for call in plan.calls]
        self._segments = segment_of(nodes_of(plan), plan.calls)

    def outputs(
        self,
        feeds: Mapping[str, Array],
        disturbing: np.random.Generator | None = None,
        names: Collection[str] | None = None,
    ) -> dict[str, Any]:
        """The model's outputs by name; with a generator, every intermediate result is disturbed. With `names` only
        these are computed."""
        ports = [port for port in self._plan.outputs if names is None or port.name in names]
        kept = {port.tensor for port in ports}
        values = input_values(self._plan, feeds)
        needed = self._needed(kept)
        last = self._last_reads(needed)
        for step, produced in self._steps(values, disturbing, needed):
            values |= produced
            for tensor in last.get(step, ()):
                if tensor not in kept:
                    values.pop(tensor, None)
        return {port.name: as_element(self._plan, port.tensor, self._value(port.tensor, values)) for port in ports}

    def results(self, feeds: Mapping[str, Array]) -> Iterator[tuple[Group, dict[str, Array]]]:
        """Every group with its outputs, in execution order."""
        values = input_values(self._plan, feeds)
        groups = {group.name: group for group in self._plan.groups}
        for step, produced in self._steps(values, None, [step for step, _, _ in self._order()]):
            values |= produced
            if step in groups:
                yield groups[step], produced

    def moved(
        self,
        feeds: Mapping[str, Array],
        names: Collection[str],
        enough: Callable[[Mapping[str, Movement]], bool],
        advance: Callable[[int, int], None] = lambda _done, _total: None,
        budget: LookBudget | None = None,
    ) -> dict[str, Movement]:
        """How far the floating-point or integer outputs among `names` move when rounding moves everything, evaluated
        until that is `enough`. Raises LookTooLong where the `budget` does not allow that."""
        budget = budget or LookBudget()
        most = budget.evaluations(self._plan, EVALUATIONS)
        budget.spend(self._plan, 1)

        def disturbed(drawn: np.random.Generator) -> dict[str, Any]:
            budget.spend(self._plan, 1)
            return self.outputs(feeds, drawn, arrays)

        values = self.outputs(feeds, names=names)
        arrays = [name for name, value in values.items() if isinstance(value, np.ndarray) and value.dtype.kind != "O"]
        nodes = nodes_of(self._plan)
        halves = any(self._plan.tensors[node.name].ttype in HALVES for node in nodes)
        jumps = any(self._calls) or halves or quantising(nodes, self._plan.tensors)
        return deviations(disturbed, values, arrays, enough, advance, jumps, most)

    def _needed(self, tensors: Collection[str]) -> frozenset[str]:
        """The groups and calls on which these tensors depend."""
        wanted, steps = set(tensors), set()
        for step, produced, read in reversed([*self._order()]):
            if wanted.intersection(produced):
                steps.add(step)
                wanted |= read
        return frozenset(steps)

    def _order(self) -> Iterator[tuple[str, frozenset[str], frozenset[str]]]:
        """Groups and calls in execution order: (name or file, tensors that it produces, tensors that it reads)."""
        calls = [
            (call.file, frozenset(p.tensor for p in call.outputs), frozenset(read_by(call)))
            for call in self._plan.calls
        ]
        called = 0
        segments = {group.name: max(self._segments[node.name] for node in group.nodes) for group in self._plan.groups}
        for group in sorted(self._plan.groups, key=lambda group: segments[group.name]):
            yield from calls[called : segments[group.name]]
            called = segments[group.name]
            yield group.name, frozenset(group.outputs), frozenset(t for n in group.nodes for t in operands(n.expr))
        yield from calls[called:]

    def _steps(
        self, values: Mapping[str, Any], disturbing: np.random.Generator | None, needed: Collection[str]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """The `needed` groups and calls in execution order with what they produce from `values`, which the caller
        extends."""
        groups = {group.name: group for group in self._plan.groups}
        numbers = {call.file: number for number, call in enumerate(self._plan.calls)}
        loops: list[tuple[int, LoopRun]] = []
        order = [(step, read) for step, _, read in self._order() if step in needed]
        place = 0
        while place < len(order):
            step, read = order[place]
            place += 1
            call = self._plan.calls[numbers[step]] if step in numbers else None
            if call is not None and call.loop:
                given = [self._value(port.tensor, values) for port in call.inputs]
                if call.loop == "start":
                    loops.append((place, LoopRun(given, call.carried)))
                    produced = loops[-1][1].operands
                elif loops[-1][1].advance(given):
                    place = loops[-1][0]
                    continue
                else:
                    produced = loops.pop()[1].results
                yield step, {port.tensor: value for port, value in zip(call.outputs, produced, strict=True)}
                continue
            if step in numbers:
                yield self._call(numbers[step], values)
                continue
            group = groups[step]
            outside = read - {node.name for node in group.nodes}
            read_here = {t: self._value(t, values) for t in outside}
            results = evaluated(group, self._plan, read_here, disturbing, halves=True)
            yield step, {tensor: results[tensor] for tensor in group.outputs}

    def _call(self, number: int, values: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        call = self._plan.calls[number]
        if call.updates:
            return call.file, updated(call, {tensor: self._value(tensor, values) for tensor in read_by(call)})
        fallback = self._calls[number]
        assert fallback is not None
        results = fallback.run([self._value(port.tensor, values) for port in call.inputs])
        return call.file, {port.tensor: value for port, value in zip(call.outputs, results, strict=True)}

    def _value(self, tensor: str, values: Mapping[str, Any]) -> Any:
        if tensor in values:
            return values[tensor]
        if self._kept is None:
            return self._constants[tensor]
        if tensor not in self._kept:  # every step of a loop reads it
            self._kept[tensor] = self._constants[tensor]
        return self._kept[tensor]

    def _last_reads(self, needed: Collection[str]) -> dict[str, list[str]]:
        """Map from step to the tensors that no later one of the `needed` steps reads; none in a plan with loops, whose
        bodies read again what is before them."""
        if any(call.loop for call in self._plan.calls):
            return {}
        last = {tensor: step for step, _, read in self._order() if step in needed for tensor in read}
        steps: dict[str, list[str]] = {}
        for tensor, step in last.items():
            steps.setdefault(step, []).append(tensor)
        return steps


def fallback_of(folder: Path, plan: Plan, call: Call) -> Fallback | None:
    """A part of the model on onnxruntime, with its inputs and outputs in the order of its ports; None for the ends of a
    loop and for updates of states."""
    if call.loop or call.updates:
        return None
    inputs = tuple(CallInput(port.name, "result", 0) for port in call.inputs)
    outputs = tuple(CallOutput(port.name, 0) for port in call.outputs)
    files = [LibraryFile(name, plan.files[name]) for name in (call.file, *call.data)]
    return Fallback(folder, CallSpec(files[0], inputs, outputs, tuple(files[1:])), threads=1)
