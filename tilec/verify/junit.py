"""JUnit XML of a verification, the format in which CI systems show tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from tilec.errors import TilecError

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML does not allow."""


@dataclass(frozen=True, slots=True)
class Case:
    """One test: class, name, failure (empty if it passed) and its numbers."""

    classname: str
    name: str
    failure: str = ""
    output: str = ""


def junit(model: str, report: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    """The XML of a report and the record of its run: one test per output and set of inputs, and per group compared on
    its own."""
    cases = [*_outputs(report, run), *_groups(report, run)]
    failed = report.get("verdict") in ("mismatch", "refused")
    if not cases or (failed and not any(case.failure for case in cases)):
        because = str(report.get("because", ""))
        cases.append(Case("model", "verdict", because or str(report["verdict"]) if failed else "", because))
    suite = _suite(model, len(cases), sum(bool(case.failure) for case in cases), 0)
    for case in cases:
        testcase = SubElement(
            suite, "testcase", {"classname": _text(f"{model}.{case.classname}"), "name": _text(case.name)}
        )
        if case.failure:
            SubElement(testcase, "failure", {"message": _text(case.failure), "type": "VerificationMismatch"})
        if case.output:
            SubElement(testcase, "system-out").text = _text(case.output)
    return _document(suite)


def junit_of_error(model: str, error: TilecError) -> str:
    """The XML of a verification that could not be run."""
    suite = _suite(model, 1, 0, 1)
    case = SubElement(suite, "testcase", {"classname": _text(f"{model}.model"), "name": "verify"})
    SubElement(case, "error", {"message": _text(error.message), "type": type(error).__name__}).text = _text(str(error))
    return _document(suite)


def _outputs(report: Mapping[str, Any], run: Mapping[str, Any]) -> Iterator[Case]:
    allowed = report.get("outputs", {})
    for draw in run.get("draws", ()):
        label = draw["inputs"] if "inputs" in draw else f"seed {draw['seed']}, mean {draw['mean']:g}"
        label += "".join(f", {symbol}={size}" for symbol, size in draw.get("sizes", {}).items())
        for name, error in draw["errors"].items():
            reason = draw.get("reasons", {}).get(name, "")
            tolerance = allowed.get(name, {}).get("tolerance")
            output = f"off by {float(error):.1e}" + (f", {tolerance:.1e} is allowed" if tolerance is not None else "")
            yield Case("outputs", f"{name} ({label})", reason, output)


def _groups(report: Mapping[str, Any], run: Mapping[str, Any]) -> Iterator[Case]:
    """Tests of the groups that were compared; a group that stopped the run has no numbers."""
    groups = run.get("groups", {})
    for name, group in groups.items():
        output = f"{group['origin']}: {group['tensor']} is off by {float(group['error']):.1e}"
        yield Case("groups", name, group.get("reason", ""), f"{output}, {group['tolerance']:.1e} is allowed")
    diverging = report.get("diverging", {})
    if diverging.get("group") and diverging["group"] not in groups:
        yield Case("groups", diverging["group"], f"wrong by its {diverging['stage']}", diverging.get("origin", ""))


def _suite(model: str, tests: int, failures: int, errors: int) -> Element:
    counts = {"tests": str(tests), "failures": str(failures), "errors": str(errors), "skipped": "0"}
    return Element("testsuite", {"name": _text(f"tilec verify {model}"), **counts})


def _document(suite: Element) -> str:
    root = Element("testsuites", {key: suite.attrib[key] for key in ("tests", "failures", "errors")})
    root.append(suite)
    indent(root)
    return "<?xml version='1.0' encoding='utf-8'?>\n" + tostring(root, encoding="unicode") + "\n"


def _text(text: str) -> str:
    return _FORBIDDEN.sub("?", text)
