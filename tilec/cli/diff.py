"""`tilec diff`: the differences between two plans, graphs or kernels."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from json import loads as parse
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilec.cli.completion import devices
from tilec.cli.console import Console
from tilec.cli.options import AsJson, PlanShapes
from tilec.cli.page import Page
from tilec.cli.shape_flags import parse_shapes
from tilec.errors import ArtifactError, UsageError, unreadable

if TYPE_CHECKING:
    from tilec.analysis.change import PlanDiff
    from tilec.pipeline import StageInput
    from tilec.spec.device import DeviceSpec

CHANGED = 3

_WRITERS = "`tilec schedule` writes plans, `tilec import` graphs."

KINDS = ("plan", "graph", "kernels")
"""Kinds of artifacts that can be compared."""


class Format(StrEnum):
    """The output format of a diff."""

    TABLE = "table"
    MD = "md"
    JSON = "json"


def diff(
    console: Console,
    old: Annotated[
        Path,
        typer.Argument(
            metavar="OLD",
            help="2-plan.json, 1-graph.json or 3-kernels.json, a folder, or - for standard input.",
        ),
    ],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The same; what a folder stands for is what OLD is.")],
    form: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.TABLE,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 3 when there are changes.")] = False,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on",
            metavar="METRIC[@LEVEL]=+N%|groups",
            help="Exit with 1 when one of traffic, time, transactions, footprint, flops, groups, launches, kernels, "
            "nodes, constants, calls, arena and scratch grew more (LEVEL `all`: at any level), or a group is another; "
            "may be repeated.",
        ),
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option(
            "--device",
            metavar="NAME|FILE",
            help="The device of an edited plan, for its predicted time (default: device.yaml beside it, or its name); "
            "may be repeated.",
            autocompletion=devices,
        ),
    ] = None,
    shape: PlanShapes = None,
    json: AsJson = False,
) -> None:
    """Tell what differs between two plans: groups, tiles, connections, traffic, refusals; or two graphs, or kernels.

    \b
    tilec diff old.tilec/ new.tilec/
    tilec diff old/2-plan.json new/2-plan.json --format md --fail-on traffic=+5% --fail-on time=+5% --fail-on groups
    tilec diff a.json b.json --exit-code --fail-on traffic@all=+5%,groups=+0%
    tilec diff old/1-graph.json new/1-graph.json
    tilec diff old.tilec/ new.tilec/ --shape seq=384      # what runs at these sizes, and what it costs there

    Groups and nodes are matched by what they compute; names alone are no difference. Of two folders the plans are
    compared. Traffic without a level is that of the lowest one, transactions and a footprint without a level are
    those of any. An edited plan has the costs that its decisions come to. Markdown has no more than the 65,536
    characters of a comment. With -q the first line of a table alone is written.
    """
    from tilec.analysis.limits import LimitExceeded, exceeded, parse_limits
    from tilec.report.diff_json import diff_to_json
    from tilec.report.diff_markdown import diff_markdown
    from tilec.report.diff_text import diff_text
    from tilec.spec.resolve import resolve_device

    limits = parse_limits(fail_on or ())
    if str(old) == str(new) == "-":
        raise UsageError("both cannot come from standard input", hint="Name a file for one of them.")
    named = [resolve_device(name) for name in device or ()]
    result = _diff(console, *_both(old, new), named, parse_shapes(shape or ()))
    beyond = exceeded(result, limits)
    if json or form is Format.JSON:
        console.json(diff_to_json(result))
    else:
        text = diff_text(result) if form is Format.TABLE else diff_markdown(result)
        text = text.split("\n", 1)[0] if console.quiet and form is Format.TABLE else text
        console.data(text if form is Format.MD else Page.of_stdout().folded(text))
    if beyond:
        raise LimitExceeded("; ".join(beyond))
    if exit_code and not result.empty:
        raise typer.Exit(CHANGED)


def _both(old: Path, new: Path) -> "tuple[StageInput, StageInput]":
    """The two artifacts; both of one kind.

    Raises UsageError and ArtifactError for artifacts that cannot be read or compared.
    """
    texts = {path: _text(path) for path in (old, new) if not path.is_dir()}
    kinds = [kind for path in (old, new) if (kind := _kind(texts.get(path, ""))) is not None]
    kind = kinds[0] if kinds else "plan"
    if kind not in KINDS:
        raise UsageError(f"a {kind} is not compared", str(old), f"It compares {', '.join(KINDS)}.")
    first, second = (_artifact(path, texts, kind) for path in (old, new))
    return first, second


def _artifact(path: Path, texts: "dict[Path, str]", kind: str) -> "StageInput":
    from tilec.artifact import parse_artifact
    from tilec.pipeline import StageInput, read_source

    if path not in texts:
        return read_source(kind, path)
    return StageInput(path, parse_artifact(texts[path], kind, "standard input" if str(path) == "-" else str(path)))


def _text(path: Path) -> str:
    """The contents of a file or standard input. Raises UsageError and ArtifactError like every reader of artifacts."""
    if str(path) == "-":
        return sys.stdin.read()
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ArtifactError("not JSON: the file is binary", str(path), _WRITERS) from error
    except OSError as error:
        raise unreadable(error, str(path), _WRITERS) from error


def _kind(text: str) -> str | None:
    """The kind of the artifact in a text; None where it is not recorded."""
    try:
        kind = parse(text)["artifact"]["kind"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return kind if isinstance(kind, str) else None


def _diff(
    console: Console,
    old: "StageInput",
    new: "StageInput",
    devices: "list[DeviceSpec]",
    sizes: Mapping[str, int],
) -> "PlanDiff":
    """The diff of two artifacts of one kind, of plans with symbols at `sizes` where any are given. Raises UsageError
    for a device that neither was made for, and for sizes that the plans do not allow."""
    from tilec.analysis.diff import diff_plans
    from tilec.analysis.diff_graphs import diff_graphs
    from tilec.analysis.diff_kernels import diff_kernels
    from tilec.cli.plan_origin import plan_as_it_stands, plan_there
    from tilec.ir.codec import graph_from_json
    from tilec.pipeline.scenario_figures import scenario_metrics

    assert old.artifact is not None
    assert new.artifact is not None
    wanted = {source.artifact.inputs.get("device") for source in (old, new) if source.artifact is not None}
    for device in devices:
        if device.digest() not in wanted:
            hint = "Name the file that `tilec schedule` had, or leave it out."
            raise UsageError(f"no plan was made for {device.name!r} as it is in this file", "--device", hint)
    if old.artifact.kind == "plan":
        plans = [plan_as_it_stands(source, devices) for source in (old, new)]
        for source, each in zip((old, new), plans, strict=True):
            if each.note:
                console.note(f"{source.place}: {each.note}")
        there = [plan_there(source, each.plan, sizes) for source, each in zip((old, new), plans, strict=True)]
        diff = diff_plans(there[0], there[1])
        if sizes or not plans[0].plan.scenarios or not plans[1].plan.scenarios:
            return diff
        known = [_device_among(source, devices) for source in (old, new)]
        return replace(diff, totals=(*diff.totals, *scenario_metrics(plans[0].plan, plans[1].plan, known)))
    if sizes:
        raise UsageError("--shape looks at plans, and these are none", "--shape", "Compare 2-plan.json.")
    if old.artifact.kind == "graph":
        return diff_graphs(graph_from_json(old.body, old.place), graph_from_json(new.body, new.place))
    return diff_kernels(old.body, new.body)


def _device_among(source: "StageInput", devices: "Sequence[DeviceSpec]") -> "DeviceSpec | None":
    """The device of a plan: one of those that are named, else its file beside the plan, None where it is not there."""
    from tilec.cli.options import known_device

    assert source.artifact is not None
    wanted = source.artifact.inputs.get("device")
    return next((each for each in devices if each.digest() == wanted), None) or known_device(source)
