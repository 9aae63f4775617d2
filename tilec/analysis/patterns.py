"""Fused patterns: the computations of groups of several nodes, up to names and tiles (Welder, 5; W48)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tilec.artifact import digest_object
from tilec.ir.canonical_group import canonical_form
from tilec.ir.plan import Group, Plan


@dataclass(frozen=True, slots=True)
class Pattern:
    """A fused computation: the digest of its form (expressions, extents, types, shapes and outputs), the number of its
    nodes and of its reductions."""

    form: str
    nodes: int
    reductions: int


@dataclass(frozen=True, slots=True)
class PatternCounts:
    """Number of patterns, number of those with two or more reductions, nodes of the largest one (0 without any)."""

    patterns: int
    reducing: int
    largest: int


def fused_patterns(plan: Plan) -> frozenset[Pattern]:
    """The patterns of a plan: different computations of groups of several nodes."""
    return frozenset(_pattern(group, plan) for group in plan.groups if len(group.nodes) > 1)


def pattern_counts(patterns: Iterable[Pattern]) -> PatternCounts:
    """The counts of different patterns."""
    different = frozenset(patterns)
    return PatternCounts(
        patterns=len(different),
        reducing=sum(pattern.reductions > 1 for pattern in different),
        largest=max((pattern.nodes for pattern in different), default=0),
    )


def _pattern(group: Group, plan: Plan) -> Pattern:
    form = canonical_form(group.nodes, group.outputs, plan.tensors)
    content = [form.nodes, sorted(form.tensors.items()), form.outputs]
    reductions = sum(node.expr.reducer is not None for node in group.nodes)
    return Pattern(digest_object(content), len(group.nodes), reductions)
