"""From what a user names - an Einsum, a workload, a model, a graph artifact - to subjects with their curves (O35)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tilec.analysis.bounds.subject import Attained, Slope, Subject, of_einsum
from tilec.bounds.einsum.cache import cached, cached_parallel
from tilec.bounds.einsum.einsum import Einsum, parse_einsum
from tilec.bounds.einsum.mapspaces import Kind
from tilec.errors import ArtifactError, ConfigError, UsageError, did_you_mean

if TYPE_CHECKING:
    from tilec.analysis.bounds.whole import InTasks
    from tilec.bounds.graph.parallel_curves import FindParallel
    from tilec.ir.graph import Graph
    from tilec.pipeline.job import Listener
    from tilec.progress import Advance
    from tilec.spec.bounds import BoundsRecipe


def einsum_subject(
    text: str, sizes: Mapping[str, int], bits: int | Mapping[str, int], kinds: Sequence[Kind]
) -> Subject:
    """The subject of an Einsum's text. Raises ConfigError and UnsupportedError as `parse_einsum` does."""
    einsum = parse_einsum(text, sizes, bits)
    return of_einsum(einsum, slopes_of(einsum, kinds), find=_in_tasks(kinds))


def slopes_of(einsum: Einsum, kinds: Sequence[Kind]) -> list[Slope]:
    """The curves of one Einsum, from the cache where they are known."""
    return [Slope.of(kind, cached(einsum, kind)) for kind in kinds]


def _in_tasks(kinds: Sequence[Kind]) -> FindParallel | None:
    """The curves in tasks, which are of the larger mapspace."""
    return cached_parallel if "oro+" in kinds else None


def workload(name: str) -> BoundsRecipe:
    """The bounds recipe of a name or file. Raises UsageError when there is none, ConfigError when it is wrong."""
    from tilec.spec.bounds import BoundsRecipe
    from tilec.spec.located import parse_yaml, validate
    from tilec.spec.resolve import recipe_source

    source = recipe_source(name)
    located = parse_yaml(source.text, source.place)
    if (kind := located.data.get("kind")) != "bounds":
        hint = f"Run it with `tilec report --recipe {name}`." if kind == "sweep" else None
        raise ConfigError(f"expected kind 'bounds', found {kind or 'none'!r}", located.place(("kind",)), hint)
    return validate(BoundsRecipe, located)


def workload_subject(name: str, recipe: BoundsRecipe, kinds: Sequence[Kind]) -> Subject:
    """The subject of a workload. Raises ConfigError and UnsupportedError for what cannot be bounded."""
    from tilec.analysis.bounds.whole import of_workload

    return of_workload(name, recipe, kinds)


def graph_subjects(graph: Graph, kinds: Sequence[Kind], capacities: Sequence[int], advance: Advance) -> list[Subject]:
    """Every distinct contraction of a graph, every distinct chain, and the whole graph.

    The whole graph is looked at the `capacities` too, in bytes.  Raises UsageError while sizes are symbolic.
    """
    from tilec.analysis.bounds.whole import of_chain, of_graph
    from tilec.bounds.graph.best_known import graph_curve
    from tilec.bounds.graph.chains import chains
    from tilec.bounds.graph.contractions import contractions, lettered

    single, linked = contractions(graph), chains(graph)
    total = len(single) + len(linked) + 1
    found: list[Subject] = []
    for each in single:
        advance(len(found), total)
        einsum = lettered(each, graph)
        found.append(of_einsum(einsum, slopes_of(einsum, kinds), each.name, len(each.nodes), _in_tasks(kinds)))
    for chain in linked:
        advance(len(found), total)
        found.append(of_chain(chain, kinds))
    advance(len(found), total)
    curve = graph_curve(graph, lambda einsum: cached(einsum, kinds[-1]), kinds[-1] == "oro+", capacities)
    advance(total, total)
    width = max((operand.bits for each in single for operand in each.einsum.inputs), default=0)
    parallel = _graph_in_tasks(graph) if "oro+" in kinds else None
    return [*found, of_graph(graph.name, len(graph.nodes), curve, width, parallel)]


def _graph_in_tasks(graph: Graph) -> InTasks:
    from tilec.bounds.graph.best_known import parallel_known

    def find(capacity: int, units: int) -> Attained | str:
        point = parallel_known(graph, cached_parallel, capacity, units)
        if point is None:
            return f"nothing fits in {units} tasks"
        return Attained(point.buffer_bytes, point.traffic_bytes, None, point.mapping)

    return find


def read_graph(source: str, shapes: Mapping[str, int], listener: Listener) -> Graph:
    """The graph of an artifact, an output folder, a model or a name of the zoo, with sizes bound.

    Raises UsageError for what is none of these, and what reading and importing raise.
    """
    from tilec import zoo

    path = Path(source)
    if path.is_dir() or path.suffix == ".json" or source == "-":
        return _artifact(path, shapes)
    if path.is_file():
        return _imported(path, shapes, listener)
    if source not in zoo.names():
        raise _unknown(source)
    given = {name: size for name, size in shapes.items() if name in zoo.sizes(source)}
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"{source}.onnx"
        zoo.export(source, file, batch=given.get("batch", 1), seq=given.get("seq"))
        return _imported(file, {name: size for name, size in shapes.items() if name not in given}, listener)


def at_usual_sizes(graph: Graph) -> tuple[Graph, dict[str, int]]:
    """A graph at the sizes of its symbols that a plan is made for, and these sizes. Raises UsageError where they break
    a constraint."""
    from tilec.ir.bind import bind
    from tilec.ir.sizes import pivot_sizes

    sizes = pivot_sizes(graph.symbols, graph.symbol_ranges)
    return bind(graph, sizes), sizes


def _unknown(source: str) -> UsageError:
    from tilec import zoo
    from tilec.spec.resolve import packaged

    if Path(source).suffix:
        return UsageError("no such file", source)
    known = (*zoo.names(), *(name for name in packaged("recipes") if name.startswith("bounds/")))
    near = did_you_mean(source, known)
    hint = f"Did you mean {near!r}?" if near else "Name an Einsum, a workload, an ONNX model, a graph or its folder."
    return UsageError(f"there is no {source!r}", hint=hint)


def _artifact(path: Path, shapes: Mapping[str, int]) -> Graph:
    from tilec.ir.bind import bind
    from tilec.ir.codec import graph_from_json
    from tilec.ir.verify.graph import check_graph
    from tilec.pipeline.job import read_source

    read = read_source("graph", path)
    graph = graph_from_json(read.body, read.place)
    if problems := check_graph(graph):
        raise ArtifactError(f"illegal graph: {problems[0]}", read.place, "Undo the edit or make it anew.")
    return bind(graph, shapes)


def _imported(path: Path, shapes: Mapping[str, int], listener: Listener) -> Graph:
    from tilec.ir.codec import graph_from_json
    from tilec.pipeline.job import Job, StageInput
    from tilec.pipeline.steps.import_model import import_graph
    from tilec.spec.recipe import CompileRecipe

    job = Job(CompileRecipe(), listener, shapes=shapes, asked=frozenset(shapes))
    with listener.stage("import") as advance:
        made = import_graph(job, StageInput(path), path, advance)
    return graph_from_json(made.body, path.name)
