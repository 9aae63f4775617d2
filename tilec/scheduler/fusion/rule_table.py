"""Aggregation rules as data: a lattice of patterns, and which areas of nodes join which neighbours (A06, A08)."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Literal, Self

from pydantic import Field, model_validator

from tilec.scheduler.fusion.patterns import PATTERNS
from tilec.spec.located import Spec, parse_yaml, validate


class Rule(Spec):
    """A rule by which an area joins neighbours."""

    name: str = Field(min_length=1, description="by which explain and refusals call it")
    area: tuple[str, ...] = Field(min_length=1, description="patterns of the area")
    side: Literal["inputs", "outputs", "both"] = Field(description="where the neighbours are")
    neighbour: str = Field(description="the largest pattern of the neighbour")
    relation: str = Field(description="the largest pattern of the edges between them")
    only_input: bool = Field(default=False, description="the reader reads no other area")
    only_reader: bool = Field(default=False, description="no other area reads the producer")
    same_size: bool = Field(default=False, description="their results have as many elements")
    same_axes: bool = Field(default=False, description="both reduce axes of the same extents")
    least_elements: int = Field(default=0, ge=0, description="elements that the area's reduction reads at least")


class RuleTable(Spec):
    """A lattice and its rules, in the order in which they are tried."""

    patterns: tuple[str, ...] = Field(description="all patterns, ascending")
    most_nodes: int = Field(gt=0, description="nodes of an area at most")
    rules: tuple[Rule, ...] = Field(description="in the order in which they are tried")

    @model_validator(mode="after")
    def _known(self) -> Self:
        if sorted(self.patterns) != sorted(PATTERNS):
            raise ValueError(f"patterns are an order of {', '.join(PATTERNS)}")
        named = {name for rule in self.rules for name in (*rule.area, rule.neighbour, rule.relation)}
        if unknown := sorted(named - set(PATTERNS)):
            raise ValueError(f"no pattern is called {unknown[0]!r}")
        return self

    def rank(self, pattern: str) -> int:
        """The place of a pattern in the lattice."""
        return self.patterns.index(pattern)


def rule_table(text: str, place: str) -> RuleTable:
    """The table of a YAML text. Raises ConfigError with the place of what is wrong."""
    return validate(RuleTable, parse_yaml(text, place))


@cache
def apollo_table() -> RuleTable:
    """The rules of `schedule.fusion: apollo`."""
    file = resources.files("tilec.scheduler.fusion").joinpath("apollo.yaml")
    return rule_table(file.read_text(encoding="utf-8"), file.name)
