"""`tilec capture`: a cluster of a compiled model with its inputs, as a model of its own."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from tilec.cli.console import Console
from tilec.cli.options import AsJson, Model, Recipe, device_of, flags, job_on_device
from tilec.cli.run_inputs import feeds_of, read_inputs
from tilec.cli.shape_flags import parse_shapes
from tilec.errors import several
from tilec.pipeline import compile_model, read_source


def capture(
    console: Console,
    build: Annotated[
        Path, typer.Argument(metavar="BUILD|RECORD", help="Folder of a compiled model, or a run that a session kept.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Where to write.")] = Path("cluster"),
    group: Annotated[
        str, typer.Option("--group", metavar="NAME|NUMBER|slowest|failing", help="Which group of the plan.")
    ] = "slowest",
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="NAME=FILE", help="Inputs of the run, as `tilec run` takes them."),
    ] = None,
    shape: Annotated[
        list[str] | None, typer.Option("--shape", metavar="SYMBOL=SIZE[,...]", help="Sizes of random inputs.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of random inputs.")] = 0,
    recipe: Recipe = None,
    model: Model = None,
    json: AsJson = False,
) -> None:
    """Take a slow or failing group out of a compiled model, with its inputs.

    \b
    tilec capture model.tilec/ -o cluster/
    tilec capture model.tilec/ --group failing --input inputs.npz -o cluster/
    tilec capture records/model-0001.json -o cluster/

    Writes model.onnx with the nodes behind the group, inputs.npz, the recipe and device of the model, and compiles them
    into DIR/build, which `verify --reduce`, `bench --inputs` and `explain` take. A session keeps runs where
    TILEC_RECORD names a folder.
    """
    from tilec.api.recording import read_record
    from tilec.cli.plan_origin import planned_recipe
    from tilec.pipeline.capture import capture_cluster
    from tilec.pipeline.part_folder import BUILD, MODEL, RECIPE
    from tilec.runtime import load
    from tilec.spec.resolve import device_source

    folder, kept = (build, {}) if build.is_dir() else read_record(build)
    source, plan = read_source("kernels", folder), read_source("plan", folder)
    device = device_of(plan)
    given: dict[str, Any] = {**flags(), "device": ("the plan", device)}
    job = job_on_device(console, planned_recipe(plan, recipe), given, folder, model=model)
    assert job is not None
    session = load(folder)
    named, random = read_inputs(inputs or ())
    feeds, drawn = feeds_of(folder, session, {**kept, **named}, random, seed, parse_shapes(shape or ()))
    for name in drawn:
        console.note(f"input {name}: random, seed {seed}")
    with console.stage("capture"):
        text = device_source(device).text
        captured = capture_cluster(job, source, feeds, group, text, output, session.threads)
    console.note(f"group {captured.group}, {captured.why}: {several(captured.nodes, 'node')}")
    part = job_on_device(console, str(output / RECIPE), flags(), output)
    assert part is not None
    compile_model(replace(part, cache=job.cache), output / MODEL, output / BUILD, last="codegen")
    if json:
        console.json({"folder": str(output), "group": captured.group, "nodes": captured.nodes})
    else:
        console.data(str(output / BUILD))
