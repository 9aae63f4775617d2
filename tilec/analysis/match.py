"""Matching of the nodes and groups of two plans by content instead of by name."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from tilec.ir.canonical import content
from tilec.ir.expr import TensorExpr, operands
from tilec.ir.graph import Node
from tilec.ir.plan import Group, Plan


@dataclass(frozen=True, slots=True)
class Matching:
    """Map from nodes of the old plan to nodes of the new one; `names` maps tensors, operands included."""

    nodes: Mapping[str, str]
    names: Mapping[str, str]

    def edge(self, edge: str) -> str:
        """An edge of the old plan in the names of the new one."""
        return "->".join(self.names.get(name, name) for name in edge.split("->"))


PLAIN = Matching({}, {})
"""The matching of a plan with itself: all names are equal."""


@dataclass(frozen=True, slots=True)
class Family:
    """Groups of both plans that share nodes: one to one is a group that stayed, one to several a split."""

    old: tuple[Group, ...]
    new: tuple[Group, ...]


def match_nodes(old: Plan, new: Plan) -> Matching:
    """Pair the nodes of two plans, each at most once; takes time in proportion to the nodes.

    Plans that are equal but for names are paired by the computations that lead to and follow from every node. In other
    plans, nodes of equal name and content are paired first, then by origin, by content with everything that leads to
    the node, by content with everything that follows, by content alone, by name and operator, by origin and operator.
    Among equals the order decides.
    """
    before = {node.name: node for group in old.groups for node in group.nodes}
    after = {node.name: node for group in new.groups for node in group.nodes}
    computed = cache(content)
    pairs = _equal_but_for_names(old, new, before, after, computed)
    if not pairs:
        pairs = {n: n for n in before if n in after and _same(before[n].expr, after[n].expr, computed)}
        _add(pairs, before, after, lambda node: (node.name, node.op, node.origin) if node.origin else None)
    if len(pairs) < min(len(before), len(after)):
        for contexts in (_ways_in, _ways_out):
            numbering: dict[Hashable, int] = {}
            _add_sides(
                pairs, before, after, contexts(before, computed, numbering), contexts(after, computed, numbering)
            )
        _add(pairs, before, after, lambda node: computed(node.expr))
        _add(pairs, before, after, lambda node: (node.name, node.op))
        _add(pairs, before, after, lambda node: (node.op, node.origin) if node.origin else None)
    return Matching(pairs, _names(pairs, before, after))


def _equal_but_for_names(
    old: Plan, new: Plan, before: Mapping[str, Node], after: Mapping[str, Node], computed: Content
) -> dict[str, str]:
    """The pairs of two plans that are isomorphic: equal computations on the same inputs and constants, read alike.
    Among equal nodes those of equal names come first. Empty for other plans."""
    if len(before) != len(after):
        return {}
    numbers: dict[Hashable, int] = {}
    keys_by_side: list[dict[str, tuple[int, int]]] = []
    for plan, nodes in ((old, before), (new, after)):
        whole = {**{node.name: node for node in plan.prepared}, **nodes}
        given: dict[str, Hashable] = {**plan.constants, **{port.tensor: port.name for port in plan.inputs}}
        led = _ways_in(whole, computed, numbers, given)
        leads = _ways_out(nodes, computed, numbers)
        keys_by_side.append({name: (led[name], leads[name]) for name in nodes})
    if sorted(keys_by_side[0].values()) != sorted(keys_by_side[1].values()):
        return {}
    pairs: dict[str, str] = {}
    _add_sides(pairs, before, after, *({name: (key, name) for name, key in side.items()} for side in keys_by_side))
    _add_sides(pairs, before, after, *keys_by_side)
    return pairs


def families(old: Plan, new: Plan, matching: Matching) -> tuple[Family, ...]:
    """Groups joined by shared nodes, in the order of the new plan; groups that are gone come last."""
    home = {node.name: n for n, group in enumerate(new.groups) for node in group.nodes}
    parent: dict[tuple[str, int], tuple[str, int]] = {}

    def root(item: tuple[str, int]) -> tuple[str, int]:
        while parent.setdefault(item, item) != item:
            item = parent[item]
        return item

    for n, group in enumerate(old.groups):
        for node in group.nodes:
            if node.name in matching.nodes:
                parent[root(("old", n))] = root(("new", home[matching.nodes[node.name]]))
    members: dict[tuple[str, int], Family] = {}
    sides = [("new", n, group) for n, group in enumerate(new.groups)]
    sides += [("old", n, group) for n, group in enumerate(old.groups)]
    for side, n, group in sides:
        family = members.get(root((side, n)), Family((), ()))
        grown = Family((*family.old, group), family.new) if side == "old" else Family(family.old, (*family.new, group))
        members[root((side, n))] = grown
    return tuple(members.values())


Content = Callable[[TensorExpr], tuple[str, ...]]


def _same(a: TensorExpr, b: TensorExpr, computed: Content) -> bool:
    return a == b or computed(a) == computed(b)


def _ways_in(
    nodes: Mapping[str, Node],
    computed: Content,
    numbering: dict[Hashable, int],
    given: Mapping[str, Hashable] = MappingProxyType({}),
) -> dict[str, int]:
    """Map from node to a number for its content and, recursively, that of its operands (or of values `given`); equal
    computations have equal numbers."""
    numbers: dict[str, int] = {}
    for name, node in nodes.items():
        key = (computed(node.expr), *(numbers.get(t, given.get(t, -1)) for t in operands(node.expr)))
        numbers[name] = numbering.setdefault(key, len(numbering))
    return numbers


def _ways_out(nodes: Mapping[str, Node], computed: Content, numbering: dict[Hashable, int]) -> dict[str, int]:
    """Map from node to a number for its content and, recursively, that of its readers."""
    readers: dict[str, list[tuple[int, int]]] = {name: [] for name in nodes}
    numbers: dict[str, int] = {}
    for name, node in reversed(list(nodes.items())):
        key = (computed(node.expr), *sorted(readers[name]))
        numbers[name] = numbering.setdefault(key, len(numbering))
        for place, tensor in enumerate(operands(node.expr)):
            if tensor in readers:
                readers[tensor].append((numbers[name], place))
    return numbers


def _left(pairs: Mapping[str, str], nodes: Mapping[str, Node]) -> list[Node]:
    return [node for node in nodes.values() if node.name not in pairs]


def _add(
    pairs: dict[str, str],
    before: Mapping[str, Node],
    after: Mapping[str, Node],
    key: Callable[[Node], Hashable | None],
) -> None:
    """Pair the remaining nodes by `key`; None matches nothing."""
    keys = [{node.name: key(node) for node in side.values()} for side in (before, after)]
    _add_sides(pairs, before, after, *keys)


def _add_sides(
    pairs: dict[str, str],
    before: Mapping[str, Node],
    after: Mapping[str, Node],
    old: Mapping[str, Hashable | None],
    new: Mapping[str, Hashable | None],
) -> None:
    """Pair the remaining nodes by keys, in order where several are equal."""
    taken = set(pairs.values())
    waiting: dict[Hashable, deque[str]] = {}
    for name in after:
        if name not in taken and new[name] is not None:
            waiting.setdefault(new[name], deque()).append(name)
    for node in _left(pairs, before):
        if waiting.get(old[node.name]):
            pairs[node.name] = waiting[old[node.name]].popleft()


def _names(pairs: Mapping[str, str], before: Mapping[str, Node], after: Mapping[str, Node]) -> dict[str, str]:
    """Map from tensor to its name in the new plan: nodes as paired, other operands by their position in the
    expressions."""
    names = dict(pairs)
    taken = set(pairs.values())
    for one, other in pairs.items():
        for a, b in _zip_equal(operands(before[one].expr), operands(after[other].expr)):
            if a not in before and b not in after and b not in taken and a not in names:
                names[a] = b
                taken.add(b)
    return names


def _zip_equal(a: Sequence[str], b: Sequence[str]) -> Iterable[tuple[str, str]]:
    return zip(a, b, strict=True) if len(a) == len(b) else ()
