"""The diff of the kernels of two compiled models: steps in order, memory, threads, inputs, outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from tilec.analysis.change import Change, Fact, GroupChange, Kind, PlanDiff, Side
from tilec.analysis.diff import metrics
from tilec.analysis.totals import Costs
from tilec.artifact import compact
from tilec.ir.expr import Const

Body = Mapping[str, Any]
"""The data of 3-kernels.json."""

Step = tuple[str, str]
"""The kernel of a step and its group; a kernel's name determines its code, a group's is only a name."""


def diff_kernels(old: Body, new: Body) -> PlanDiff:
    """The differences between the kernels of two compiled models; names of groups and tensors do not count.

    A step is reported like a plan's group. A kernel with the same name, group and tensors but another program was
    lowered by another version.
    """
    before, after = _steps(old), _steps(new)
    same = SequenceMatcher(None, [kernel for kernel, _ in before], [kernel for kernel, _ in after], autojunk=False)
    changes: list[GroupChange] = []
    for tag, i, j, k, m in same.get_opcodes():
        if tag == "equal":
            changes += _lowered(old, new, before[i:j], after[k:m])
        else:
            changes.append(_changed(before[i:j], after[k:m]))
    touched = sum(len(change.after) for change in changes)
    return PlanDiff(
        Side(str(old.get("name", "")), str(old.get("device", "")), len(before)),
        Side(str(new.get("name", "")), str(new.get("device", "")), len(after)),
        len(after) - touched,
        tuple(_surroundings(old, new)),
        tuple(changes),
        metrics(_costs(old), _costs(new), changed_only=False),
        what="kernels",
    )


def _steps(body: Body) -> list[Step]:
    """The steps in order; a call of onnxruntime is identified by its inputs and outputs."""
    return [
        (str(step["kernel"]), str(step.get("group", ""))) if "kernel" in step else (f"onnxruntime {compact(step)}", "")
        for step in body.get("steps", ())
    ]


def _changed(before: Sequence[Step], after: Sequence[Step]) -> GroupChange:
    """Steps that were replaced by others."""
    kind: Kind = "regrouped"
    if not before or not after:
        kind = "removed" if before else "added"
    elif len(before) == len(after) == 1:
        kind = "other kernel"
    names = [tuple(group or kernel for kernel, group in side) for side in (before, after)]
    first, second = (list(dict.fromkeys(kernel for kernel, _ in side)) for side in (before, after))
    change = [Change("kernel", "", first, second)] if before and after else []
    return GroupChange((kind,), names[0], names[1], " ".join(second or first), tuple(change), ())


def _lowered(old: Body, new: Body, before: Sequence[Step], after: Sequence[Step]) -> Iterator[GroupChange]:
    """Steps of the same kernel, group and tensors with another program."""
    tensors = [{step.get("group"): step.get("tensors") for step in body.get("steps", ())} for body in (old, new)]
    for (kernel, group), (_, other) in zip(before, after, strict=True):
        if group != other or tensors[0].get(group) != tensors[1].get(group):
            continue
        first, second = (body.get("programs", {}).get(group, {}).get("sha256") for body in (old, new))
        if first != second:
            change = Change("program", kernel, first, second)
            yield GroupChange(("rewritten",), (group,), (group,), kernel, (change,), ())


def _costs(body: Body) -> Costs:
    """Number of steps, kernels and calls; bytes of the arena, of scratch and of constants."""
    steps, runtime = body.get("steps", ()), body.get("runtime") or {}
    kernels = {step["kernel"] for step in steps if "kernel" in step}
    costs = {
        "launches": len(steps),
        "kernels": len(kernels),
        "calls": sum("kernel" not in step for step in steps),
        "arena": body.get("arena", {}).get("bytes", 0),
        "constants": sum(each.get("size", 0) for each in body.get("constants", {}).values()),
    }
    if runtime:
        costs["scratch"] = runtime.get("scratch_bytes", 0)
    return {name: Const(int(value)) for name, value in costs.items()}


def _surroundings(old: Body, new: Body) -> Iterator[Change]:
    """Changed facts beside the steps."""
    tables = [dict(_facts(body)) for body in (old, new)]
    for kind, subject in dict.fromkeys((*tables[0], *tables[1])):
        before, after = (table.get((kind, subject)) for table in tables)
        if before != after:
            yield Change(kind, subject, before, after)


def _facts(body: Body) -> Iterator[tuple[tuple[str, str], Fact]]:
    runtime = body.get("runtime") or {}
    yield ("device", ""), str(body.get("device", ""))
    yield ("runs here", ""), "yes" if runtime else "no"
    if "threads" in runtime:
        yield ("threads", ""), runtime["threads"]
    for kind in ("inputs", "outputs"):
        for port in runtime.get(kind, ()):
            shape = ", ".join(map(str, port.get("shape") or ()))
            yield (kind.removesuffix("s"), str(port.get("name"))), f"{port.get('ttype') or port.get('type')}[{shape}]"
