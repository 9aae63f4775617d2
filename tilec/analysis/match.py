"""Which node and which group of one plan are which of another: by what they compute, not by what they are called."""

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
    """Nodes of the old plan and the new nodes that they became; `names` maps tensors, operands included."""

    nodes: Mapping[str, str]
    names: Mapping[str, str]

    def edge(self, edge: str) -> str:
        """An edge of the old plan in the names of the new one."""
        return "->".join(self.names.get(name, name) for name in edge.split("->"))


PLAIN = Matching({}, {})
"""The matching of a plan with itself: every name stays."""


@dataclass(frozen=True, slots=True)
class Family:
    """Groups of both plans that share nodes: one and one is a group that stayed, one and several a split."""

    old: tuple[Group, ...]
    new: tuple[Group, ...]


def match_nodes(old: Plan, new: Plan) -> Matching:
    """Pair the nodes of two plans. Plans that are equal but for names are paired by what leads to every node and what
    follows it. Else those of equal name and content come first, then by origin, by content with all that leads there,
    with all that follows, alone, by name and operator, by origin and operator. Among equals the order decides. A node
    is paired once; what is left has no counterpart. Takes time in proportion to the nodes."""
    before = {node.name: node for group in old.groups for node in group.nodes}
    after = {node.name: node for group in new.groups for node in group.nodes}
    computed = cache(content)
    pairs = _equal_but_for_names(old, new, before, after, computed)
    if not pairs:
        pairs = {n: n for n in before if n in after and _same(before[n].expr, after[n].expr, computed)}
        _add(pairs, before, after, lambda node: (node.name, node.op, node.origin) if node.origin else None)
    if len(pairs) < min(len(before), len(after)):
        for contexts in (_ways_in, _ways_out):
            known: dict[Hashable, int] = {}
            _add_sides(pairs, before, after, contexts(before, computed, known), contexts(after, computed, known))
        _add(pairs, before, after, lambda node: computed(node.expr))
        _add(pairs, before, after, lambda node: (node.name, node.op))
        _add(pairs, before, after, lambda node: (node.op, node.origin) if node.origin else None)
    return Matching(pairs, _names(pairs, before, after))


def _equal_but_for_names(
    old: Plan, new: Plan, before: Mapping[str, Node], after: Mapping[str, Node], computed: Content
) -> dict[str, str]:
    """The pairs of plans in which every node of one has its like in the other, reading the same inputs and constants
    and being read alike; of nodes that are alike those of equal names first. Empty for other plans."""
    if len(before) != len(after):
        return {}
    numbers: dict[Hashable, int] = {}
    found: list[dict[str, tuple[int, int]]] = []
    for plan, nodes in ((old, before), (new, after)):
        whole = {**{node.name: node for node in plan.prepared}, **nodes}
        given: dict[str, Hashable] = {**plan.constants, **{port.tensor: port.name for port in plan.inputs}}
        led = _ways_in(whole, computed, numbers, given)
        leads = _ways_out(nodes, computed, numbers)
        found.append({name: (led[name], leads[name]) for name in nodes})
    if sorted(found[0].values()) != sorted(found[1].values()):
        return {}
    pairs: dict[str, str] = {}
    _add_sides(pairs, before, after, *({name: (key, name) for name, key in side.items()} for side in found))
    _add_sides(pairs, before, after, *found)
    return pairs


def families(old: Plan, new: Plan, matching: Matching) -> tuple[Family, ...]:
    """Groups that share nodes, put together; in the order of the new plan, groups that are gone at the end."""
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
    known: dict[Hashable, int],
    given: Mapping[str, Hashable] = MappingProxyType({}),
) -> dict[str, int]:
    """Node -> number of its content and, in turn, that of its operands, or of what is `given`; equal computations have
    equal numbers."""
    numbers: dict[str, int] = {}
    for name, node in nodes.items():
        key = (computed(node.expr), *(numbers.get(t, given.get(t, -1)) for t in operands(node.expr)))
        numbers[name] = known.setdefault(key, len(known))
    return numbers


def _ways_out(nodes: Mapping[str, Node], computed: Content, known: dict[Hashable, int]) -> dict[str, int]:
    """Node -> number of its content and, in turn, that of its readers."""
    readers: dict[str, list[tuple[int, int]]] = {name: [] for name in nodes}
    numbers: dict[str, int] = {}
    for name, node in reversed(list(nodes.items())):
        key = (computed(node.expr), *sorted(readers[name]))
        numbers[name] = known.setdefault(key, len(known))
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
    """Pair what has no counterpart yet by `key`; None is paired with nothing."""
    keys = [{node.name: key(node) for node in side.values()} for side in (before, after)]
    _add_sides(pairs, before, after, *keys)


def _add_sides(
    pairs: dict[str, str],
    before: Mapping[str, Node],
    after: Mapping[str, Node],
    old: Mapping[str, Hashable | None],
    new: Mapping[str, Hashable | None],
) -> None:
    """Pair what has no counterpart yet by keys, in order where several are equal."""
    taken = set(pairs.values())
    waiting: dict[Hashable, deque[str]] = {}
    for name in after:
        if name not in taken and new[name] is not None:
            waiting.setdefault(new[name], deque()).append(name)
    for node in _left(pairs, before):
        if waiting.get(old[node.name]):
            pairs[node.name] = waiting[old[node.name]].popleft()


def _names(pairs: Mapping[str, str], before: Mapping[str, Node], after: Mapping[str, Node]) -> dict[str, str]:
    """Tensor -> its name in the new plan: nodes as paired, other operands by their place in the expressions."""
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
