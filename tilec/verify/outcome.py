"""Results of verify: the report, which is the same on every machine, and the record of this run, which is not."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from math import isfinite
from typing import Any

from tilec.verify.cases import Case
from tilec.verify.compare import Comparison
from tilec.verify.groups import GroupCheck
from tilec.verify.input_files import labelled

NAME_INPUTS = "name inputs that the model accepts with --inputs FILE.npz"
"""The way out where random inputs are refused."""

_PACKAGES = ("tilec", "numpy", "onnxruntime", "apache-tvm", "apache-tvm-ffi", "apache-tvm-ffi-orcjit")


@dataclass(frozen=True)
class Checked:
    """One set of inputs and the comparison of every output."""

    case: Case
    outputs: Sequence[Comparison]


@dataclass(frozen=True)
class Outcome:
    """`report` goes to 4-report.json and `run` to run.json; `failure` describes the mismatch, None if there is none.

    `checked` are the cases that ran whole; where single kernels ran instead, `ran` has each with its sizes.
    """

    report: Mapping[str, Any]
    run: Mapping[str, Any]
    failure: str | None = None
    hint: str | None = None
    checked: Sequence[Checked] = ()
    ran: Sequence[tuple[Mapping[str, int], str]] = ()


def not_verified(because: str) -> Outcome:
    """The outcome of a model that nothing can be said about."""
    return Outcome({"because": because, "verdict": "unverified", "verified_on": "nothing"}, run_record([], {}))


def worst_of(checked: Sequence[Checked], name: str) -> Comparison:
    """The comparison of an output that says most: a mismatch, else the largest error."""
    found = [output for done in checked for output in done.outputs if output.output == name]
    return max(found, key=lambda each: (not each.passed, each.moves is not None, each.error))


def outputs_report(checked: Sequence[Checked]) -> dict[str, Any]:
    """The report's entry of every output: its tolerance, and the verdict that says most."""
    names = dict.fromkeys(output.output for done in checked for output in done.outputs)
    worst = {name: worst_of(checked, name) for name in names}
    return {name: {"tolerance": each.tolerance, **each.json()} for name, each in worst.items()}


def group_summary(groups: Sequence[GroupCheck], total: int) -> dict[str, Any]:
    """The report's entry on groups compared on their own: their number, and those that are wrong."""
    wrong = [
        {"group": c.group, "origin": c.origin, "tensor": c.worst.output, "tolerance": c.worst.tolerance}
        for c in groups
        if not c.passed
    ]
    return {"per_group": {"compared": len(groups), "diverging": wrong, "total": total}}


def run_record(
    checked: Sequence[Checked], more: Mapping[str, Any], groups: Sequence[GroupCheck] = ()
) -> dict[str, Any]:
    """The part that depends on machine and moment: errors of each draw and each group, versions, and `more`."""
    record = {"draws": [_compared(done) for done in checked], "machine": _machine(), "versions": _versions(), **more}
    return {**record, "groups": {each.group: each.json() for each in groups}} if groups else record


def _compared(done: Checked) -> dict[str, Any]:
    """The comparisons of one set of inputs, with reasons for the failing outputs."""
    errors = {each.output: each.error if isfinite(each.error) else str(each.error) for each in done.outputs}
    reasons = {each.output: each.reason for each in done.outputs if not each.passed}
    record = {**labelled(done.case.feeding), "errors": errors}
    if done.case.sizes:
        record["sizes"] = dict(done.case.sizes)
    return {**record, "reasons": reasons} if reasons else record


def _machine() -> dict[str, str]:
    return {"processor": _processor(), "system": f"{platform.system()} {platform.release()}"}


def _processor() -> str:
    """The processor's name, if the system provides it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = (line.partition(":")[2].strip() for line in file if line.startswith("model name"))
            return next(names, platform.machine())
    except OSError:
        return platform.machine()


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions
