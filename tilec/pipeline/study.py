"""A design study: the curves of every workload, once, on all its machines (O28, O32)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tilec.analysis.studies.machine import machines
from tilec.analysis.studies.rows import Row, compared, row, slowest
from tilec.bounds.einsum.cache import cached
from tilec.errors import ConfigError, UsageError
from tilec.pipeline.bounds import einsum_subject, read_graph, workload, workload_subject
from tilec.pipeline.sweep import Silent
from tilec.pipeline.workers import Workers, in_turn
from tilec.progress import Advance
from tilec.report.bounds.forms import meanings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tilec.analysis.bounds.subject import Subject
    from tilec.spec.device import DeviceSpec
    from tilec.spec.located import Located
    from tilec.spec.study import Studied, StudyRecipe

F32_BITS = 32

_EINSUM = re.compile(r"\w\[[^\]]*\]\s*=")
"""How the text of an Einsum begins: `C[m, n] =`."""


@dataclass(frozen=True)
class Study:
    """The result of a study: its rows, and the sizes of the mapspaces in them."""

    rows: tuple[Row, ...]
    mapspaces: Mapping[str, str]


@dataclass(frozen=True)
class _Task:
    """A workload to bound, and the place that names it."""

    workload: Studied
    place: str | None
    recipe: StudyRecipe
    devices: tuple[DeviceSpec, ...]
    folder: Path


def study(
    recipe: StudyRecipe,
    located: Located,
    advance: Advance,
    folders: Mapping[str, Path],
    workers: Workers = in_turn,
) -> Study:
    """Rows by workload, mapspace and machine, in this order; `workers` bound the workloads, each by itself.

    `located` tells the places of what `recipe` holds, `folders` from where its `workloads` and `devices` are named.
    Raises ConfigError with its place for a workload or device that there is not, and what bounding a workload raises.
    """
    devices = []
    for position, name in enumerate(recipe.devices):
        with _placed(located.place(("devices", position))):
            devices.append(_device(name, folders["devices"]))
    tasks = [
        _Task(each, located.place(("workloads", position)), recipe, tuple(devices), folders["workloads"].absolute())
        for position, each in enumerate(recipe.workloads)
    ]
    advance(0, len(tasks))
    parts = workers(_bounded, tasks, advance)
    return Study(
        tuple(row for part in parts for row in part.rows),
        {name: meaning for part in parts for name, meaning in part.mapspaces.items()},
    )


def _bounded(task: _Task) -> Study:
    """The study of one workload."""
    with _placed(task.place):
        subject = _subject(task.workload, task.recipe, task.devices, task.folder)
    rows = tuple(_rows(task.recipe, task.devices, subject))
    named = {row.mapspace for row in rows}
    return Study(rows, {name: meaning for name, meaning in meanings([subject]).items() if name in named})


@contextmanager
def _placed(place: str | None) -> Iterator[None]:
    """Errors about missing models and devices get the place in the file that names them."""
    try:
        yield
    except UsageError as error:
        raise ConfigError(error.message, place or error.place, error.hint) from error


def _device(name: str, folder: Path) -> DeviceSpec:
    from tilec.spec.resolve import resolve_device

    return resolve_device(name, relative_to=folder)


def _rows(recipe: StudyRecipe, devices: Sequence[DeviceSpec], subject: Subject) -> list[Row]:
    levels = recipe.area is None and not recipe.capacities
    rows = []
    for slope in subject.slopes:
        for alternatives in machines(recipe, devices, subject, slope):
            found = [row(subject, slope, machine) for machine in alternatives]
            rows += slowest(found) if levels else compared(found)
    return rows


def _subject(each: Studied, recipe: StudyRecipe, devices: Sequence[DeviceSpec], folder: Path) -> Subject:
    """A workload with its curves: of a recipe all of them, of a model that of its whole graph, of an Einsum its own."""
    from tilec import zoo
    from tilec.spec.resolve import packaged

    if _EINSUM.search(each.workload):
        return einsum_subject(each.workload, each.shapes, F32_BITS, (recipe.mapspace or "oro+",))
    named = each.workload in packaged("recipes") or each.workload in zoo.names()
    source = each.workload if named else str(folder / each.workload)
    if each.workload in packaged("recipes") or source.endswith((".yaml", ".yml")):
        if each.shapes:
            raise UsageError("a recipe takes no shapes, they are in it", each.workload, "Remove `shapes` there.")
        bounds = workload(source)
        return workload_subject(Path(source).stem, bounds, (recipe.mapspace or bounds.mapspace,))
    return _whole(source, each.shapes, recipe, devices)


def _whole(source: str, shapes: Mapping[str, int], recipe: StudyRecipe, devices: Sequence[DeviceSpec]) -> Subject:
    """The whole graph of a model, looked at the capacities that the study asks for."""
    from tilec.analysis.bounds.whole import of_graph
    from tilec.bounds.graph.best_known import graph_curve
    from tilec.bounds.graph.contractions import contractions
    from tilec.bounds.levels import level_capacities

    graph = read_graph(source, shapes, Silent())
    kind = recipe.mapspace or "oro+"
    looked = [*recipe.capacities, *(level.capacity for device in devices for level in level_capacities(device))]
    curve = graph_curve(graph, lambda einsum: cached(einsum, kind), kind == "oro+", looked)
    width = max((operand.bits for found in contractions(graph) for operand in found.einsum.inputs), default=0)
    return of_graph(graph.name, len(graph.nodes), curve, width)
