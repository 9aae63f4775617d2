"""Groups whose tiles are wanted, without a search around them."""

from collections.abc import Sequence

from tilec.ir.graph import Graph, Node
from tilec.ir.intervals import Candidates
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.core_storage import CoreStorage, Objective
from tilec.scheduler.tiling.group_facts import GroupFacts
from tilec.scheduler.tiling.register_tiles import RegisterTile
from tilec.scheduler.tiling.tiling_problem import TilingProblem


def tiling_problem(
    parts: Sequence[Sequence[Node]],
    tiles: Sequence[RegisterTile],
    graph: Graph,
    target: TargetModel,
    numbers: Candidates,
    outputs: tuple[str, ...] = (),
    objective: Objective = "time",
    halos: frozenset[str] = frozenset(),
    constants: frozenset[str] = frozenset(),
    **at: object,
) -> TilingProblem:
    """A group of some parts; `at` are its extents and further sizes."""
    group = GroupFacts(parts, graph, outputs, halos=halos, constants=constants)
    return TilingProblem(CoreStorage(group, tiles, target, objective), numbers, **at)  # type: ignore[arg-type]
