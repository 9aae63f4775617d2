"""The stage `import`: a model as a graph."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tilec.artifact import Artifact, digest_file, require_files
from tilec.errors import TilecError
from tilec.pipeline.job import Advance, Job, StageInput, StageOutput
from tilec.pipeline.pass_printer import PassPrinter
from tilec.pipeline.steps.sources import sizes_to_bind


def graph_inputs(job: Job, source: StageInput) -> dict[str, str]:
    """Digests that decide whether a graph is fresh. Raises UsageError when the model is not there."""
    if not source.path.is_file():
        from tilec.importer.loader import load_model

        load_model(source.path)  # says best what is wrong
    return {"model": digest_file(source.path), "recipe": job.recipe.digest("import", "fallback", "shapes")}


def import_graph(job: Job, source: StageInput, _target: Path, _advance: Advance) -> StageOutput:
    """Read a model as a graph; all sizes stay symbolic first and are bound afterwards."""
    from tilec.importer import UnsupportedModelError, import_model
    from tilec.ir.bind import bind
    from tilec.ir.codec import graph_to_json

    fallback = job.recipe.fallback
    try:
        imported = import_model(source.path, fallback=fallback)
        sizes = sizes_to_bind(job, imported.graph.symbols)
        decided = not imported.graph.calls
    except UnsupportedModelError:
        if not job.shapes:
            raise
        sizes, decided = dict(job.shapes), False
    if sizes and not decided:
        # Some shapes can only be decided with the sizes known.
        imported, sizes = import_model(source.path, sizes=sizes, fallback=fallback), {}
    watch = PassPrinter(job.listener.note) if job.recipe.import_.print_between_passes else None
    if watch is not None:
        watch("translate", imported.graph)
    graph = bind(imported.graph, sizes) if sizes else imported.graph
    if watch is not None and sizes:
        watch("bind", graph)
    files = {**graph.files, source.path.name: digest_file(source.path)}
    graph = replace(graph, files=files)
    return StageOutput(graph_to_json(graph), imported.files)


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
