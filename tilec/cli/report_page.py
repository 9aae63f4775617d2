"""`tilec report PLAN... -o report.html`: plans and related artifacts as one page."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilec.cli.console import Console
from tilec.cli.options import known_device
from tilec.errors import ArtifactError, UsageError

if TYPE_CHECKING:
    from tilec.pipeline import StageInput
    from tilec.report.html import Shown
    from tilec.spec.device import DeviceSpec

_MOST = 2
"""Limit of plans on a page."""

_PAGES = (".html", ".htm")


def write_page(
    console: Console,
    plans: Sequence[str],
    output: Path,
    devices: Sequence[str],
    others: Sequence[str],
    sizes: Mapping[str, int],
) -> None:
    """Write the page of one plan or two; `-` is standard output. Plans with symbols are shown at `sizes`, symbols left
    out at the sizes that the plan is made for.

    The plans' devices are looked for among `devices` first, then in files beside the plans; `others` are options that
    do not apply here. Raises UsageError, ArtifactError, ConfigError and PlanError.
    """
    from tilec.artifact import write_text
    from tilec.report.html import page
    from tilec.spec.resolve import resolve_device

    if others:
        raise UsageError(f"a page takes no {others[0]}", "-o", "Leave it out; a page shows plans that exist.")
    if not 1 <= len(plans) <= _MOST:
        message = "no plan is named" if not plans else f"{len(plans)} plans are more than two"
        raise UsageError(message, "PLAN", "Name 2-plan.json or its folder, or two of them.")
    if str(output) != "-" and output.suffix not in _PAGES:
        raise UsageError("the page is HTML", str(output), "Name it .html, or - for standard output.")
    if plans.count("-") > 1:
        raise UsageError("both plans cannot come from standard input", hint="Name a file for one of them.")
    given = [resolve_device(name) for name in devices]
    with console.stage("report"):
        text = page(_shown([Path(name) for name in plans], given, sizes))
        if str(output) != "-":
            write_text(output, text)
    if str(output) == "-":
        console.data(text)
    else:
        console.note(f"page: {output}")


def _shown(paths: Sequence[Path], given: "Sequence[DeviceSpec]", sizes: Mapping[str, int]) -> "list[Shown]":
    """The plans with the artifacts beside them. Raises UsageError for a device that none was made for."""
    from tilec.pipeline import read_source

    sources = [read_source("plan", path) for path in paths]
    wanted = {source.artifact.inputs.get("device") for source in sources if source.artifact is not None}
    for device in given:
        if device.digest() not in wanted:
            hint = "Name the file that `tilec schedule` had, or leave it out."
            raise UsageError(f"no plan was made for {device.name!r} as it is in this file", "--device", hint)
    return [_one(source, str(path), given, sizes) for source, path in zip(sources, paths, strict=True)]


def _one(source: "StageInput", label: str, given: "Sequence[DeviceSpec]", sizes: Mapping[str, int]) -> "Shown":
    from tilec.analysis.scenario_figures import MANY_LENGTHS
    from tilec.artifact import digest_object
    from tilec.cli.plan_origin import plan_as_it_stands
    from tilec.ir.bind_plan import complete_sizes
    from tilec.ir.verify.plan import check_plan
    from tilec.pipeline import read_run
    from tilec.pipeline.plan_at_sizes import plan_at_sizes
    from tilec.pipeline.plan_bounds import bounded_plan
    from tilec.pipeline.scenario_figures import scenario_figures
    from tilec.report.html import Shown

    assert source.artifact is not None
    artifact = source.artifact
    plan = plan_as_it_stands(source, given).plan
    if problems := check_plan(plan):
        raise ArtifactError(f"illegal plan: {problems[0]}", source.place, "Undo the edit of the plan.")
    fitting = [device for device in given if device.digest() == artifact.inputs.get("device")]
    device = fitting[0] if fitting else known_device(source)
    plan = bounded_plan(plan, device)
    there = complete_sizes(plan, sizes)
    body, stale = _report(source) if label != "-" else (None, False)
    return Shown(
        label=label,
        plan=plan_at_sizes(plan, there, device) if there else plan,
        device=device,
        report=body,
        run=read_run(source.folder) if body is not None else {},
        stale=stale,
        measured=_measured(source) if label != "-" else {},
        digests={**artifact.inputs, "plan": digest_object(source.body)},
        edited=artifact.edited,
        whole=plan if there else None,
        at=there,
        scenarios=scenario_figures(plan, device, MANY_LENGTHS),
    )


def _measured(source: "StageInput") -> dict[str, float]:
    """Seconds of every group by the trace beside a plan; none where it is of another plan, or cannot be read."""
    import json

    from tilec.artifact import digest_object
    from tilec.bench.trace import TRACE_FILE, measured_times

    try:
        trace = json.loads((source.folder / TRACE_FILE).read_bytes())
    except (OSError, ValueError):
        return {}
    return measured_times(trace, digest_object(source.body))


def _report(source: "StageInput") -> tuple[dict[str, Any] | None, bool]:
    """The report beside a plan, and whether it belongs to another plan."""
    from tilec.artifact import digest_object, read_artifact
    from tilec.pipeline import FILES

    path = source.folder / FILES["report"]
    if not path.is_file():
        return None, False
    report = read_artifact(path, "report")
    if report.inputs.get("plan") != digest_object(source.body):
        return None, True
    return dict(report.body), False
