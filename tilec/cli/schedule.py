"""`tilec schedule`: the second stage, from a graph and a device to a plan."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tilec.cli.console import Console
from tilec.cli.options import (
    AsJson,
    Bounds,
    Budget,
    Device,
    Effort,
    PrintBetweenPasses,
    PrintRecipe,
    Profile,
    Recipe,
    Record,
    Shapes,
    Workers,
    flags,
    job_on_device,
    target_of,
)
from tilec.pipeline import bind_sizes, read_source, run_stage, stage_named


def schedule(
    console: Console,
    graph: Annotated[Path, typer.Argument(metavar="GRAPH", help="1-graph.json, its folder, or - for standard input.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE|DIR|-", help="Where to write (default: 2-plan.json beside GRAPH)."
        ),
    ] = None,
    device: Device = None,
    shape: Shapes = None,
    profile: Profile = False,
    record: Record = None,
    workers: Workers = None,
    budget: Budget = None,
    bounds: Bounds = None,
    effort: Effort = None,
    recipe: Recipe = None,
    print_between_passes: PrintBetweenPasses = False,
    print_recipe: PrintRecipe = False,
    json: AsJson = False,
) -> None:
    """Plan for a device: 1-graph.json -> 2-plan.json.

    \b
    tilec schedule model.tilec/ --device host
    tilec schedule g.json --device a100 -o p.json
    tilec schedule g.json --device device.yaml --shape batch=1,seq=128 -o p.json
    tilec schedule g.json --profile --record r.json -o p.json   # measures what the record lacks
    tilec schedule g.json --profile --workers 4                 # built by four processes, timed here
    tilec schedule g.json --record r.json -o p.json             # measures nothing
    tilec schedule g.json --device a100 --print-between-passes
    """
    from tilec.cli.summary import placement, placement_line, plan_details, plan_line, plan_summary
    from tilec.ir.codec import plan_from_json

    stage = stage_named("schedule")
    folder = graph if graph.is_dir() else graph.parent
    target = target_of(output, folder, stage.file)
    given = flags(
        device=device,
        shapes=shape,
        profile=profile,
        record=record,
        budget=budget,
        bounds=bounds,
        effort=effort,
        watched="schedule" if print_between_passes else None,
    )
    job = job_on_device(console, recipe, given, target.parent if target else folder, print_recipe)
    if job is None:
        return
    job = replace(job, workers=workers)
    artifact = run_stage(stage, job, bind_sizes(job, read_source("graph", graph)), target)
    console.note(placement_line(artifact.body))
    plan = plan_from_json(artifact.body)
    console.note(plan_line(plan))
    console.details(lambda: plan_details(plan))
    if target is None:
        console.data(artifact.text())
    elif json:
        console.json({"artifact": str(target), "placement": placement(artifact.body), "plan": plan_summary(plan)})
