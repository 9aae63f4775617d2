"""The first diverging group: where a wrong output comes from, by running the model with every group's outputs kept."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tilec.errors import TilecError
from tilec.ir.evaluate import evaluate
from tilec.ir.expr import operands
from tilec.ir.graph import Port
from tilec.ir.plan import Group, Plan
from tilec.ir.segments import results
from tilec.ir.weights import read_constant
from tilec.verify.compare import Comparison, compare
from tilec.verify.inputs import Array
from tilec.verify.remote import Remote
from tilec.verify.runners import Compiled, inner_tensors
from tilec.verify.tolerance import group_tolerances, tolerances

Instrument = Callable[[Plan, Path], None]
"""Compiles a plan, with other outputs than the model has, into an empty folder."""


@dataclass(frozen=True, slots=True)
class Found:
    """Where results first diverge: the stage at fault and, where it is one, the group, its origin and by how much."""

    stage: str
    group: str = ""
    origin: str = ""
    reason: str = ""

    def json(self) -> dict[str, str]:
        """What the report says; numbers of this run are left out."""
        named = {"stage": self.stage, "group": self.group, "origin": self.origin}
        return {key: value for key, value in named.items() if value}

    def sentence(self) -> str:
        """One sentence for people."""
        where = f"{self.group} ({self.origin})" if self.origin else self.group
        match self.stage:
            case "codegen":
                return f"First diverging group: {where}: {self.reason}; its kernel is not what the plan says."
            case "import":
                return f"First diverging group: {where}: {self.reason}; its kernel is what the graph says."
            case "memory":
                return (
                    "Every group is right when its outputs are kept: two tensors share memory that they must not, or "
                    "another tilec generated the code (delete 3-kernels.json and compile again)."
                )
        return self.reason


def locate(
    plan: Plan,
    folder: Path,
    model: Path,
    feeds: Mapping[str, Array],
    expected: Mapping[str, Array],
    instrument: Instrument | None,
) -> Found:
    """Find the first group of `plan` (compiled in `folder`) whose results are wrong for `feeds`.

    The plan is compiled again with the outputs of all groups as outputs of the model. A group is at fault when it
    computes from its own operands something else than its expressions say; when none does, the first whose tensor
    differs from that of the model's node on onnxruntime.
    """
    if instrument is None:
        return Found("unknown", reason="Compile with `tilec compile` to learn which group diverges first.")
    with tempfile.TemporaryDirectory(prefix="tilec-") as temporary:
        kept = keep_all(plan)
        try:
            instrument(kept, Path(temporary))
            with Remote("the compiled model", Compiled, Path(temporary)) as compiled:
                compiled.ready()
                outputs: dict[str, Array] = compiled.call("run", feeds)
            return _first(plan, folder, model, feeds, expected, outputs)
        except TilecError as error:
            return Found("unknown", reason=f"The first diverging group is not known: {error.message}.")


def keep_all(plan: Plan) -> Plan:
    """The plan with all that groups and calls make as outputs of the model, under names that the model does not use."""
    model = {port.tensor for port in plan.outputs}
    inner = [tensor for group in plan.groups for tensor in group.outputs if tensor not in model]
    inner += [port.tensor for port in results(plan.calls, plan.tensors) if port.tensor not in model]
    return replace(plan, outputs=plan.outputs + tuple(Port(_kept(tensor), tensor) for tensor in inner))


def _kept(tensor: str) -> str:
    return f"kept:{tensor}"


def _first(
    plan: Plan,
    folder: Path,
    model: Path,
    feeds: Mapping[str, Array],
    expected: Mapping[str, Array],
    outputs: Mapping[str, Array],
) -> Found:
    native = {port.tensor: feeds[port.name] for port in plan.inputs}
    native |= {port.tensor: outputs[port.name] for port in keep_all(plan).outputs}
    constants = _Constants(plan, folder)
    for group in plan.groups:
        worst = check_group(group, plan, native, constants)
        if worst is not None:
            return Found("codegen", group.name, origin_of(group), worst.reason)
    allowed = tolerances(plan)
    if all(compare(n, outputs[n], expected[n], allowed[n]).passed for n in allowed):
        return Found("memory")
    return _diverging_origin(plan, model, feeds, native)


def check_group(
    group: Group, plan: Plan, native: Mapping[str, Array], constants: Mapping[str, Array]
) -> Comparison | None:
    """The worst output of a group against its expressions evaluated on the same operands; None when all are right."""
    arrays: dict[str, Array] = {}
    for node in group.nodes:
        for tensor in operands(node.expr):
            if tensor not in arrays:
                arrays[tensor] = native[tensor] if tensor in native else constants[tensor]
        arrays[node.name] = evaluate(node.expr, arrays, ttype=plan.tensors[node.name].ttype)
    allowed = group_tolerances(group.nodes, plan.tensors)
    compared = [compare(t, native[t], arrays[t], allowed[t]) for t in group.outputs]
    return max((each for each in compared if not each.passed), key=lambda each: each.error, default=None)


def origin_of(group: Group) -> str:
    """The model's nodes behind a group: the first ones by name, the others counted."""
    names = list(dict.fromkeys(name for node in group.nodes for name in node.origin))
    return ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")


class _Constants(Mapping[str, Array]):
    """Constants and prepared nodes of a plan, read or computed when asked for."""

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


def _diverging_origin(plan: Plan, model: Path, feeds: Mapping[str, Array], native: Mapping[str, Array]) -> Found:
    """The first group whose tensor is not what the model's node gives on onnxruntime."""
    last = {node.origin[-1]: node.name for group in plan.groups for node in group.nodes if node.origin}
    allowed = group_tolerances([node for group in plan.groups for node in group.nodes], plan.tensors)
    reference = inner_tensors(model, feeds, last)
    for group in plan.groups:
        for tensor in group.outputs:
            origin = next((o for o, t in last.items() if t == tensor), None)
            theirs = reference.get(origin) if origin else None
            if origin is None or theirs is None or theirs.size != native[tensor].size:
                continue
            # Sorted, because the plan may store the dimensions of a tensor in another order.
            found = compare(tensor, np.sort(native[tensor], axis=None), np.sort(theirs, axis=None), allowed[tensor])
            if not found.passed:
                return Found("import", group.name, origin, found.reason)
    return Found("unknown", reason="Every group computes what its expressions say; the model means something else.")
