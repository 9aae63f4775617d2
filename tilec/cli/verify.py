"""`tilec verify`: the fourth stage, compiled code against onnxruntime; and reduction of a failing model."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tilec.cli.console import Console
from tilec.cli.options import (
    AllowUnverified,
    AsJson,
    Model,
    Recipe,
    Scenario,
    device_of,
    flags,
    job_on_device,
    job_without_device,
    known_device,
)
from tilec.cli.shape_flags import parse_shapes
from tilec.cli.unverified import require_verified
from tilec.errors import TilecError, UsageError, VerificationMismatch, several
from tilec.pipeline import StageInput, read_run, read_source, run_stage, stage_named

if TYPE_CHECKING:
    from tilec.artifact import Artifact
    from tilec.spec.recipe import VerifyOptions


def verify(
    console: Console,
    build: Annotated[Path, typer.Argument(metavar="BUILD", help="Folder of a compiled model.")],
    per_group: Annotated[
        bool, typer.Option("--per-group", help="Compare every group on its own too, and name the first that diverges.")
    ] = False,
    inputs: Annotated[
        Path | None, typer.Option("--inputs", metavar="FILE.npz", help="The model's inputs, instead of random ones.")
    ] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(
            "--shape", metavar="SYMBOL=SIZE[,...]", help="Verify at these sizes, not at samples; repeat for more sizes."
        ),
    ] = None,
    scenario: Scenario = None,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write the verdicts as JUnit XML, right or wrong.")
    ] = None,
    least_share: Annotated[
        float | None,
        typer.Option(
            "--least-share", metavar="SHARE", min=0, max=1, help="Refuse to pass fewer of the groups than this."
        ),
    ] = None,
    allow_unverified: AllowUnverified = False,
    on: Annotated[
        Literal["host", "emulator", "machine"] | None,
        typer.Option("--on", help="What runs the code: this machine, the emulator of GPU kernels or the tile machine."),
    ] = None,
    reduce: Annotated[
        bool, typer.Option("--reduce", help="Make the smallest model and inputs that fail as this one does.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Where --reduce writes (default: repro).")
    ] = None,
    recipe: Recipe = None,
    model: Model = None,
    json: AsJson = False,
) -> None:
    """Compare with onnxruntime: 3-kernels.json -> 4-report.json.

    \b
    tilec verify build/
    tilec verify build/ --model ../model.onnx --json
    tilec verify build/ --per-group --junit verify.xml
    tilec verify build/ --inputs sample.npz
    tilec verify build/ --shape seq=17 --shape batch=2,seq=384
    tilec verify decoder.tilec/ --scenario decode
    tilec verify build/ --on emulator         # GPU kernels on the CPU: races, barriers, sectors
    tilec verify build/ --least-share 0.5     # on the tile machine the budget may not reach all groups
    tilec verify --reduce build/ -o repro/    # prints the command line that shows the failure

    --scenario takes sizes of one scenario: those that the plan is made for and some lengths, or those of --shape for
    what it leaves free. --reduce compiles parts of the model as --recipe says (default: as recipe.yaml beside the plan
    says).
    """
    given = flags(allow_unverified=allow_unverified)
    if per_group:
        given["verify.per_group"] = ("--per-group", True)
    if inputs is not None:
        given["verify.inputs"] = ("--inputs", str(inputs))
    if shape:
        given["verify.sizes"] = ("--shape", [parse_shapes([each]) for each in shape])
    if (shape or scenario) and inputs is not None:
        flag = "--shape" if shape else "--scenario"
        raise UsageError(f"--inputs have sizes, and so has {flag}", hint="Give one of them.")
    if least_share is not None:
        given["verify.least_share"] = ("--least-share", least_share)
    if on is not None:
        given["verify.on"] = ("--on", on)
    if output is not None and not reduce:
        raise UsageError("-o says where --reduce writes", hint="Add --reduce, or leave -o out.")
    if junit is not None:
        from tilec.artifact.store import require_name

        require_name(junit)
    source = read_source("kernels", build)
    if scenario is not None:
        given["verify.sizes"] = ("--scenario", _sizes(source, scenario, [parse_shapes([each]) for each in shape or ()]))
    if reduce:
        if junit is not None:
            raise UsageError("--junit says how a model verifies, --reduce makes a smaller one", hint="Run them apart.")
        _reduce(console, source, recipe, given, model, output or Path("repro"), json)
        return
    try:
        artifact, options = _verified(console, source, recipe, given, model)
    except VerificationMismatch:
        written = read_source("report", source.folder).artifact
        assert written is not None
        _tell(console, source, written, junit, json)
        raise
    except TilecError as error:
        if junit is not None:
            from tilec.verify.junit import junit_of_error

            _write(junit, junit_of_error(source.folder.resolve().name, error))
        raise
    _tell(console, source, artifact, junit, json)
    require_verified(artifact.body, options, source.folder)


_LENGTHS = (1, 17, 100)
"""Lengths that a scenario is verified at, beside those that a plan is made for."""


def _sizes(source: StageInput, scenario: str, given: list[dict[str, int]]) -> list[dict[str, int]]:
    """Sizes of a scenario of the compiled model: with the `given` ones, else a few. Raises UsageError."""
    from tilec.analysis.scenario_figures import sizes_along
    from tilec.cli.plan_origin import plan_of
    from tilec.ir.scenarios import known_scenario, scenario_sizes_of

    _, plan = plan_of(source.folder)
    name = known_scenario(plan, scenario)
    return [scenario_sizes_of(plan, name, each) for each in given] or sizes_along(plan, name, _LENGTHS)


def _verified(
    console: Console, source: StageInput, recipe: str | None, given: dict[str, Any], model: Path | None
) -> "tuple[Artifact, VerifyOptions]":
    """The report, written unless it is fresh, and the options that it was made with. Raises VerificationMismatch when
    its verdict is a mismatch."""
    from tilec.artifact import cache_folder
    from tilec.cli.plan_origin import plan_as_it_stands
    from tilec.cli.summary import placement_line, plan_line

    stage = stage_named("verify")
    plan = read_source("plan", source.folder)
    job = replace(
        job_without_device(console, recipe, given, model), device=known_device(plan), cache=cache_folder() / "objects"
    )
    console.note(placement_line(plan.body))
    read = plan_as_it_stands(plan)
    console.note(plan_line(read.plan))
    if read.note:
        console.note(f"{plan.place}: {read.note}")
    return run_stage(stage, job, source, source.folder / stage.file), job.recipe.verify


def _tell(console: Console, source: StageInput, artifact: "Artifact", junit: Path | None, json: bool) -> None:
    """Print a report on stderr, as JUnit XML and as JSON."""
    from tilec.cli.summary import per_group_line, verified_line, verify_details

    run = read_run(source.folder)
    console.details(lambda: verify_details(artifact.body, run))
    if "per_group" in artifact.body:
        console.note(per_group_line(artifact.body, run))
    console.note(verified_line(artifact.body))
    if junit is not None:
        from tilec.verify.junit import junit as xml

        _write(junit, xml(source.folder.resolve().name, artifact.body, run))
    if json:
        console.json(artifact.body)


def _write(path: Path, text: str) -> None:
    from tilec.artifact import write_text

    write_text(path, text)


def _reduce(
    console: Console,
    source: StageInput,
    recipe: str | None,
    given: dict[str, Any],
    model: Path | None,
    output: Path,
    json: bool,
) -> None:
    """Reduce a failing model; the command line that reproduces the failure goes to stdout."""
    from tilec.cli.plan_origin import planned_recipe
    from tilec.pipeline.reducing import reduce_model
    from tilec.spec.resolve import device_source

    plan = read_source("plan", source.folder)
    device = device_of(plan)
    recipe = planned_recipe(plan, recipe)
    job = job_on_device(console, recipe, {**given, "device": ("the plan", device)}, source.folder, model=model)
    assert job is not None
    planned = plan.artifact.inputs.get("recipe") if plan.artifact else None
    if planned != job.recipe.digest("schedule"):
        console.note("the plan was made with another recipe: parts are compiled by this one; --recipe names another")
    with console.stage("reduce"):
        reproduction = reduce_model(job, source, device_source(device).text, output, console.step)
    reduced = reproduction.reduced
    nodes = [node.op_type for node in reduced.part.proto.graph.node]
    unfinished = "" if reduced.finished else "; there were too many parts to try, it may not be the smallest"
    console.note(
        f"reduced: {reduced.nodes} -> {several(len(nodes), 'node')} ({', '.join(nodes)}), "
        f"{several(reduced.trials, 'part')} tried{unfinished}"
    )
    console.note(f"{reduced.failure.kind}: {reduced.failure.text}")
    if json:
        console.json(
            {
                "command": reproduction.command,
                "failure": {"kind": reduced.failure.kind, "text": reduced.failure.text},
                "finished": reduced.finished,
                "folder": str(output),
                "nodes": reduced.nodes,
                "operators": nodes,
                "trials": reduced.trials,
            }
        )
    else:
        console.data(reproduction.command)
