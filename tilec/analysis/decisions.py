"""The decisions of one group as flat facts in the names of the other plan, and their differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilec.analysis.change import Change, Fact
from tilec.analysis.match import Matching
from tilec.ir.canonical import content
from tilec.ir.decision_forms import decisions_of
from tilec.ir.decisions import Renaming, entries, fact, renamed
from tilec.ir.expr import TensorExpr, operands
from tilec.ir.plan import Group, Variant
from tilec.ir.text import tensor_text, text_of

Key = tuple[str, str, str, str]
"""Guard, kind, level, subject."""

STRUCTURE = ("node", "expression", "operands", "output", "connect")
"""Kinds of facts about the nodes of a group and how they are connected, as they are listed; decisions of its variants
follow, the name of the kernel is last."""


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
    renaming = Renaming(matching.names, _iterators(group, targets, matching))
    facts: dict[Key, Fact] = {}
    for variant in group.variants:
        guard = text_of(variant.guard) if len(group.variants) > 1 else ""
        if guard:
            facts[guard, "variant", "", ""] = "planned"
        facts |= {(guard, *key): fact for key, fact in _facts(renamed(variant, renaming)).items()}
    facts["", "output", "", ""] = [matching.names.get(name, name) for name in group.outputs]
    return facts


def differences(
    before: Mapping[Key, Fact], after: Mapping[Key, Fact], variant: type[Variant] = Variant
) -> list[Change]:
    """Facts that are not on both sides or not the same, by guard, kind (in the order of the fields of `variant`), level
    and subject."""
    kinds = (*STRUCTURE, "variant", "levels", *(decision.kind for decision in decisions_of(variant)), "kernel")
    keys = sorted({*before, *after}, key=lambda key: (key[0], kinds.index(key[1]), *key[2:]))
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


def _facts(variant: Variant) -> dict[tuple[str, str, str], Fact]:
    facts: dict[tuple[str, str, str], Fact] = {("levels", "", ""): list(variant.levels)}
    facts |= {(entry.decision.kind, entry.level, entry.subject): fact(entry) for entry in entries(variant)}
    return {**facts, ("kernel", "", ""): variant.kernel}
