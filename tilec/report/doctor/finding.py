"""One thing that was looked at: how it is, and how to mend it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tilec.errors import ConfigError, UnavailableError

Status = Literal["ok", "info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`check` is what was looked at, `text` what was found, `fix` what to do about it.

    An error keeps tilec from working and has an exit code; a warning costs speed or comfort; info changes nothing.
    """

    check: str
    status: Status
    text: str
    fix: str = ""
    exit_code: int = UnavailableError.exit_code


def invalid(check: str, text: str, fix: str) -> Finding:
    """A setting that cannot be used as it is written."""
    return Finding(check, "error", text, fix, ConfigError.exit_code)


def exit_code_of(findings: Iterable[Finding]) -> int:
    """0 when tilec can be used, else the code of what weighs most: the toolchain before settings."""
    return max((finding.exit_code for finding in findings if finding.status == "error"), default=0)
