"""Per-group profile of timed models: a Chrome trace, and the groups far below their roofline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tilec.artifact import Json, digest_object
from tilec.cli.console import Console
from tilec.cli.options import known_device
from tilec.cli.plan_origin import plan_as_it_stands, planned_device
from tilec.pipeline import FILES, StageInput, read_source

if TYPE_CHECKING:
    from tilec.bench.drawn_inputs import DrawnInputs
    from tilec.bench.trace import Share
    from tilec.spec.device import DeviceSpec


@dataclass(frozen=True)
class TracedModel:
    """The shares of a model's groups, and the events of one of its runs."""

    shares: tuple[Share, ...]
    events: list[Json]

    def json(self) -> list[Json]:
        """The groups as plain data."""
        return [
            {
                "bytes": share.bytes,
                "flops": share.operations,
                "group": share.name,
                "roofline": None if share.roofline is None else round(share.roofline, 4),
                "seconds": round(share.seconds, 9),
            }
            for share in self.shares
        ]


def traced_device(build: StageInput, given: str | None) -> DeviceSpec:
    """The device that a model was compiled for: its file beside the model, by name, or the `given` one.

    Raises ArtifactError where none of them matches.
    """
    source = read_source("plan", build.folder / FILES["plan"])
    return known_device(source) or planned_device(source, given)


def trace_model(
    console: Console,
    name: str,
    process: int,
    build: StageInput,
    device: DeviceSpec,
    threads: int,
    inputs: DrawnInputs,
) -> TracedModel:
    """Run a compiled model on inputs and profile its groups."""
    from tilec.bench.trace import events, shares, traced
    from tilec.pipeline.plan_at_sizes import plan_at_sizes

    source = read_source("plan", build.folder / FILES["plan"])
    whole = plan_as_it_stands(source).plan
    sizes = inputs.sizes if whole.symbols else {}
    plan = plan_at_sizes(whole, sizes, device) if sizes else whole
    with console.stage(f"trace {plan.name}"):
        runs = traced(build.folder, inputs.feeds, threads)
    group_shares = shares(plan, runs, device)
    return TracedModel(group_shares, events(process, name, runs, group_shares, digest_object(source.body), sizes))


def write_trace(path: Path, models: Sequence[TracedModel]) -> None:
    """Write the events of all models into one file for chrome://tracing, Perfetto and the like."""
    import json

    from tilec.artifact import atomic_open

    document = {"displayTimeUnit": "ms", "traceEvents": [event for model in models for event in model.events]}
    with atomic_open(path) as file:
        file.write(json.dumps(document, indent=1).encode())


def told(name: str, model: TracedModel) -> list[str]:
    """One line for every group far below its roofline that takes a large part of the model's time."""
    from tilec.bench.trace import slow

    total = sum(share.seconds for share in model.shares)
    return [
        f"{name}: {share.name} takes {1e6 * share.seconds:.0f} us, {share.seconds / total:.0%} of the groups' time, "
        f"at {share.roofline or 0:.0%} of its roofline"
        for share in slow(model.shares)
    ]
