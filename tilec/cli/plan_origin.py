"""The graph, device and options that a plan was made from, each checked against the plan's digests."""

import os
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from tilec.artifact import digest_object
from tilec.cli.options import device_of, known_device
from tilec.errors import ArtifactError, TilecError, UsageError
from tilec.pipeline import FILES, RECIPE_FILE, ReadPlan, StageInput, read_plan, read_source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tilec.ir.graph import Graph
    from tilec.ir.plan import Plan
    from tilec.spec.device import DeviceSpec
    from tilec.spec.recipe import CompileRecipe, ScheduleOptions


def plan_of(path: Path) -> "tuple[StageInput, Plan]":
    """The plan in a file, or in a folder of artifacts. Raises UsageError and ArtifactError like every verb."""
    from tilec.ir.codec import plan_from_json

    source = read_source("plan", path)
    return source, plan_from_json(source.body, source.place)


def graph_of(source: StageInput, plan: "Plan", given: Path | None) -> "Graph":
    """The graph that a plan was made from: the `given` one, or 1-graph.json beside it, with the plan's sizes bound and
    its ranges of the others.

    Raises UsageError where there is none, ArtifactError where it is another one.
    """
    from tilec.ir.bind import bind
    from tilec.ir.codec import graph_from_json, graph_to_json
    from tilec.ir.restrict import restricted

    path = given if given is not None else source.folder / FILES["graph"]
    if not path.exists():
        raise UsageError(f"there is no {path}, the graph that the plan was made from", None, "Name it: --graph FILE.")
    graph_source = read_source("graph", path)
    graph = graph_from_json(graph_source.body, graph_source.place)
    ranges = {symbol: entry for symbol, entry in plan.symbol_ranges.items() if symbol in graph.symbols}
    sized = bind(restricted(graph, ranges), _sizes(graph, plan))
    body = graph_source.body if sized is graph else graph_to_json(sized)
    wanted = source.artifact.inputs.get("graph") if source.artifact is not None else None
    if wanted is not None and digest_object(body) != wanted:
        hint = "Name the one that it was made from: --graph FILE." if given is None else None
        raise ArtifactError(f"the plan {source.place} was made from another graph", graph_source.place, hint)
    return sized


def _sizes(graph: "Graph", plan: "Plan") -> dict[str, int]:
    """Symbols of a graph that the plan has bound, derived from the shapes of the inputs."""
    from tilec.ir.expr import Var, constant_value

    sizes: dict[str, int] = {}
    for port in graph.inputs:
        before, after = graph.tensors.get(port.tensor), plan.tensors.get(port.tensor)
        if before is None or after is None or len(before.shape) != len(after.shape):
            continue
        for extent, now in zip(before.shape, after.shape, strict=True):
            size = constant_value(now)
            if isinstance(extent, Var) and extent.name not in plan.symbols and size is not None:
                sizes[extent.name] = size
    return sizes


def planned_device(source: StageInput, given: str | None) -> "DeviceSpec":
    """The device that a plan was made for: the `given` one, or device.yaml beside it, or the one of its name.

    Raises ArtifactError where it is another one or not available.
    """
    from tilec.spec.resolve import resolve_device

    device = resolve_device(given if given is not None else device_of(source))
    if source.artifact is not None:
        source.artifact.require_inputs({"device": device.digest()}, source.place)
    return device


def planned_options(source: StageInput, given: str | None) -> "ScheduleOptions":
    """The options that a plan was made with: those of the `given` recipe and of TILEC_ variables, of recipe.yaml beside
    the plan, else the fusion mode and the objective, whichever match the plan's digest.

    Raises UsageError where none match.
    """
    from tilec.spec.effective import recipe_without_device

    recipe = recipe_without_device(given, {}, os.environ)
    wanted = source.artifact.inputs.get("recipe") if source.artifact is not None else None
    if wanted is None or recipe.digest("schedule") == wanted:
        return recipe.schedule
    beside = _recipe_beside(source) if given is None else None
    others = [] if given is not None else _near(recipe)
    for other in [*([beside] if beside is not None else []), *others]:
        if other.digest("schedule") == wanted:
            return other.schedule
    message = "was not made with this recipe" if given is not None else "was made with a recipe that is not known"
    raise UsageError(f"the plan {message}", source.place, "Name the one that it was made with: --recipe NAME|FILE.")


def planned_recipe(source: StageInput, given: str | None) -> str | None:
    """The recipe that compiles parts of a planned model like the whole: the `given` one, or recipe.yaml beside the plan
    where the plan's digest is that of its options but not of the default ones; None for the default ones."""
    from tilec.spec.effective import recipe_without_device

    wanted = source.artifact.inputs.get("recipe") if source.artifact is not None else None
    if given is not None or recipe_without_device(None, {}, os.environ).digest("schedule") == wanted:
        return given
    beside = _recipe_beside(source)
    matches = beside is not None and beside.digest("schedule") == wanted
    return str(source.folder / RECIPE_FILE) if matches else None


def plan_as_it_stands(source: StageInput, given: "Sequence[DeviceSpec]" = ()) -> ReadPlan:
    """The plan of an artifact, the costs of an edited one counted anew for its device: one of the `given`, else its
    file beside the plan, else the one of its name, whichever has the digest in the plan."""
    if source.artifact is None or not source.artifact.edited:
        return read_plan(source)
    wanted = source.artifact.inputs.get("device")
    device = next((each for each in given if each.digest() == wanted), None) or known_device(source)
    return read_plan(source, device)


def plan_there(source: StageInput, plan: "Plan", sizes: "Mapping[str, int] | None") -> "Plan":
    """A plan at the sizes of --shape, where any are given; its device's file counts as in `known_device`.

    Raises UsageError for sizes that the plan does not have or allow.
    """
    from tilec.pipeline.plan_at_sizes import plan_at_sizes

    return plan_at_sizes(plan, sizes, known_device(source)) if sizes else plan


def _recipe_beside(source: StageInput) -> "CompileRecipe | None":
    """The recipe beside a plan; None where there is none, or another kind of file."""
    from tilec.spec.effective import recipe_without_device

    path = source.folder / RECIPE_FILE
    try:
        return recipe_without_device(str(path), {}, {}) if path.is_file() else None
    except TilecError:
        return None


def _near(recipe: "CompileRecipe") -> "list[CompileRecipe]":
    """The recipe with other fusion modes, other objectives, with and without bounds."""
    from tilec.spec.recipe import ScheduleOptions

    fields = ScheduleOptions.model_fields
    ways, objectives = (get_args(fields[name].annotation) for name in ("fusion", "objective"))
    return [
        recipe.model_copy(
            update={
                "schedule": recipe.schedule.model_copy(
                    update={"fusion": fusion, "objective": objective, "bounds": bounds}
                )
            }
        )
        for fusion, objective, bounds in product(ways, objectives, (True, False))
    ]
