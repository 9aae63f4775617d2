"""The decisions of one group as flat facts in the names of the other plan, and their differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilec.analysis.change import Change, Fact
from tilec.analysis.match import Matching
from tilec.ir.canonical import content
from tilec.ir.expr import Expr, TensorExpr, Var, operands, rename_tensors, substitute, variables
from tilec.ir.plan import Group, Variant
from tilec.ir.text import tensor_text, text_of

Key = tuple[str, str, str, str]
"""Guard, kind, level, subject."""

ORDER = (
    *(
        "node",
        "expression",
        "operands",
        "output",
        "connect",
        "variant",
        "levels",
        "tile",
        "step",
        "order",
        "tail",
        "load",
    ),
    *("layout", "unit", "copies", "shared", "wide", "kernel"),
)
"""Kinds of facts of a group, as they are listed."""

RETILED = frozenset(ORDER[ORDER.index("variant") : ORDER.index("kernel")])
"""Facts of tiles: what a group changes in without being connected in another way."""


def edges(groups: Sequence[Group], matching: Matching) -> dict[Key, Fact]:
    """The level of every connected edge."""
    return {
        ("", "connect", "", matching.edge(edge)): level for group in groups for edge, level in group.connect.items()
    }


def nodes(groups: Sequence[Group], matching: Matching) -> dict[Key, Fact]:
    """The operator of every node."""
    return {
        ("", "node", "", matching.nodes.get(node.name, node.name)): node.op or "(none)"
        for group in groups
        for node in group.nodes
    }


def expressions(old: Sequence[Group], new: Sequence[Group], matching: Matching) -> list[Change]:
    """Nodes of both plans whose expressions differ (axes, indices, operators, extents) or whose operands do."""
    before = {matching.nodes.get(node.name, ""): node.expr for group in old for node in group.nodes}
    changes: list[Change] = []
    for expr in (node.expr for group in new for node in group.nodes):
        other = before.get(expr.tensor)
        if other is None:
            continue
        if other != expr and content(other) != content(expr):
            changes.append(Change("expression", expr.tensor, _expression_text(other), _expression_text(expr)))
        elif (reads := [matching.names.get(t, t) for t in operands(other)]) != list(operands(expr)):
            changes.append(Change("operands", expr.tensor, reads, list(operands(expr))))
    return changes


def _expression_text(expr: TensorExpr) -> str:
    return f"{tensor_text(expr)} over {' '.join(f'{i}={text_of(e)}' for i, e in expr.domain.items())}"


def variants(group: Group, matching: Matching, targets: Group) -> dict[Key, Fact]:
    """Everything that the variants of a group fix, in the names and iterators of the nodes of `targets`."""
    iterators = _iterators(group, targets, matching)
    facts: dict[Key, Fact] = {}
    for variant in group.variants:
        guard = text_of(variant.guard) if len(group.variants) > 1 else ""
        if guard:
            facts[guard, "variant", "", ""] = "planned"
        facts |= {(guard, *key): fact for key, fact in _facts(variant, matching, iterators).items()}
    facts["", "output", "", ""] = [matching.names.get(name, name) for name in group.outputs]
    return facts


def differences(before: Mapping[Key, Fact], after: Mapping[Key, Fact]) -> list[Change]:
    """Facts that differ or are on one side only, by guard, kind, level and subject."""
    keys = sorted({*before, *after}, key=lambda key: (key[0], ORDER.index(key[1]), *key[2:]))
    return [
        Change(kind, subject, before.get(key), after.get(key), level, guard)
        for key in keys
        for guard, kind, level, subject in (key,)
        if before.get(key) != after.get(key)
    ]


def _iterators(group: Group, targets: Group, matching: Matching) -> dict[str, Mapping[str, str]]:
    """Map from node to a map from iterator to its name in the matched node: by position where the numbers agree."""
    others = {node.name: node.expr.iterators for node in targets.nodes}
    names: dict[str, Mapping[str, str]] = {}
    for node in group.nodes:
        old, other = node.expr.iterators, others.get(matching.nodes.get(node.name, node.name), ())
        same = set(old) == set(other) or len(old) != len(other)
        names[node.name] = {i: i for i in old} if same else dict(zip(old, other, strict=True))
    return names


def _facts(
    variant: Variant, matching: Matching, iterators: Mapping[str, Mapping[str, str]]
) -> dict[tuple[str, str, str], Fact]:
    def node(name: str) -> str:
        return matching.nodes.get(name, name)

    def tensor(name: str) -> str:
        return matching.names.get(name, name)

    def iterator(name: str, i: str) -> str:
        return iterators.get(name, {}).get(i, i)

    facts: dict[tuple[str, str, str], Fact] = {("levels", "", ""): list(variant.levels)}
    for kind, table in (("tile", variant.tiles), ("step", variant.steps)):
        for level, per in table.items():
            for name, sizes in per.items():
                if sizes:
                    facts[kind, level, node(name)] = {iterator(name, i): size for i, size in sorted(sizes.items())}
    for level, orders in variant.order.items():
        facts |= {("order", level, node(n)): [iterator(n, i) for i in order] for n, order in orders.items()}
    for level, tails in variant.tails.items():
        facts |= {("tail", level, node(name)): tail for name, tail in tails.items()}
    for level, depths in variant.copies.items():
        facts |= {("copies", level, tensor(name)): depth for name, depth in depths.items()}
    for level, layouts in variant.layouts.items():
        facts |= {("layout", level, tensor(name)): list(order) for name, order in layouts.items()}
    facts |= {("load", "", tensor(name)): list(levels) for name, levels in variant.loads.items()}
    facts |= {("unit", "", node(name)): unit for name, unit in variant.units.items()}
    facts |= {("wide", "", tensor(name)): "f32" for name in variant.wide}
    for name, entry in variant.shared.items():
        pairs = sorted((iterator(name, own), iterator(entry.loop, other)) for own, other in entry.iterators.items())
        spatial: dict[str, Expr] = {i: Var(iterator(name, i)) for i in variables(entry.rescale)}
        rescale = text_of(substitute(rename_tensors(entry.rescale, matching.names), spatial))
        facts["shared", "", node(name)] = [node(entry.loop), *(f"{own} with {other}" for own, other in pairs), rescale]
    return {**facts, ("kernel", "", ""): variant.kernel}
