"""The state of a search for groups, and the steps that lead from one state to the next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Literal

from tilec.ir.plan import Refusal
from tilec.scheduler.building.group_builder import GroupBuilder, TiledGroup
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.search_cache import Part
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.task_tiles import TaskTile
from tilec.scheduler.trace import ListedStep, Trace
from tilec.scheduler.tuning.tuner import Tuner
from tilec.spec.recipe import ScheduleOptions

Members = tuple[int, ...]
"""A group: the numbers of its parts, ascending."""

Stage = Literal["outline", "legal", "built"]
"""For which whole plans a step runs: for all that are compared; for those that can still be the cheapest by their lower
bound; for those that are made."""


@dataclass(frozen=True, slots=True)
class GroupSet:
    """Groups, in execution order, of the parts of one problem."""

    problem: FusionProblem
    groups: tuple[Members, ...]


@dataclass(frozen=True, slots=True)
class LegalGroup:
    """A group of parts of a problem, and the tiles whose programs are legal and fit, best first; the first is taken."""

    problem: FusionProblem
    members: Members
    tiles: tuple[TaskTile, ...]

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of its nodes in topological order."""
        return tuple(node.name for number in self.members for node in self.problem.parts[number])


@dataclass(frozen=True, slots=True)
class LevelGroup:
    """Parts that a level below a core's holds together, by number in topological order, and the tile of their last
    node.

    `sizes` and `order` (outermost first) are its tile loops, both empty for whole tensors; `extents` says for every
    node how far each iterator runs in one tile.  `moved` counts bytes over the link from the level below, `held` the
    most bytes that the level holds, `seconds` is the prediction.
    """

    members: Members
    sizes: Mapping[str, int]
    order: tuple[str, ...]
    extents: Mapping[str, Mapping[str, int]]
    moved: int
    held: int
    seconds: float


@dataclass(frozen=True, slots=True)
class LevelDecision:
    """Groups of some parts at an explicit level below a core's.

    level    index of the level in the target
    parts    the parts, numbered by place
    extents  node -> iterator -> its extent in the tile of the level below (absent: all of it)
    share    fraction of the capacity that could be used
    groups   the groups in execution order
    """

    level: int
    parts: tuple[Part, ...]
    extents: Mapping[str, Mapping[str, int]]
    share: float
    groups: tuple[LevelGroup, ...]


@dataclass(frozen=True, eq=False)
class SearchState:
    """Groups of one segment of a graph for one way to fuse, as far as they are decided.

    problem  the segment's graph, the target, the objective; its parts as far as they are decided
    options  the recipe's options, `fusion` the one of this candidate
    steps    the steps of the search that run
    builder  makes blocks of groups; it alone grows, by the tensors and nodes of packed weights
    label    name of the whole plan that this belongs to, for traces: `fusion full`
    tuner    chooses among legal tiles; None: the first is taken
    level    explicit level in whose tile the parts lie; empty: in none
    fused    parts that share registers before any was split
    sets     groups; there are several sets where reductions that share a loop have parts of their own
    refused  edge -> why it is not connected
    legal    groups in execution order with tiles that are legal and fit; None: not looked at yet
    levels   decisions at explicit levels below a core's, in the order in which they were taken; a group that exceeded
             a level after all is decided again
    cores    the searches at a core's level inside of these
    groups   groups as blocks with tiles, in execution order; None: not built yet
    """

    problem: FusionProblem
    options: ScheduleOptions
    steps: tuple[SearchStep, ...]
    builder: GroupBuilder
    label: str = ""
    tuner: Tuner | None = None
    level: str = ""
    fused: tuple[Part, ...] = ()
    sets: tuple[GroupSet, ...] = ()
    refused: Mapping[str, Refusal] = field(default_factory=dict)
    legal: tuple[LegalGroup, ...] | None = None
    levels: tuple[LevelDecision, ...] = ()
    cores: tuple[SearchState, ...] = ()
    groups: tuple[TiledGroup, ...] | None = None

    def with_parts(self, parts: Sequence[Part], refused: Mapping[str, Refusal]) -> SearchState:
        """The state with other parts, each a group of its own."""
        problem = replace(self.problem, parts=tuple(parts))
        single = GroupSet(problem, tuple((number,) for number in range(len(parts))))
        return replace(self, problem=problem, sets=(single,), refused=refused)

    @cached_property
    def seconds(self) -> tuple[float, ...]:
        """Predicted time of every group: before tiles are known to be legal and to fit, no more than it takes."""
        if self.groups is not None:
            return tuple(group.seconds for group in self.groups)
        if self.legal is not None:
            return tuple(group.tiles[0].seconds for group in self.legal)
        return tuple(of.problem.core_tiles(members)[0].seconds for of in self.sets for members in of.groups)


class SearchStep(ListedStep, ABC):
    """A step of the search for groups; `stage` says for which of the whole plans that are compared it runs."""

    stage: ClassVar[Stage] = "outline"

    def applies(self, state: SearchState) -> bool:
        """Whether the step has something to decide: most work at a core's level, which is the lowest of `state`."""
        return state.problem.target.core <= 1

    def level(self, target: TargetModel) -> str:
        """The level at which the step connects edges, or finds that they cannot be."""
        return target.core_level

    @abstractmethod
    def run(self, state: SearchState, trace: Trace) -> SearchState:
        """The state after the step; `trace` is for steps that search inside of what they decide."""


def run_steps(steps: Iterable[SearchStep], state: SearchState, trace: Trace) -> SearchState:
    """The state after steps, those that apply to it."""
    for step in steps:
        if step.applies(state):
            after = step.run(state, trace)
            trace.record(step, state, after)
            state = after
    return state
