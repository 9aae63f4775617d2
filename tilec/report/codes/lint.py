"""Codes of `tilec lint`."""

from __future__ import annotations

from tilec.report.codes.page import Page
from tilec.report.lint.rules import RULES


def pages() -> tuple[Page, ...]:
    """One page for every rule."""
    return tuple(
        Page(rule.code, "lint", rule.meaning, rule.fix, f"{rule.severity} {rule.code}: {rule.example}")
        for rule in RULES.values()
    )
