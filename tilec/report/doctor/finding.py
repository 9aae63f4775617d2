"""A finding: the result of one check and its fix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tilec.errors import ConfigError, UnavailableError

Status = Literal["ok", "info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`check` is the subject, `text` the result, `fix` the remedy.

    An error prevents tilec from working and has an exit code; a warning costs speed or comfort; info has no effect.
    """

    check: str
    status: Status
    text: str
    fix: str = ""
    exit_code: int = UnavailableError.exit_code


def invalid(check: str, text: str, fix: str) -> Finding:
    """A setting with an invalid value."""
    return Finding(check, "error", text, fix, ConfigError.exit_code)


def exit_code_of(findings: Iterable[Finding]) -> int:
    """0 when tilec can be used, else the code of the gravest error: the toolchain before settings."""
    return max((finding.exit_code for finding in findings if finding.status == "error"), default=0)
