"""Other weights for a compiled model, in a folder of their own."""

from __future__ import annotations

from pathlib import Path

from tilec.artifact import read_artifact
from tilec.errors import TilecError
from tilec.pipeline.job import FILES, Job
from tilec.pipeline.other_weights import take_over
from tilec.pipeline.stages import compile_model


def refit(job: Job, model: Path, like: Path, folder: Path) -> bool:
    """Compile a model into `folder` by the plan and the code of the compiled model in `like`, whose job was the same
    but for the model; False where their graphs differ by more than values of weights, or `like` is not whole.

    Raises TilecError for a model that cannot be imported, OSError where `like` is removed meanwhile.
    """
    imported = compile_model(job, model, folder, last="import")["import"].artifact
    assert imported is not None
    try:
        graph = read_artifact(like / FILES["graph"], "graph")
    except TilecError:
        return False
    return not graph.edited and take_over(job, graph.body, imported, like, folder)
