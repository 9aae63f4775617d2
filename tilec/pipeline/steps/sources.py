"""Questions of all stages about the artifact that they read: digests, rules, sizes, files that lie elsewhere."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tilec.errors import ArtifactError
from tilec.pipeline.job import Job, StageInput

if TYPE_CHECKING:
    from tilec.ir.graph import Graph


OWN_FAULT = "Nobody edited it: this is a fault of tilec, report it with the model."


def carried(source: StageInput, *roles: str) -> dict[str, str]:
    """Digests of earlier artifacts, by role, as the artifact that is read records them."""
    inputs = source.artifact.inputs if source.artifact else {}
    return {role: inputs[role] for role in roles if role in inputs}


def refuse_illegal(kind: str, problems: tuple[str, ...], source: StageInput) -> None:
    """Raise ArtifactError when an artifact, perhaps edited by hand, breaks a rule."""
    if problems:
        also = "".join(f"\n  Also: {problem}" for problem in problems[1:5])
        mended = "Undo the edit or make it anew." if _is_edited(source) else OWN_FAULT
        raise ArtifactError(f"illegal {kind}: {problems[0]}", source.place, f"{mended}{also}")


def _is_edited(source: StageInput) -> bool:
    return source.artifact is None or source.artifact.edited


def sizes_to_bind(job: Job, symbols: Iterable[str]) -> dict[str, int]:
    """The sizes to bind: those of the graph's symbols, and those that a flag names, known or not."""
    known = set(symbols)
    return {symbol: size for symbol, size in job.shapes.items() if symbol in known or symbol in job.asked}


def sized(graph: "Graph", job: Job) -> "Graph":
    """A graph with the job's ranges, sizes and scenarios.

    Raises UsageError for a symbol that a flag names and the graph does not have, and for sizes that the model refuses;
    ConfigError for scenarios that cannot occur.
    """
    from tilec.ir.bind import bind
    from tilec.ir.restrict import restricted
    from tilec.ir.scenarios import with_scenarios
    from tilec.pipeline.request import declared_scenarios

    known = {*graph.symbols, *graph.symbol_values, *job.asked}
    ranges = {symbol: entry for symbol, entry in job.ranges.items() if symbol in known}
    sizes = sizes_to_bind(job, known)
    likely = {symbol: entry.likely for symbol, entry in ranges.items() if entry.likely}
    return with_scenarios(bind(restricted(graph, ranges), sizes), declared_scenarios(job.recipe), likely, job.shapes)


def moved_files(job: Job, source: StageInput, files: Mapping[str, str]) -> dict[str, Path]:
    """Weight files that are not beside the artifact -> their places: --model names the model, the others lie by it."""
    assert source.artifact is not None
    if job.model is None:
        return {}
    model = source.artifact.inputs.get("model")
    away = {name: digest for name, digest in files.items() if not (source.folder / name).is_file()}
    return {name: job.model if digest == model else job.model.parent / name for name, digest in away.items()}
