"""`tilec codegen`: the third stage, from a plan to kernels that run."""

from pathlib import Path
from typing import Annotated

import typer

from tilec.cli.console import Console
from tilec.cli.options import (
    AsJson,
    Device,
    Model,
    PrintBetweenPasses,
    PrintRecipe,
    Recipe,
    Threads,
    device_of,
    flags,
    job_on_device,
)
from tilec.pipeline import read_source, run_stage, stage_named


def codegen(
    console: Console,
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="2-plan.json, its folder, or - for standard input.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Where to write (default: beside PLAN).")
    ] = None,
    device: Device = None,
    threads: Threads = None,
    recipe: Recipe = None,
    model: Model = None,
    emit: Annotated[
        str | None, typer.Option("--emit", metavar="c-api", help="Also write header, libraries and example for C.")
    ] = None,
    print_between_passes: PrintBetweenPasses = False,
    print_recipe: PrintRecipe = False,
    json: AsJson = False,
) -> None:
    """Generate kernels: 2-plan.json -> 3-kernels.json.

    \b
    tilec codegen model.tilec/
    tilec codegen p.json -o build/
    tilec codegen model.tilec/ --emit c-api
    tilec codegen model.tilec/ --print-between-passes
    """
    from tilec.cli.plan_origin import plan_as_it_stands
    from tilec.cli.summary import placement_line, plan_line
    from tilec.pipeline.emit import emitter

    stage = stage_named("codegen")
    source = read_source("plan", plan)
    folder = output or source.folder
    watched = "codegen" if print_between_passes else None
    given = flags(device=device or device_of(source), threads=threads, watched=watched)
    job = job_on_device(console, recipe, given, source.folder, print_recipe, model)
    if job is None:
        return
    assert job.device is not None
    write = None if emit is None else emitter(emit, job.device)
    console.note(placement_line(source.body))
    read = plan_as_it_stands(source)
    console.note(plan_line(read.plan))
    if read.note:
        console.note(f"{source.place}: {read.note}")
    artifact = run_stage(stage, job, source, folder / stage.file)
    emitted: dict[str, list[str]] = {}
    if emit is not None and write is not None:
        files = write(read.plan.name, folder)
        console.note(f"{emit}: {', '.join(files)} in {folder / emit}")
        emitted = {"emitted": [str(folder / emit / file) for file in files]}
    if json:
        console.json({"artifact": str(folder / stage.file), "inputs": dict(artifact.inputs), **emitted})
