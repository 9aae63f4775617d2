"""A sweep: every combination of models, sizes, devices and ways to fuse is planned; nothing runs (W49, W51)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

from tilec.analysis.energy import plan_energy
from tilec.analysis.ratios import plan_ratio
from tilec.analysis.statistics import statistics
from tilec.errors import ConfigError, TilecError, UsageError, did_you_mean
from tilec.pipeline.job import Job, StageInput
from tilec.pipeline.steps.import_model import import_graph
from tilec.pipeline.workers import Workers, in_turn
from tilec.progress import Advance, unseen
from tilec.report.sweep import Row

if TYPE_CHECKING:
    from tilec.ir.graph import Graph
    from tilec.spec.device import DeviceSpec
    from tilec.spec.located import KeyPath, Located
    from tilec.spec.sweep import SweepRecipe


@dataclass(frozen=True)
class _Model:
    """A model of the sweep: of the zoo, or a file; `names` are the sizes that it takes, `sizes` its combinations."""

    name: str
    path: Path | None
    sizes: tuple[Mapping[str, int], ...]


class Silent:
    """Hears of stages and says nothing."""

    def stage(self, _name: str) -> nullcontext[Advance]:
        """Nobody looks at the progress of one import."""
        return nullcontext(unseen)

    def skipped(self, _stage: str) -> None:
        """Nothing is skipped."""

    def step(self, text: str) -> None:
        """Part of a stage is done."""

    def note(self, text: str) -> None:
        """Something is said."""


@dataclass(frozen=True)
class _Task:
    """A row to plan."""

    head: Row
    model: _Model
    device: DeviceSpec
    recipe: SweepRecipe


def sweep(
    recipe: SweepRecipe,
    located: Located,
    advance: Advance,
    folders: Mapping[str, Path],
    workers: Workers = in_turn,
) -> list[Row]:
    """One row for each model, its sizes, each device and way to fuse, in this order.

    `located` tells the places of what `recipe` holds, `folders` from where its `models` and `devices` are named. A
    combination that cannot be planned is a row with an error; `workers` plan the combinations, each by itself. Raises
    ConfigError with its place for a model, device or size that there is not.
    """
    places = [located.place(("devices", n)) for n in range(len(recipe.devices))]
    devices = [_device(*each, folders["devices"]) for each in zip(recipe.devices, places, strict=True)]
    models = _models(recipe, located, folders["models"])
    tasks = [
        _Task(Row(model.name, device.name, fusion, sizes), model, device, recipe)
        for model in models
        for sizes in model.sizes
        for device, fusion in product(devices, recipe.fusion)
    ]
    advance(0, len(tasks))
    return workers(_row, tasks, advance)


def _row(task: _Task) -> Row:
    """One row; the last graph is kept for the next one of the same model and sizes."""
    graph = _kept_graph(task.model.name, task.model.path, tuple(task.head.sizes.items()), task.recipe.fallback)
    return _planned(task.head, graph, task.device, task.recipe)


@lru_cache(1)
def _kept_graph(
    name: str, path: Path | None, sizes: tuple[tuple[str, int], ...], fallback: Literal["allow", "refuse"]
) -> Graph | TilecError:
    return _graph(_Model(name, path, ()), dict(sizes), fallback)


def _device(name: str, place: str | None, folder: Path) -> DeviceSpec:
    from tilec.spec.resolve import resolve_device

    with _placed(place):
        return resolve_device(name, relative_to=folder)


@contextmanager
def _placed(place: str | None) -> Iterator[None]:
    """Errors about missing models and devices get the place in the file that names them."""
    try:
        yield
    except UsageError as error:
        raise ConfigError(error.message, place or error.place, error.hint) from error


def _models(recipe: SweepRecipe, located: Located, folder: Path) -> list[_Model]:
    """The models with the sizes that they are planned for. Raises ConfigError for a size that none of them takes."""
    from tilec import zoo

    models: list[_Model] = []
    taken: set[str] = set()
    for n, each in enumerate(recipe.models):
        at: KeyPath = ("models", n)
        path = None if each.model in zoo.names() else (folder / each.model).absolute()
        with _placed(located.place((*at, "model"))):
            names = zoo.sizes(each.model) if path is None else _symbols(path, each.model)
        for symbol in each.shapes.keys() - names:
            raise _no_size(symbol, names, located.place((*at, "shapes", symbol), key=True))
        taken |= set(names)
        shapes = {symbol: sizes for symbol, sizes in {**recipe.shapes, **each.shapes}.items() if symbol in names}
        combined = product(*(dict.fromkeys(sizes) for sizes in shapes.values()))
        models.append(_Model(each.model, path, tuple(dict(zip(shapes, sizes, strict=True)) for sizes in combined)))
    for symbol in recipe.shapes.keys() - taken:
        raise _no_size(symbol, sorted(taken), located.place(("shapes", symbol), key=True))
    return models


def _no_size(symbol: str, known: Iterable[str], place: str | None) -> ConfigError:
    known = list(known)
    near = did_you_mean(symbol, known)
    hint = f"Did you mean {near!r}?" if near else f"Sizes are {', '.join(known)}." if known else "Sizes are all fixed."
    return ConfigError(f"no model takes a size {symbol!r}", place, hint)


def _symbols(path: Path, name: str) -> tuple[str, ...]:
    """The sizes that an ONNX file leaves open. Raises UsageError when there is no such file or model."""
    from tilec import zoo
    from tilec.importer.loader import load_structure
    from tilec.importer.ports import input_ports, readable

    if not path.is_file():
        near = did_you_mean(name, zoo.names())
        hint = f"Did you mean {near!r} of the zoo?" if near else "Name a model of the zoo or an ONNX file."
        raise UsageError(f"there is no model {name!r}", str(path), hint)
    structure = load_structure(path)
    held = {tensor.name for tensor, _ in structure.tensors}
    infos = [info for info in structure.proto.graph.input if info.name not in held and readable(info)]
    return input_ports(infos, {}, path.name)[1]


def _graph(model: _Model, sizes: Mapping[str, int], fallback: Literal["allow", "refuse"]) -> Graph | TilecError:
    """The imported model for some sizes, or why there is none."""
    from tilec import zoo

    try:
        if model.path is not None:
            return _imported(model.path, sizes, fallback)
        with TemporaryDirectory() as folder:
            file = Path(folder) / f"{model.name}.onnx"
            zoo.export(model.name, file, batch=sizes.get("batch", 1), seq=sizes.get("seq"))
            return _imported(file, {}, fallback)
    except TilecError as error:
        return error


def _imported(path: Path, sizes: Mapping[str, int], fallback: Literal["allow", "refuse"]) -> Graph:
    from tilec.ir.codec import graph_from_json
    from tilec.spec.recipe import CompileRecipe

    job = Job(CompileRecipe(fallback=fallback), Silent(), shapes=sizes)
    made = import_graph(job, StageInput(path), path, unseen)
    return graph_from_json(made.body, path.name)


def _planned(head: Row, graph: Graph | TilecError, device: DeviceSpec, recipe: SweepRecipe) -> Row:
    from tilec.bounds.plan.bound_violations import mapping_of
    from tilec.pipeline.plan_bounds import plan_with_bounds
    from tilec.scheduler import schedule
    from tilec.spec.recipe import ScheduleOptions

    if isinstance(graph, TilecError):
        return replace(head, error=graph.message)
    options = ScheduleOptions.model_validate({"fusion": head.fusion, "objective": recipe.objective})
    try:
        plan = schedule(graph, device, options)
        ratio = plan_ratio(plan_with_bounds(plan, device)) if recipe.bounds else None
        tiles = "; ".join(dict.fromkeys(map(mapping_of, plan.groups))) if recipe.tiles else ""
        return replace(head, found=statistics(plan), energy=plan_energy(plan, device), ratio=ratio, tiles=tiles)
    except TilecError as error:
        return replace(head, error=error.message)
