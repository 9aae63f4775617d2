"""Findings as text, as JSON, as SARIF 2.1.0 and as annotations of GitHub."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from tilec.report.lint.finding import Finding, Place
from tilec.report.lint.rules import RULES

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def table(findings: Sequence[Finding]) -> str:
    """One line per finding, its fix below it."""
    lines = []
    for each in findings:
        lines.append(f"{each.place}: {each.rule.severity} {each.code}: {each.message}")
        lines += [f"  {line.strip()}" for line in each.remedy.splitlines()]
    return "\n".join(lines)


def counted(findings: Sequence[Finding], files: int) -> str:
    """`2 files: 1 error, 3 warnings`, or `no findings`."""
    counts = Counter(each.rule.severity for each in findings)
    parts = [f"{counts[s]} {s}{'s' * (counts[s] != 1)}" for s in ("error", "warning") if counts[s]]
    return f"{files} file{'s' * (files != 1)}: {', '.join(parts) or 'no findings'}"


def to_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """All findings as plain data."""
    return {
        "findings": [
            {
                "code": each.code,
                "severity": each.rule.severity,
                **_place_to_json(each.place),
                "message": each.message,
                "fix": each.remedy,
            }
            for each in findings
        ]
    }


def _place_to_json(place: Place) -> dict[str, Any]:
    given = {"file": place.file, "line": place.line, "column": place.column, "pointer": place.pointer}
    return {key: value for key, value in given.items() if value}


def to_sarif(findings: Sequence[Finding], version: str) -> dict[str, Any]:
    """One SARIF 2.1.0 run: the rules with findings, and one result per finding; `version` is tilec's."""
    codes = [code for code in RULES if any(each.code == code for each in findings)]
    driver = {
        "name": "tilec lint",
        "version": version,
        "rules": [
            {
                "id": code,
                "shortDescription": {"text": f"{RULES[code].meaning}."},
                "help": {"text": RULES[code].fix},
                "defaultConfiguration": {"level": RULES[code].severity},
            }
            for code in codes
        ],
    }
    results = [
        {
            "ruleId": each.code,
            "ruleIndex": codes.index(each.code),
            "level": each.rule.severity,
            "message": {"text": f"{each.message}. {each.remedy}"},
            "locations": [_location(each.place)],
        }
        for each in findings
    ]
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _location(place: Place) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(place.file)}}
    if place.line:
        physical["region"] = {"startLine": place.line, "startColumn": max(1, place.column)}
    location: dict[str, Any] = {"physicalLocation": physical}
    if place.pointer:
        location["logicalLocations"] = [{"fullyQualifiedName": place.pointer, "kind": "element"}]
    return location


def _uri(file: str) -> str:
    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else path.as_posix()


def to_github(findings: Sequence[Finding]) -> str:
    """One workflow command per finding: GitHub shows them next to the lines of a pull request."""
    lines = []
    for each in findings:
        given = {"file": each.place.file, "line": each.place.line, "col": each.place.column, "title": each.code}
        properties = ",".join(f"{key}={_property(str(value))}" for key, value in given.items() if value)
        pointed = f" ({each.place.pointer})" if each.place.pointer else ""
        lines.append(f"::{each.rule.severity} {properties}::{_data(f'{each.message}{pointed}. {each.remedy}')}")
    return "\n".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
