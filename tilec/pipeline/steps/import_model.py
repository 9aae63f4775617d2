"""The stage `import`: a model as a graph."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tilec.artifact import Artifact, digest_file, require_files
from tilec.artifact.filenames import is_inside
from tilec.errors import TilecError, UsageError
from tilec.pipeline.job import Job, StageInput, StageOutput
from tilec.pipeline.pass_printer import PassPrinter
from tilec.pipeline.steps.sources import sized, sizes_to_bind
from tilec.progress import Advance

if TYPE_CHECKING:
    from tilec.importer import Imported
    from tilec.ir.formats import Format
    from tilec.ir.graph import Graph


def graph_inputs(job: Job, source: StageInput) -> dict[str, str]:
    """Digests that decide whether a graph is fresh. Raises UsageError when the model is not there, and for a name that
    artifacts cannot have."""
    if not source.path.is_file():
        from tilec.importer.loader import load_model

        load_model(source.path)  # says best what is wrong
    if not is_inside(source.path.name):
        message = "artifacts name this file, and its name has a line break, a backslash or a drive"
        raise UsageError(message, ascii(source.path.name), "Rename the file.")
    return {
        "model": digest_file(source.path),
        "recipe": job.recipe.digest("import", "fallback", "shapes", "scenarios", "types", "compute", "state"),
    }


def import_graph(job: Job, source: StageInput, _target: Path, _advance: Advance) -> StageOutput:
    """Read a model as a graph; all sizes stay symbolic first, ranges and values come afterwards."""
    from tilec.ir.codec import graph_to_json

    watch = PassPrinter(job.listener.note) if job.recipe.import_.print_between_passes else None
    imported = _imported(job, source.path)
    if watch is not None:
        watch("translate", imported.graph)
    graph = sized(imported.graph, _without(job, imported.bound))
    if watch is not None and graph is not imported.graph:
        watch("bind", graph)
    files = {**graph.files, source.path.name: digest_file(source.path)}
    return StageOutput(graph_to_json(replace(graph, files=files)), imported.files)


def _imported(job: Job, path: Path) -> "Imported":
    """The model with all sizes symbolic, or with the job's sizes from the start: where some nodes do not compile
    otherwise, and where the symbolic model does not take these sizes and ranges (a size of 1 that is repeated)."""
    from tilec.importer import UnsupportedModelError, import_model

    recipe = job.recipe
    read = partial(
        import_model,
        path,
        fallback=recipe.fallback,
        types=formats_of(job),
        compute=recipe.compute,
        state=recipe.state,
    )
    try:
        imported = read()
    except UnsupportedModelError:
        if not job.shapes:
            raise
        return read(sizes=job.shapes)
    graph = imported.graph
    sizes = sizes_to_bind(job, (*graph.symbols, *graph.symbol_values))
    if sizes and graph.calls:
        return read(sizes=sizes)
    refusal = _refusal(graph, job)
    if refusal is None:
        return imported
    try:
        return read(sizes=sizes)
    except TilecError:
        raise refusal from None


def formats_of(job: Job) -> "dict[str, Format | None]":
    """The formats of the recipe by pattern, None for weights that keep their type."""
    from tilec.ir.formats import parse_format
    from tilec.spec.recipe import KEEP

    return {pattern: None if text == KEEP else parse_format(text) for pattern, text in job.recipe.types.items()}


def _refusal(graph: "Graph", job: Job) -> UsageError | None:
    """Why a symbolic graph does not take the job's sizes and ranges."""
    try:
        sized(graph, job)
    except UsageError as error:
        return error
    return None


def _without(job: Job, bound: Iterable[str]) -> Job:
    """The job without sizes that are bound already."""
    gone = frozenset(bound)
    shapes = {symbol: size for symbol, size in job.shapes.items() if symbol not in gone}
    return replace(job, shapes=shapes, asked=job.asked - gone)


def files_unchanged(artifact: Artifact, folder: Path) -> bool:
    """Whether the weight files of a graph are as they were."""
    try:
        require_files(artifact.body.get("files", {}), folder)
    except TilecError:
        return False
    return True


def written_files(artifact: Artifact) -> frozenset[str]:
    """The files that import wrote beside a graph: constants of its own, and clusters for onnxruntime."""
    constants = artifact.body.get("constants", {}).values()
    owned = [c["file"] for c in constants if isinstance(c, Mapping) and c.get("owned") is True]
    clusters = [name for call in artifact.body.get("calls", ()) for name in (call["file"], *call.get("data", ()))]
    return frozenset((*owned, *clusters))
