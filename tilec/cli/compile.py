"""`tilec compile`: the four stages in sequence; fresh ones are skipped."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tilec.artifact import pretty, write_text
from tilec.cli.console import Console
from tilec.cli.exported_file import model_of
from tilec.cli.import_ import folder_of
from tilec.cli.options import (
    AllowUnverified,
    AsJson,
    Bounds,
    Budget,
    Device,
    Effort,
    PrintRecipe,
    Profile,
    ProfileCompile,
    Recipe,
    Record,
    Shapes,
    ShapesFrom,
    Strict,
    Threads,
    Workers,
    flags,
    job_on_device,
)
from tilec.cli.unverified import require_verified
from tilec.errors import ArtifactError, TilecError, UsageError
from tilec.pipeline import FILES, Job, compile_model, read_run, read_source


def compile_(
    console: Console,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="ONNX file, or one of torch.export.save (.pt2).")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Where to write (default: MODEL.tilec, unless it is for another device).",
        ),
    ] = None,
    device: Device = None,
    shape: Shapes = None,
    shapes_from: ShapesFrom = None,
    threads: Threads = None,
    profile: Profile = False,
    record: Record = None,
    workers: Workers = None,
    budget: Budget = None,
    bounds: Bounds = None,
    effort: Effort = None,
    recipe: Recipe = None,
    strict: Strict = False,
    allow_unverified: AllowUnverified = False,
    first: Annotated[str, typer.Option("--from", metavar="STAGE", help="First stage to run.")] = "import",
    last: Annotated[str, typer.Option("--to", metavar="STAGE", help="Last stage to run.")] = "verify",
    profile_compile: ProfileCompile = None,
    print_recipe: PrintRecipe = False,
    json: AsJson = False,
) -> None:
    """Compile a model: import, schedule, codegen, verify.

    \b
    tilec compile model.onnx
    tilec compile model.onnx --device host --shape batch=1 -o build/
    tilec compile model.onnx --device a100 --to schedule -o model.a100.tilec
    tilec compile model.onnx --recipe recipe.yaml --strict
    """
    from tilec.api.size_counts import read_counts
    from tilec.artifact import Json
    from tilec.cli.served_sizes import serves_line, serves_to_json
    from tilec.cli.summary import (
        placement,
        placement_line,
        plan_details,
        plan_line,
        plan_summary,
        verified_line,
        verify_details,
    )
    from tilec.ir.codec import plan_from_json
    from tilec.pipeline.kernels_ahead import kernels_ahead

    folder = output or folder_of(model)
    model, ranges = model_of(model, folder, console)
    given = {f"shapes.{symbol}.range": (model.name, list(limits)) for symbol, limits in ranges.items()}
    given |= flags(
        device=device,
        shapes=shape,
        likely=read_counts(shapes_from).likely() if shapes_from is not None else None,
        strict=strict,
        allow_unverified=allow_unverified,
        threads=threads,
        profile=profile,
        record=record,
        budget=budget,
        bounds=bounds,
        effort=effort,
    )
    job = job_on_device(console, recipe, given, folder, print_recipe)
    if job is None:
        return
    job = replace(job, workers=workers)
    if output is None and job.device is not None:
        _refuse_other_device(folder, job.device.name)
    with _profiled(job, profile_compile) as job, kernels_ahead(job) as job:
        done = compile_model(job, model, folder, first, last)
    summary: dict[str, Json] = {"folder": str(folder), "stages": list(done)}
    whole = done["import"] if last == "import" else done.get("schedule") or read_source("plan", folder)
    console.note(placement_line(whole.body))
    summary["placement"] = placement(whole.body)
    if last != "import":
        plan = plan_from_json(whole.body)
        console.note(plan_line(plan))
        if (serves := serves_line(plan)) is not None:
            console.note(serves)
        console.details(lambda: plan_details(plan))
        summary["plan"] = plan_summary(plan)
        summary["serves"] = serves_to_json(plan)
    if "verify" in done:
        console.details(lambda: verify_details(done["verify"].body, read_run(folder)))
        console.note(verified_line(done["verify"].body))
        summary["verified_on"] = done["verify"].body["verified_on"]
    if json:
        console.json(summary)
    if "verify" in done:
        require_verified(done["verify"].body, job.recipe.verify, folder)


@contextmanager
def _profiled(job: Job, file: Path | None) -> Iterator[Job]:
    """The job, its stages and steps clocked; the seconds are written at the end, of a job that failed too."""
    if file is None:
        yield job
        return
    from tilec.pipeline.compile_profile import ProfiledListener, profile_to_json

    listener = ProfiledListener(job.listener)
    try:
        yield replace(job, listener=listener)
    except BaseException:
        with suppress(TilecError):  # what went wrong before is told
            write_text(file, pretty(profile_to_json(listener.spans)))
        raise
    write_text(file, pretty(profile_to_json(listener.spans)))


def _refuse_other_device(folder: Path, device: str) -> None:
    """Raise UsageError when the default folder holds the plan of another device, which would be lost."""
    if not (folder / FILES["plan"]).is_file():
        return
    try:
        planned = str(read_source("plan", folder).body.get("device", device))
    except (ArtifactError, UsageError):
        return  # damaged: it is made anew
    if planned != device:
        raise UsageError(
            f"it holds a build for {planned}, not for {device}",
            str(folder),
            f"Write it elsewhere: -o {folder.stem}.{device}.tilec. With -o {folder} it is replaced.",
        )
