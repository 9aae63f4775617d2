"""Local search over groups, node by node: what shares registers may share the core's level only, and parts next to
another group may move there (W16, W19; beyond Welder, which never takes a connection back).

`fuse_registers` and `split_parts` decide parts before there are groups, and `partition_groups` joins whole parts.  A
node may cost less as a part of its own when its group holds it together with others, and less in a group beside its
own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from math import inf
from typing import Any, ClassVar

from tilec.ir.expr import operands
from tilec.ir.plan import Refusal
from tilec.scheduler.fusion.group_costs import GroupCosts
from tilec.scheduler.fusion.partition import Partition, partition_refusals
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.graph_passes.fuse_registers import execution_order, in_order, with_one_final
from tilec.scheduler.search_cache import Part
from tilec.scheduler.state import GroupSet, SearchState, SearchStep
from tilec.scheduler.trace import Advance, Trace, no_advance

Group = tuple[Part, ...]
"""Parts in execution order."""

Names = tuple[tuple[str, ...], ...]

Places = tuple[tuple[int, ...], ...]
"""Parts by the numbers of their nodes among those of some groups."""


@dataclass(frozen=True)
class LocalSearch(SearchStep):
    """Nodes leave the registers of a part, and move to a group beside their own."""

    name: ClassVar[str] = "local_search"
    template: ClassVar[str] = (
        "parts of a group are split, and nodes moved between groups, where that is predicted to take less than "
        "{gain:g} of what it takes as it is; of places that are alike, {alike} are tried"
    )

    gain: float = 0.99
    """A change is made where it is predicted to cost less than this fraction: less is noise."""

    alike: int = 4
    """Changes that differ only in which of several places that are alike they cut, of which so many are tried.  Groups
    of 186 products of slices and sums have hundreds of these, and so have chains of hundreds of nodes."""

    near: int = 24
    """Parts of a group beyond which a cut is tried beside its neighbours first: a look at a group takes time in them.
    300 layers that differ are searched in half the time."""

    def applies(self, state: SearchState) -> bool:
        """Bytes that groups hold are no sum; groups of several problems are not compared."""
        options = state.options
        whole = len(state.sets) == 1 and state.problem.chain is None
        return super().applies(state) and options.fusion == "full" and options.objective != "footprint" and whole

    def run(self, state: SearchState, trace: Trace) -> SearchState:
        """Parts and groups that no change makes cheaper."""
        before = Partition(state.sets[0].groups, state.refused)
        advance = partial(trace.advance, self.name)
        problem, after = local_search(state.problem, before, state.refused, self, advance)
        return replace(state, problem=problem, sets=(GroupSet(problem, after.groups),), refused=after.refused)


def local_search(
    problem: FusionProblem,
    partition: Partition,
    refused: Mapping[str, Refusal],
    options: LocalSearch,
    advance: Advance = no_advance,
) -> tuple[FusionProblem, Partition]:
    """The parts and groups after every change that is predicted to gain; `refused` says why edges are not inside
    parts."""
    search = _Search(problem, options, advance)
    groups = [tuple(problem.parts[n] for n in members) for members in partition.groups]
    changed = search.improved(groups)
    if changed == groups:
        return problem, partition
    parts = [part for group in changed for part in group]
    ends = [sum(map(len, changed[: n + 1])) for n in range(len(changed))]
    members = tuple(tuple(range(end - len(group), end)) for end, group in zip(ends, changed, strict=True))
    new = replace(problem, parts=tuple(parts))
    reasons = partition_refusals(GroupCosts(new, options.gain), members, refused)
    return new, Partition(members, reasons)


@dataclass(frozen=True)
class _Search:
    """Changes of groups and their costs."""

    problem: FusionProblem
    options: LocalSearch
    advance: Advance = no_advance
    costs: dict[Names, float] = field(default_factory=dict)

    @property
    def cuts(self) -> dict[object, Places]:
        """Content of a group -> how its parts are cut."""
        return self._by_content[0]

    @property
    def moves(self) -> dict[object, tuple[tuple[Places, Places], ...]]:
        """Content of two groups -> the moves between them that gain."""
        return self._by_content[1]

    @cached_property
    def _by_content(self) -> tuple[dict[object, Any], dict[object, Any]]:
        """Changes that gain, for all problems of a search that have no tiles around them."""
        if self.problem.extents:
            return {}, {}
        return self.problem.cache.changes.setdefault(self.options, ({}, {}))

    @cached_property
    def readers(self) -> Mapping[str, frozenset[str]]:
        """Tensor -> nodes that read it."""
        readers: dict[str, set[str]] = {}
        for part in self.problem.parts:
            for node in part:
                for tensor in operands(node.expr):
                    readers.setdefault(tensor, set()).add(node.name)
        return {tensor: frozenset(names) for tensor, names in readers.items()}

    @cached_property
    def reads(self) -> Mapping[str, tuple[str, ...]]:
        """Node -> tensors that it reads."""
        return {node.name: operands(node.expr) for part in self.problem.parts for node in part}

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Node -> its place in the graph."""
        return {node.name: place for place, node in enumerate(self.problem.graph.nodes)}

    def improved(self, groups: Sequence[Group]) -> list[Group]:
        """Groups that no change makes cheaper, in execution order."""
        current: list[Group] = []
        for group in groups:
            current.append(self.recut(group))
            self.advance(len(current), len(groups))
        again = True
        while again:
            again = False
            for producer, reader in self._neighbours(current):
                if not current[producer] or not current[reader]:
                    continue
                pair = self._moved(current, producer, reader)
                if pair is not None:
                    current[producer], current[reader] = (self.recut(group) if group else group for group in pair)
                    again = True
        return self._ordered([group for group in current if group])

    def recut(self, group: Group) -> Group:
        """The group with parts cut into parts of its own where that gains; groups that are alike alike."""
        key = self._key(group)
        if key not in self.cuts:
            self.cuts[key] = _places(self._cheapest(group), group)
        return _at(self.cuts[key], group)

    def _cheapest(self, group: Group) -> Group:
        cost, improved = self.cost(group), True
        while improved:
            improved = False
            tried: Counter[object] = Counter()
            for kind, place, at, trial in self._finer(group):
                if tried[kind] == self.options.alike:
                    continue
                tried[kind] += 1
                if not self._is_promising(group, place, at):
                    continue
                price = self.cost(trial, cost * self.options.gain)
                if price < cost * self.options.gain:
                    group, cost, improved = trial, price, True
                    break
        return group

    def _is_promising(self, group: Group, place: int, at: int) -> bool:
        """Whether a cut of a part can gain: in a group of many parts it is tried with those that are next to the part
        first, where these are a group."""
        if len(group) <= self.options.near:
            return True
        part = group[place]
        made, read = {node.name for node in part}, {t for node in part for t in self.reads[node.name]}
        near = [
            each
            for each in group
            if each is part
            or any(node.name in read for node in each)
            or any(t in made for node in each for t in self.reads[node.name])
        ]
        for whole in self._groups_of(near):
            before = self.cost(whole)
            cut = [each for other in near for each in ((part[:at], part[at:]) if other is part else (other,))]
            return before == inf or any(self.cost(finer, before) < before for finer in self._groups_of(cut))
        return True

    def _finer(self, group: Group) -> Iterator[tuple[object, int, int, Group]]:
        """Every way to cut one part of a group in two: what those that are alike have in common, the part, the place in
        it, and the group then."""
        places = self._kinds(group)
        for place, part in enumerate(group):
            for at in range(1, len(part)):
                for finer in self._groups_of((*group[:place], part[:at], part[at:], *group[place + 1 :])):
                    yield places[place][at], place, at, finer

    def _kinds(self, group: Group) -> list[list[tuple[int, ...]]]:
        """For each part what the places before its nodes, and behind the last, have in common with those that are
        alike: the part, and the nodes beside them, up to constant places."""
        found = []
        for part, number in zip(group, self._numbers(group), strict=True):
            nodes = self._numbers([(node,) for node in part])
            found.append([(number, *nodes[max(at - 1, 0) : at + 1], at == 0) for at in range(len(part) + 1)])
        return found

    def _numbers(self, parts: Sequence[Part]) -> list[int]:
        """Numbers of parts, equal for those that are alike but for constant places."""
        return [each.number for each in replace(self.problem, parts=tuple(parts)).descriptions]

    def cost(self, group: Group, limit: float = inf) -> float:
        """What a group is predicted to cost, without bound where it may not be or cannot stay below a limit."""
        if not group:
            return 0.0
        key = _names(group)
        if key not in self.costs:
            price = self._costs_of(group).cost(tuple(range(len(group))), limit)
            if isinstance(price, Refusal):
                return inf
            self.costs[key] = price
        return self.costs[key]

    def lower_bound(self, group: Group) -> float:
        """What a group costs at least, without bound where it may not be."""
        if not group:
            return 0.0
        known = self.costs.get(_names(group))
        bound = self._costs_of(group).lower_bound(tuple(range(len(group)))) if known is None else known
        return inf if isinstance(bound, Refusal) else bound

    def _costs_of(self, group: Group) -> GroupCosts:
        alone = replace(self.problem, parts=group, outputs=frozenset(self._leaving(group)))
        return GroupCosts(alone, self.options.gain)

    def _leaving(self, group: Group) -> tuple[str, ...]:
        """Tensors that others or the model's outputs need."""
        names = {node.name: None for part in group for node in part}
        return tuple(t for t in names if t in self.problem.outputs or self.readers.get(t, frozenset()) - names.keys())

    def _key(self, *groups: Group) -> object:
        """What decisions about some groups depend on, up to the names of tensors."""
        leaving = tuple(t for group in groups for t in self._leaving(group))
        joined = replace(
            self.problem, parts=tuple(part for group in groups for part in group), outputs=frozenset(leaving)
        )
        return tuple(map(len, groups)), joined.key(range(len(joined.parts)), leaving)

    def _moved(self, groups: Sequence[Group], producer: int, reader: int) -> tuple[Group, Group] | None:
        """Two groups with a part, or some nodes of one, moved to the other, if that gains; what gains most."""
        pair = groups[producer], groups[reader]
        key = self._key(*pair)
        if key not in self.moves:
            self.moves[key] = tuple((_places(a, *pair), _places(b, *pair)) for a, b in self._gaining(*pair))
        others = [group for n, group in enumerate(groups) if n not in (producer, reader)]
        for first, second in self.moves[key]:
            trial = _at(first, *pair), _at(second, *pair)
            if self._can_run([*others, *trial]):
                return trial
        return None

    def _gaining(self, producer: Group, reader: Group) -> list[tuple[Group, Group]]:
        """What moves make of two groups where they gain, the cheapest first."""
        before = (self.cost(producer) + self.cost(reader)) * self.options.gain
        gaining: list[tuple[float, tuple[Group, Group]]] = []
        tried: Counter[object] = Counter()
        for kind, (first, second) in self._changed(producer, reader):
            if tried[kind] == self.options.alike:
                continue
            tried[kind] += 1
            rest = before - self.lower_bound(first)
            price = self.cost(second, rest) if rest > 0 else inf
            price += self.cost(first, before - price) if price < before else inf
            if price < before:
                gaining.append((price, (first, second)))
        return [trial for _, trial in sorted(gaining, key=lambda each: each[0])]

    def _changed(self, producer: Group, reader: Group) -> Iterator[tuple[object, tuple[Group, Group]]]:
        """The last nodes of a part of the producer that the reader reads moved there, and the first ones of a part of
        the reader that reads it moved to the producer, each with what those of parts that are alike have in common."""
        kinds = self._kinds(producer), self._kinds(reader)
        results = {node.name for part in producer for node in part}
        needed = {t for part in reader for node in part for t in operands(node.expr)}
        for place, part in enumerate(producer):
            if part[-1].name in needed:
                for at in range(len(part) - 1, -1, -1):
                    rest = (*producer[:place], part[:at], *producer[place + 1 :])
                    for pair in product(self._groups_of(rest), self._groups_of((part[at:], *reader))):
                        yield ("forward", kinds[0][place][at]), pair
        for place, part in enumerate(reader):
            if results & set(operands(part[0].expr)):
                for at in range(1, len(part) + 1):
                    rest = (*reader[:place], part[at:], *reader[place + 1 :])
                    for pair in product(self._groups_of((*producer, part[:at])), self._groups_of(rest)):
                        yield ("back", kinds[1][place][at]), pair

    def _groups_of(self, parts: Iterable[Part]) -> list[Group]:
        """The group of some parts, in execution order, each with one final node; nothing where they wait for each
        other."""
        whole = with_one_final([part for part in parts if part], self.reads)[0]
        try:
            return [in_order(whole, self.places, self.reads)]
        except ValueError:
            return []

    def _neighbours(self, groups: Sequence[Group]) -> list[tuple[int, int]]:
        """Groups and groups that read them."""
        home = {node.name: n for n, group in enumerate(groups) for part in group for node in part}
        return sorted({(home[t], home[r]) for t in home for r in self.readers.get(t, ()) if home[t] != home[r]})

    def _needs(self, groups: Sequence[Group]) -> list[set[int]]:
        needs: list[set[int]] = [set() for _ in groups]
        for producer, reader in self._neighbours(groups):
            needs[reader].add(producer)
        return needs

    def _can_run(self, groups: Sequence[Group]) -> bool:
        try:
            execution_order(self._needs(groups), [0] * len(groups))
        except ValueError:
            return False
        return True

    def _ordered(self, groups: Sequence[Group]) -> list[Group]:
        ranks = [self.places[group[-1][-1].name] for group in groups]
        return [groups[n] for n in execution_order(self._needs(groups), ranks)]


def _names(group: Group) -> Names:
    return tuple(tuple(node.name for node in part) for part in group)


def _places(new: Group, *groups: Group) -> Places:
    """Where the nodes of a group stand in some groups."""
    numbers = {name: n for n, name in enumerate(node.name for group in groups for part in group for node in part)}
    return tuple(tuple(numbers[node.name] for node in part) for part in new)


def _at(places: Places, *groups: Group) -> Group:
    """The group whose nodes stand at some places of groups."""
    nodes = [node for group in groups for part in group for node in part]
    return tuple(tuple(nodes[n] for n in part) for part in places)
