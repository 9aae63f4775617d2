"""A cluster of a compiled model with its inputs as a model of its own, to verify, reduce, time and explain (B29)."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from tilec.errors import ArtifactError, TilecError, several
from tilec.pipeline.host_match import host_mismatch
from tilec.pipeline.job import Job, StageInput, read_source
from tilec.pipeline.part_folder import command_of, write_part_folder
from tilec.pipeline.steps.verify import model_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilec.ir.plan import Group, Plan
    from tilec.verify.submodels import Part

SLOWEST, FAILING = "slowest", "failing"
"""Clusters by what they do: the group that takes longest, and the first one whose results are wrong."""


@dataclass(frozen=True)
class Captured:
    """A group, why it was captured, and how many nodes of the model are behind it."""

    group: str
    why: str
    nodes: int


def capture_cluster(
    job: Job,
    source: StageInput,
    feeds: Mapping[str, NDArray[Any]],
    wanted: str,
    device_text: str,
    output: Path,
    threads: int,
) -> Captured:
    """Write the nodes behind a group of the compiled model `source`, with their inputs in a run on `feeds`, to the
    folder `output`.

    `wanted` is a group's name or number, `slowest` or `failing`. `job` has the recipe that the model was compiled by.
    Raises UsageError for a group that there is not, TilecError when nothing fails or the part cannot stand alone.
    """
    assert job.device is not None
    because = host_mismatch(job.device)
    if because is not None or "runtime" not in source.body:
        message = f"only what runs here can be captured: {because or 'there is no code'}"
        raise ArtifactError(message, source.place, "Compile it with --device host, or capture where it runs.")
    from tilec.importer.upgrade_opset import modern_file
    from tilec.ir.codec import plan_from_json

    beside = read_source("plan", source.folder)
    plan = plan_from_json(beside.body, beside.place)
    with modern_file(model_file(job, source, plan.files)) as model:
        group, why = _group(plan, source, model, feeds, wanted, threads)
        part = _part(group, model, feeds)
    nodes = len(part.proto.graph.node)
    about = (f"{several(nodes, 'node')} behind group {group.name}, {why}", command_of(output))
    write_part_folder(part, about, job.recipe, device_text, output)
    return Captured(group.name, why, nodes)


def _group(
    plan: Plan, source: StageInput, model: Path, feeds: Mapping[str, NDArray[Any]], wanted: str, threads: int
) -> tuple[Group, str]:
    """The wanted group, and why it is."""
    from tilec.analysis.explain.names import group_named

    if wanted == SLOWEST:
        name, why = _slowest(source.folder, feeds, threads)
    elif wanted == FAILING:
        name, why = _failing(plan, source, model, feeds)
    else:
        name, why = wanted, "which was asked for"
    return group_named(plan, name), why


def _slowest(folder: Path, feeds: Mapping[str, NDArray[Any]], threads: int) -> tuple[str, str]:
    from tilec.bench.trace import traced

    seconds: dict[str, list[float]] = {}
    for run in traced(folder, feeds, threads):
        for span in run:
            seconds.setdefault(span.name, []).append(1e-9 * (span.end - span.begin))
    if not seconds:
        raise TilecError("nothing of the model ran", str(folder), "Capture a run whose tensors have elements.")
    medians = {name: median(times) for name, times in seconds.items()}
    name = max(medians, key=medians.__getitem__)
    return name, f"which takes {1e6 * medians[name]:.1f} us, {medians[name] / sum(medians.values()):.0%} of all groups"


def _failing(plan: Plan, source: StageInput, model: Path, feeds: Mapping[str, NDArray[Any]]) -> tuple[str, str]:
    import numpy as np

    from tilec.spec.recipe import VerifyOptions
    from tilec.verify.cases import cases_of, steps_at
    from tilec.verify.locate import locate

    with tempfile.TemporaryDirectory(prefix="tilec-") as scratch:
        file = Path(scratch) / "inputs.npz"
        np.savez(file, allow_pickle=False, **feeds)
        (case,) = cases_of(plan, VerifyOptions(inputs=str(file)), model)
        divergence = locate(case.plan, source.folder, steps_at(source.body, case), model, feeds)
    if divergence.group == "unknown":
        hint = "Capture another group, or pass inputs on which `tilec verify` fails."
        raise TilecError(divergence.reason or "no group is wrong on these inputs", source.place, hint)
    return divergence.group, divergence.sentence()


def _part(group: Group, model: Path, feeds: Mapping[str, NDArray[Any]]) -> Part:
    """The nodes of the model behind a group, and their inputs by onnxruntime."""
    import onnx

    from tilec.verify.failure_trial import Trace
    from tilec.verify.groups import origins
    from tilec.verify.submodels import Whole

    proto = onnx.load(str(model), load_external_data=False)
    with tempfile.TemporaryDirectory(prefix="tilec-") as scratch:
        trace = Trace(model, proto, feeds, Path(scratch) / "trace")
        try:
            whole = Whole(proto, trace, model.parent)
            part = whole.part(whole.named(origins(group)))
        finally:
            trace.close()
    if part is None:
        message = f"the nodes behind {group.name} do not stand alone: they read a value that is no tensor"
        raise TilecError(message, hint="Capture another group; `tilec inspect` lists them.")
    return part
