"""A report that says nothing of a model ends a command with an exit code of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilec.errors import UnverifiedError

if TYPE_CHECKING:
    from tilec.spec.recipe import VerifyOptions


def require_verified(report: Mapping[str, Any], options: VerifyOptions, folder: Path) -> None:
    """Raise UnverifiedError for a report on a model that nothing can be said about, unless that is allowed."""
    if report.get("verdict") != "unverified" or options.allow_unverified:
        return
    hint = "Give inputs with `tilec verify --inputs FILE.npz`, or say --allow-unverified."
    raise UnverifiedError(f"nothing was verified: {report['because']}", str(folder), hint)
