"""A model, compiled and verified as a new user would: `tilec compile MODEL`, all sizes open."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any

from tests.cpu_limit import run_limited
from tilec.errors import several


@dataclass(frozen=True, slots=True)
class Compiled:
    """The number of a model's nodes and of those that are native, why the others are not, the verdict or the error,
    processor seconds, and whether all is right."""

    nodes: str
    native: str
    reasons: str
    verdict: str
    seconds: float
    right: bool


def compiled(model: Path, build: Path, limit: float, *options: str) -> Compiled:
    """Compile `model` into `build`, for at most `limit` processor seconds, with further options; nothing of an earlier
    run is used."""
    rmtree(build, ignore_errors=True)
    done = run_limited([sys.executable, "-m", "tilec", "compile", str(model), "-o", str(build), *options], limit)
    placement = _read(build / "2-plan.json").get("placement", {})
    report = _read(build / "4-report.json")
    right = done.code == 0 and report.get("verdict") == "pass"
    verdict = (
        f"pass, {several(len(report.get('samples', ())) or 1, 'size')}"
        if right
        else done.ended or _failure(done.errors, done.code)
    )
    nodes, native = (str(placement.get(each, "")) for each in ("total", "compiled"))
    return Compiled(nodes, native, _reasons(placement), verdict.replace("|", "/"), done.seconds, right)


def _reasons(placement: dict[str, Any]) -> str:
    """Operators that fall back, each with its reason; what merely depends on them is counted."""
    every = Counter((each.get("op", ""), each.get("reason", "")) for each in placement.get("fallback", ()))
    return "; ".join(f"{count} {op}: {reason}" for (op, reason), count in every.most_common(4)).replace("|", "/")


def _failure(errors: str, code: int) -> str:
    lines = errors.splitlines()
    first = next((line for line in lines if line.startswith(("error:", "verified on:"))), lines[-1] if lines else "")
    return f"exit {code}: {first[:160]}"


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
