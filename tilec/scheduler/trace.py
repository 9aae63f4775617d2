"""The trace of a search: every step that ran, with the frozen state before and after it.

Nothing is written by the steps themselves: what a step saw and changed is the difference of two states, so that a step
that is added to a list is traced, explained and printed without a line of its own for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

Advance = Callable[[int, int], None]
"""Receives how many of its decisions a step has taken, and how many there are."""


def no_advance(_done: int, _total: int) -> None:
    """Progress that nobody looks at."""


class Step(Protocol):
    """An entry of GRAPH_PASSES or SEARCH, as far as a trace is concerned: `name` and the `rule` that it goes by."""

    @property
    def name(self) -> str:
        """The name by which recipes, traces and explanations call the step."""

    @property
    def rule(self) -> str:
        """The rule that the step decides by, one sentence."""


class ListedStep:
    """An entry of SEARCH: a frozen value whose fields are its options.

    name      the name by which recipes, traces and explanations call it
    template  the rule that it decides by, with its options in braces
    required  why a recipe cannot leave it out; empty: it can
    """

    name: ClassVar[str]
    template: ClassVar[str]
    required: ClassVar[str] = ""

    @property
    def rule(self) -> str:
        """The rule that the step decides by, as `explain` and `--print-between-passes` print it."""
        return self.template.format_map(vars(self))


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """A step that ran, and the state before and after it."""

    step: Step
    before: Any
    after: Any


class Trace(Protocol):
    """Takes note of steps that ran."""

    def record(self, step: Step, before: Any, after: Any) -> None:
        """Take note of a step; the states are frozen values, those of its list."""

    def advance(self, name: str, done: int, total: int) -> None:
        """Take note that the step called `name`, which still runs, has decided `done` of `total` parts or groups."""


class _NoTrace:
    def record(self, step: Step, before: Any, after: Any) -> None:
        """Keep nothing."""

    def advance(self, name: str, done: int, total: int) -> None:
        """Keep nothing."""


NO_TRACE: Trace = _NoTrace()
"""The trace of a search that nobody asks about."""


@dataclass(frozen=True)
class RecordedTrace:
    """A trace that keeps its entries, in the order in which steps ended."""

    entries: list[TraceEntry] = field(default_factory=list)

    def record(self, step: Step, before: Any, after: Any) -> None:
        """Keep an entry."""
        self.entries.append(TraceEntry(step, before, after))

    def advance(self, name: str, done: int, total: int) -> None:
        """Keep nothing: the entry of the step follows."""
