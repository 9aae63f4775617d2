"""Everything that the search remembers by content: parts and decisions that are alike up to the names of tensors, the
values of literals, and the constant places at which they read.

What was decided for the first layer of a network holds for all layers that are like it (W41).  An entry depends on its
key alone, never on what was asked before it, so that plans are the same bytes in whatever order groups are tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilec.ir.expr import Expr
from tilec.ir.graph import Node
from tilec.ir.plan import Refusal
from tilec.scheduler.analysis.constant_places import Dimension
from tilec.scheduler.analysis.vector_iterator import Vector
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.register_tiles import RegisterTile
from tilec.scheduler.tiling.task_tiles import FirstLook, TaskTile

if TYPE_CHECKING:
    from tilec.scheduler.kept_search import KeptSearch

Part = tuple[Node, ...]
"""Nodes that share registers, in topological order."""

Prices = dict[object, float | Refusal]
"""Content of a group -> what it costs, or why it is none."""

Content = tuple[object, tuple[str, ...]]
"""What a part computes up to the names of tensors and constant places, and these names in order of appearance."""


@dataclass(frozen=True, slots=True)
class PartDescription:
    """Properties of a part that no grouping changes.

    number    number of its content; parts that are alike have the same
    vector    how its first node is vectorised
    halos     tensors that its reductions read outside of, where guards have to stay
    elements  tensor -> elements that the part reads of it, at least
    places    dimension that is read at constant places alone -> the first of them, from which `content` counts
    """

    part: Part
    content: Content
    number: int
    vector: Vector
    halos: frozenset[str]
    elements: Mapping[str, int]
    places: Mapping[Dimension, int]

    def twin(self, part: Part, content: Content, places: Mapping[Dimension, int]) -> PartDescription:
        """The description of a part that is the same but for the names of tensors, and constant places."""
        names = dict(zip(self.content[1], content[1], strict=True))
        return PartDescription(
            part,
            content,
            self.number,
            self.vector.renamed(names),
            frozenset(names[tensor] for tensor in self.halos),
            {names[tensor]: count for tensor, count in self.elements.items()},
            places,
        )


@dataclass(frozen=True)
class SearchCache:
    """What is remembered for one target, by content.

    numbering    content of a part -> its number; one table for all targets of a search
    described    identities of a part's nodes -> its description
    alike        number of a content -> description of the first part that has it
    registers    (part, extents in a core's tile) -> register tiles, the largest first
    tiles        group -> how many task tiles were asked for, and these, best first
    looks        group -> what a first look finds
    legal        (group, how many, candidates) -> share of a core's level that tiles are chosen for, places of those
                 whose programs are legal and fit
    illegal      (group, candidates) -> why it has no such tile
    excess       kernel name -> times over the capacity of levels below a core's, and of those from it upward
    sizes        sizes of symbols -> the cache for these
    classes      group with a tile -> its variants for classes of sizes: sizes of the class, tile, guard, whether last
                 tiles are narrower
    targets      the device from the level below a core's upward -> the cache for that target
    prices       fraction of its parts that a group has to cost less than -> costs of groups, and their lower bounds
    changes      rules of a local search -> cuts of groups, and moves between two, that gain
    kept         looks and tiles of searches before, for this target and these sizes; None for none
    """

    numbering: dict[object, int] = field(default_factory=dict)
    described: dict[tuple[int, ...], PartDescription] = field(default_factory=dict)
    alike: dict[int, PartDescription] = field(default_factory=dict)
    registers: dict[object, tuple[RegisterTile, ...]] = field(default_factory=dict)
    tiles: dict[object, tuple[int, tuple[TaskTile, ...]]] = field(default_factory=dict)
    looks: dict[object, FirstLook] = field(default_factory=dict)
    legal: dict[object, tuple[float, tuple[int, ...]]] = field(default_factory=dict)
    illegal: dict[object, Refusal] = field(default_factory=dict)
    excess: dict[str, tuple[float, float]] = field(default_factory=dict)
    sizes: dict[object, SearchCache] = field(default_factory=dict)
    classes: dict[object, tuple[tuple[Mapping[str, int], TaskTile, Expr, bool], ...]] = field(default_factory=dict)
    targets: dict[TargetModel, SearchCache] = field(default_factory=dict)
    prices: dict[float, tuple[Prices, Prices]] = field(default_factory=dict)
    changes: dict[object, tuple[dict[object, Any], dict[object, Any]]] = field(default_factory=dict)
    kept: KeptSearch | None = None

    def of_target(self, target: TargetModel) -> SearchCache:
        """The cache for the upper levels of the device, `target`."""
        if target not in self.targets:
            self.targets[target] = SearchCache(numbering=self.numbering)
        return self.targets[target]

    def of_sizes(self, sizes: Mapping[str, int]) -> SearchCache:
        """The cache for other sizes of symbols."""
        return self.sizes.setdefault(tuple(sorted(sizes.items())), SearchCache(numbering=self.numbering))

    def without_decisions(self) -> SearchCache:
        """Descriptions of parts alone: for the same graph on a device that differs."""
        return SearchCache(self.numbering, self.described, self.alike)
