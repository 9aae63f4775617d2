"""What verify hands back: the report, which is the same on every machine, and the record of this run, which is not."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from math import isfinite
from typing import Any

from tilec.verify.compare import Comparison
from tilec.verify.inputs import Draw

_PACKAGES = ("tilec", "numpy", "onnxruntime", "apache-tvm", "apache-tvm-ffi", "apache-tvm-ffi-orcjit")


@dataclass(frozen=True)
class Outcome:
    """`report` goes to 4-report.json and `run` to run.json; `failure` says what differs, None when nothing does."""

    report: Mapping[str, Any]
    run: Mapping[str, Any]
    failure: str | None = None
    hint: str | None = None


@dataclass(frozen=True)
class Checked:
    """One draw of inputs and how every output compared."""

    draw: Draw
    outputs: Sequence[Comparison]


def run_record(checked: Sequence[Checked], more: Mapping[str, Any]) -> dict[str, Any]:
    """What depends on machine and moment: errors of each draw, versions, and `more`."""
    listed = [
        {
            "seed": done.draw.seed,
            "mean": done.draw.mean,
            "errors": {each.output: each.error if isfinite(each.error) else str(each.error) for each in done.outputs},
        }
        for done in checked
    ]
    return {"draws": listed, "machine": _machine(), "versions": _versions(), **more}


def _machine() -> dict[str, str]:
    return {"processor": _processor(), "system": f"{platform.system()} {platform.release()}"}


def _processor() -> str:
    """The processor's name where the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = (line.partition(":")[2].strip() for line in file if line.startswith("model name"))
            return next(names, platform.machine())
    except OSError:
        return platform.machine()


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
