"""`tilec import`: the first stage, an ONNX model as a graph of tensor expressions."""

from pathlib import Path
from typing import Annotated

import typer

from tilec.cli.console import Console
from tilec.cli.options import AsJson, PrintBetweenPasses, Recipe, Shapes, Strict, flags, job_without_device, target_of
from tilec.errors import UnsupportedError, several
from tilec.pipeline import Job, StageInput, run_stage, stage_named


def import_(
    console: Console,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="ONNX file.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE|DIR|-", help="Where to write (default: MODEL.tilec/1-graph.json)."
        ),
    ] = None,
    shape: Shapes = None,
    recipe: Recipe = None,
    strict: Strict = False,
    report: Annotated[
        bool,
        typer.Option(
            "--report", help="List every unsupported node with a remedy, and what is known of sizes; write nothing."
        ),
    ] = False,
    print_between_passes: PrintBetweenPasses = False,
    json: AsJson = False,
) -> None:
    """Read an ONNX model: model.onnx -> 1-graph.json.

    \b
    tilec import model.onnx
    tilec import model.onnx --shape batch=1 -o g.json
    tilec import model.onnx --report
    tilec import model.onnx -o - | tilec schedule - --device a100 -o p.json
    """
    from tilec.cli.summary import placement, placement_line

    job = job_without_device(
        console, recipe, flags(shapes=shape, strict=strict, watched="import" if print_between_passes else None)
    )
    if report:
        _report(console, job, model, json)
        return
    stage = stage_named("import")
    target = target_of(output, folder_of(model), stage.file)
    artifact = run_stage(stage, job, StageInput(model), target)
    console.note(placement_line(artifact.body))
    if target is None:
        console.data(artifact.text())
    elif json:
        console.json({"artifact": str(target), "placement": placement(artifact.body)})


def folder_of(model: Path) -> Path:
    """Default folder of a model's artifacts: MODEL.tilec in the current folder."""
    return Path(f"{model.stem}.tilec")


def _report(console: Console, job: Job, model: Path, json: bool) -> None:
    """List the nodes that do not compile and what the others demand of sizes. Raises UnsupportedError for any node that
    the recipe does not let fall back."""
    from tilec.importer import Unsupported, UnsupportedModelError, import_model
    from tilec.ir.scenarios import with_scenarios
    from tilec.pipeline.request import declared_scenarios
    from tilec.report.sizes import size_lines, sizes_to_json

    sizes = {symbol: size for symbol, size in job.shapes.items() if symbol in job.asked}
    nodes: tuple[Unsupported, ...]
    graph = None
    try:
        graph = import_model(model, sizes=sizes, fallback="allow", state=job.recipe.state).graph
        likely = {symbol: entry.likely for symbol, entry in job.ranges.items() if entry.likely}
        graph = with_scenarios(graph, declared_scenarios(job.recipe), likely, sizes)
        nodes, total = graph.placement.fallback, graph.placement.total
    except UnsupportedModelError as error:
        nodes, total = error.nodes, error.total
    if json:
        listed = [{"node": n.node, "op": n.op, "reason": n.reason, "remedy": n.remedy} for n in nodes]
        facts = {} if graph is None else {"sizes": sizes_to_json(graph)}
        console.json({"compiled": total - len(nodes), **facts, "total": total, "unsupported": listed})
    else:
        for line in () if graph is None else size_lines(graph):
            console.data(line)
        for node in nodes:
            console.data(f"{node.node} ({node.op}): {node.reason}" + (f"\n  {node.remedy}" if node.remedy else ""))
        console.note(f"{total - len(nodes)} of {several(total, 'node')} {'compiles' if total == 1 else 'compile'}")
    allowed = job.recipe.fallback
    refused = [n for n in nodes if allowed == "refuse" or (allowed != "allow" and n.op not in allowed)]
    if refused:
        raise UnsupportedError(
            f"{len(refused)} of {several(total, 'node')} may not run on onnxruntime",
            str(model),
            "Leave --strict out, or name their operators in `fallback` of the recipe.",
        )
