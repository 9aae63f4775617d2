"""Location of an error: the stage at fault and the first group that diverges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tilec.errors import TilecError
from tilec.ir.plan import Plan
from tilec.ir.sizes import sizes_text
from tilec.verify.compare import compare
from tilec.verify.groups import GroupCheck
from tilec.verify.inputs import Array
from tilec.verify.look_budget import LEAST, LookBudget
from tilec.verify.remote import Remote
from tilec.verify.runners import Compiled, inner_tensors
from tilec.verify.state_updates import model_feeds
from tilec.verify.step_checks import Stale
from tilec.verify.tolerance import tensor_tolerances
from tilec.verify.whole_plan import WholePlan


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first divergence: the stage at fault and, if known, the group, its origin and the size of the error. `sizes`
    are those of the symbols of a model that has any."""

    stage: str
    group: str = ""
    origin: str = ""
    reason: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)

    def at(self, sizes: Mapping[str, int]) -> Divergence:
        """The divergence, found at these sizes of the symbols of the model."""
        return replace(self, sizes=sizes)

    def json(self) -> dict[str, Any]:
        """The entry of the report; numbers of this run are left out."""
        named = {"stage": self.stage, "group": self.group, "origin": self.origin, "sizes": dict(self.sizes)}
        return {key: value for key, value in named.items() if value}

    @classmethod
    def kernel(cls, check: GroupCheck) -> Divergence:
        """The divergence of a group whose kernel is wrong on its own operands."""
        return cls("codegen", check.group, check.origin, check.description())

    @classmethod
    def memory(cls, stale: Stale) -> Divergence:
        """The divergence of a group that read something else than what was stored for it."""
        reason = f"its operand {stale.tensor} changed since group {stale.producer} stored it"
        return cls("memory", stale.group, stale.origin, reason)

    def sentence(self) -> str:
        """One sentence for people."""
        where = f"{self.group} ({self.origin})" if self.origin else self.group
        if self.sizes:
            where += f" at {sizes_text(self.sizes)}"
        match self.stage:
            case "codegen":
                return f"First diverging group: {where}: {self.reason}; its kernel is not what the plan says."
            case "import":
                return f"First diverging group: {where}: {self.reason}; its kernel is what the graph says."
            case "memory":
                return f"First diverging group: {where}: {self.reason}: two tensors share memory that they must not."
        return self.reason


def locate(plan: Plan, folder: Path, kernels: Mapping[str, Any], model: Path, feeds: Mapping[str, Array]) -> Divergence:
    """Find the first group of `plan` (compiled in `folder`) whose results are wrong for `feeds`.

    A group is at fault if its results differ from its expressions on its own operands. If there is none, the first
    tensor that differs from the corresponding node's output on onnxruntime is at fault.
    """
    try:
        with Remote("the compiled model", Compiled, folder) as compiled:
            compiled.ready()
            found = wrong_group(compiled, plan, kernels, feeds)
        return found or diverging_origin(plan, folder, model, feeds)
    except TilecError as error:
        return Divergence("unknown", reason=f"The first diverging group is not known: {error.message}.")


def wrong_group(
    compiled: Remote, plan: Plan, kernels: Mapping[str, Any], feeds: Mapping[str, Array]
) -> Divergence | None:
    """The first group that the `compiled` library computes wrongly, or whose operands changed in memory."""
    checks: list[GroupCheck]
    checks, stale = compiled.call("check_groups", plan, kernels, feeds, frozenset(group.name for group in plan.groups))
    wrong = next((check for check in checks if not check.passed), None)
    if wrong is not None:
        return Divergence.kernel(wrong)
    return Divergence.memory(stale) if stale is not None else None


def diverging_origin(plan: Plan, folder: Path, model: Path, feeds: Mapping[str, Array]) -> Divergence:
    """The first group whose expressions differ from the model's node on onnxruntime, by more than rounding on the way
    to it explains. Raises LookTooLong."""
    last = {node.origin[-1]: node.name for group in plan.groups for node in group.nodes if node.origin}
    origins = {tensor: origin for origin, tensor in last.items()}
    allowed = tensor_tolerances(plan)
    LookBudget().evaluations(plan, LEAST)
    reference = inner_tensors(model, model_feeds(plan, feeds), last)
    for group, results in WholePlan(plan, folder).results(feeds):
        for tensor, values in results.items():
            expected = reference.get(origins.get(tensor, ""))
            if not isinstance(expected, np.ndarray) or expected.size != values.size:
                continue
            # Sorted, because the plan may store the dimensions of a tensor in another order.
            comparison = compare(tensor, np.sort(values, axis=None), np.sort(expected, axis=None), allowed[tensor])
            if not comparison.passed:
                return Divergence("import", group.name, origins[tensor], comparison.reason)
    return Divergence(
        "unknown", reason="Every group computes what its expressions say; the model means something else."
    )
