"""`tilec verify`: the fourth stage, compiled code against onnxruntime."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tilec.cli.console import Console
from tilec.cli.options import AsJson, Model, Recipe, flags, job_without_device, known_device
from tilec.pipeline import read_run, read_source, run_stage, stage_named


def verify(
    console: Console,
    build: Annotated[Path, typer.Argument(metavar="BUILD", help="Folder of a compiled model.")],
    recipe: Recipe = None,
    model: Model = None,
    json: AsJson = False,
) -> None:
    """Compare with onnxruntime: 3-kernels.json -> 4-report.json.

    \b
    tilec verify build/
    tilec verify build/ --model ../model.onnx --json
    """
    from tilec.cli.summary import placement_line, plan_line, verified_line, verify_details
    from tilec.ir.codec import plan_from_json
    from tilec.spec.probe import cache_folder

    stage = stage_named("verify")
    source = read_source("kernels", build)
    plan = read_source("plan", source.folder)
    job = replace(
        job_without_device(console, recipe, flags(), model), device=known_device(plan), cache=cache_folder() / "objects"
    )
    console.note(placement_line(plan.body))
    console.note(plan_line(plan_from_json(plan.body, plan.place)))
    artifact = run_stage(stage, job, source, source.folder / stage.file)
    console.details(lambda: verify_details(artifact.body, read_run(source.folder)))
    console.note(verified_line(artifact.body))
    if json:
        console.json(artifact.body)
