"""A finding of lint and its place."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tilec.report.lint.rules import RULES, Rule


@dataclass(frozen=True, slots=True)
class Place:
    """A file, with line and column (from 1) in YAML, and a JSON pointer in an artifact."""

    file: str
    line: int = 0
    column: int = 0
    pointer: str = ""

    def __str__(self) -> str:
        if self.pointer:
            return f"{self.file}#{self.pointer}"
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Finding:
    """`code` is one of `RULES`; `message` is a sentence with its numbers, without the full stop."""

    code: str
    place: Place
    message: str
    fix: str = ""

    @property
    def rule(self) -> Rule:
        """The rule of its code."""
        return RULES[self.code]

    @property
    def remedy(self) -> str:
        """The fix of this finding, else the rule's."""
        return self.fix or self.rule.fix


def place_of(text: str | None, file: str) -> Place:
    """A place from `file:line:column`, the form of error messages; `file` where there is none."""
    match = re.fullmatch(r"(.+?):(\d+):(\d+)", text or "")
    if match is None:
        return Place(text or file)
    return Place(match[1], int(match[2]), int(match[3]))


def pointer(*keys: str | int) -> str:
    """A JSON pointer (RFC 6901)."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in keys)
