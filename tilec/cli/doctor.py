"""`tilec doctor`: problems with this machine's Python, packages, CPU, threads and cache, with fixes."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from tilec.cli.console import Console
from tilec.cli.options import AsJson
from tilec.cli.page import Page

if TYPE_CHECKING:
    from tilec.report.doctor import Check, Finding

_INDENT = 19
"""Column in which the texts of findings begin."""


def doctor(console: Console, json: AsJson = False) -> None:
    """Examine this machine: Python, packages, CPU, threads, compilers, cache; each finding with its fix.

    \b
    tilec doctor
    tilec doctor --json
    tilec doctor --quiet && make

    The exit code is 0 when tilec can be used, 6 when something that it needs is not there or does not go together, 2
    when a setting is invalid.
    """
    from tilec.report.doctor import examined, exit_code_of

    findings = []
    for finding in examined(_checks()):
        findings.append(finding)
        if not json and (console.verbosity >= 0 or finding.status == "error"):
            page = Page.of_stdout()
            console.data("\n".join(page.fold(line, _INDENT) for line in _lines(finding)))
    code = exit_code_of(findings)
    if json:
        rows = [{"check": f.check, "status": f.status, "text": f.text, "fix": f.fix} for f in findings]
        console.json({"findings": rows, "usable": not code})
    counts = {status: sum(finding.status == status for finding in findings) for status in ("error", "warning")}
    parts = [f"{count} {status}{'s' * (count > 1)}" for status, count in counts.items() if count]
    console.note(f"tilec {'cannot' if code else 'can'} be used here" + (f": {', '.join(parts)}" if parts else ""))
    if code:
        raise typer.Exit(code)


def _checks() -> "Iterator[tuple[str, Check]]":
    """All checks; packages first, the others may need them."""
    from tilec.report.doctor import packages

    yield "python", packages.python
    yield "packages", packages.packages
    yield "loading", packages.loading
    for name in ("cpu", "threads", "memory", "compilers", "measured"):
        yield name, _machine(name)
    yield "cache", _cache


def _machine(name: str) -> "Check":
    """A check of the machine, imported when it runs: packages that it needs may be missing."""

    def check() -> "Iterator[Finding]":
        from tilec.report.doctor import machine

        yield from getattr(machine, name)()

    return check


def _cache() -> "Iterator[Finding]":
    from tilec.api.cache_eviction import limit_bytes
    from tilec.artifact import cache_folder
    from tilec.report.doctor.cache import cache

    yield from cache(cache_folder(), limit_bytes())


def _lines(finding: "Finding") -> list[str]:
    """A finding in one line, its fix in another."""
    lines = [f"{finding.status:<7}  {finding.check:<8}  {finding.text}"]
    return [*lines, f"{'':<{_INDENT}}{finding.fix}"] if finding.fix else lines
