"""The first diverging group: where a wrong output comes from, by running the model with every group's outputs kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tilec.errors import TilecError
from tilec.ir.plan import Plan
from tilec.verify.compare import compare
from tilec.verify.groups import Constants, GroupCheck, Instrument, check_groups, kept
from tilec.verify.inputs import Array
from tilec.verify.runners import inner_tensors
from tilec.verify.tolerance import group_tolerances, tolerances


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

    @classmethod
    def kernel(cls, check: GroupCheck) -> Found:
        """What a group that is wrong on its own says."""
        return cls("codegen", check.group, check.origin, check.said())

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
    try:
        with kept(plan, instrument) as variant:
            outputs, tensors = variant.run(feeds)
        checks = check_groups(plan, tensors, Constants(plan, folder))
        wrong = next((check for check in checks if not check.passed), None)
        if wrong is not None:
            return Found.kernel(wrong)
        allowed = tolerances(plan)
        if all(compare(n, outputs[n], expected[n], allowed[n]).passed for n in allowed):
            return Found("memory")
        return _diverging_origin(plan, model, feeds, tensors)
    except TilecError as error:
        return Found("unknown", reason=f"The first diverging group is not known: {error.message}.")


def examine(plan: Plan, folder: Path, cases: Iterable[Mapping[str, Array]], instrument: Instrument) -> list[GroupCheck]:
    """Every group of `plan` (compiled in `folder`) on its own, the worst of all `cases`, in the order of the plan.

    Raises TilecError when the variant of the plan that hands out every group's results cannot be compiled or run.
    """
    worst: dict[str, GroupCheck] = {}
    constants = Constants(plan, folder)
    with kept(plan, instrument) as variant:
        for feeds in cases:
            _, tensors = variant.run(feeds)
            for check in check_groups(plan, tensors, constants):
                before = worst.get(check.group)
                if before is None or before.severity < check.severity:
                    worst[check.group] = check
    return list(worst.values())


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
