"""Location of an error: the first diverging group, found by running the model with every group's outputs exposed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tilec.errors import TilecError
from tilec.ir.plan import Plan
from tilec.verify.compare import compare
from tilec.verify.groups import Constants, GroupCheck, Instrument, check_groups, instrumented
from tilec.verify.inputs import Array
from tilec.verify.runners import inner_tensors
from tilec.verify.tolerance import group_tolerances, tolerances


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first divergence: the stage at fault and, if known, the group, its origin and the size of the error."""

    stage: str
    group: str = ""
    origin: str = ""
    reason: str = ""

    def json(self) -> dict[str, str]:
        """The entry of the report; numbers of this run are left out."""
        named = {"stage": self.stage, "group": self.group, "origin": self.origin}
        return {key: value for key, value in named.items() if value}

    @classmethod
    def kernel(cls, check: GroupCheck) -> Divergence:
        """The divergence of a group whose kernel is wrong on its own operands."""
        return cls("codegen", check.group, check.origin, check.description())

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
) -> Divergence:
    """Find the first group of `plan` (compiled in `folder`) whose results are wrong for `feeds`.

    The plan is compiled again with the outputs of all groups as outputs of the model. A group is at fault if its
    results differ from its expressions on its own operands. If there is none, the first tensor that differs from the
    corresponding node's output on onnxruntime is at fault.
    """
    if instrument is None:
        return Divergence("unknown", reason="Compile with `tilec compile` to learn which group diverges first.")
    try:
        with instrumented(plan, instrument) as variant:
            outputs, tensors = variant.run(feeds)
        checks = check_groups(plan, tensors, Constants(plan, folder))
        wrong = next((check for check in checks if not check.passed), None)
        if wrong is not None:
            return Divergence.kernel(wrong)
        allowed = tolerances(plan)
        if all(compare(n, outputs[n], expected[n], allowed[n]).passed for n in allowed):
            return Divergence("memory")
        return _diverging_origin(plan, model, feeds, tensors)
    except TilecError as error:
        return Divergence("unknown", reason=f"The first diverging group is not known: {error.message}.")


def examine(plan: Plan, folder: Path, cases: Iterable[Mapping[str, Array]], instrument: Instrument) -> list[GroupCheck]:
    """Check every group of `plan` (compiled in `folder`) on its own: the worst of all `cases`, in the order of the
    plan.

    Raises TilecError when the instrumented variant of the plan cannot be compiled or run.
    """
    worst: dict[str, GroupCheck] = {}
    constants = Constants(plan, folder)
    with instrumented(plan, instrument) as variant:
        for feeds in cases:
            _, tensors = variant.run(feeds)
            for check in check_groups(plan, tensors, constants):
                before = worst.get(check.group)
                if before is None or before.severity < check.severity:
                    worst[check.group] = check
    return list(worst.values())


def _diverging_origin(plan: Plan, model: Path, feeds: Mapping[str, Array], native: Mapping[str, Array]) -> Divergence:
    """The first group whose tensor differs from the model's node on onnxruntime."""
    last = {node.origin[-1]: node.name for group in plan.groups for node in group.nodes if node.origin}
    allowed = group_tolerances([node for group in plan.groups for node in group.nodes], plan.tensors)
    reference = inner_tensors(model, feeds, last)
    for group in plan.groups:
        for tensor in group.outputs:
            origin = next((o for o, t in last.items() if t == tensor), None)
            expected = reference.get(origin) if origin else None
            if origin is None or expected is None or expected.size != native[tensor].size:
                continue
            # Sorted, because the plan may store the dimensions of a tensor in another order.
            comparison = compare(
                tensor, np.sort(native[tensor], axis=None), np.sort(expected, axis=None), allowed[tensor]
            )
            if not comparison.passed:
                return Divergence("import", group.name, origin, comparison.reason)
    return Divergence(
        "unknown", reason="Every group computes what its expressions say; the model means something else."
    )
