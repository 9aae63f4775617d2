"""`tilec diff`: what a change alters in a plan."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilec.cli.console import Console
from tilec.cli.options import AsJson

if TYPE_CHECKING:
    from tilec.ir.plan import Plan

CHANGED = 3


class Format(StrEnum):
    """How the diff is written."""

    TABLE = "table"
    MD = "md"
    JSON = "json"


def diff(
    console: Console,
    old: Annotated[Path, typer.Argument(metavar="OLD", help="2-plan.json, its folder, or - for standard input.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The same.")],
    form: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.TABLE,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 3 when there are changes.")] = False,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on",
            metavar="METRIC[@LEVEL]=+N%",
            help="Exit with 1 when one of traffic, transactions, footprint, picoseconds, flops, groups, launches and "
            "kernels grew more; may be repeated.",
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Tell what differs between two plans: groups, tiles, connections, traffic, refusals.

    \b
    tilec diff old.tilec/ new.tilec/
    tilec diff old/2-plan.json new/2-plan.json --format md --fail-on traffic=+5%
    tilec diff a.json b.json --exit-code --fail-on footprint@smem=+0%,groups=+0%

    Groups are matched by what their nodes compute; names alone are no difference. Traffic without a level is that of
    the lowest one, transactions and a footprint without a level are those of any.
    """
    from tilec.errors import UsageError
    from tilec.report.diff import diff_plans
    from tilec.report.diff_json import diff_to_json
    from tilec.report.diff_markdown import diff_markdown
    from tilec.report.diff_text import diff_text
    from tilec.report.limits import LimitExceeded, exceeded, parse_limits

    limits = parse_limits(fail_on or ())
    if str(old) == str(new) == "-":
        raise UsageError("both plans cannot come from standard input", hint="Name a file for one of them.")
    found = diff_plans(_plan(old), _plan(new))
    beyond = exceeded(found, limits)
    if json or form is Format.JSON:
        console.json(diff_to_json(found))
    else:
        console.data(diff_markdown(found) if form is Format.MD else diff_text(found))
    if beyond:
        raise LimitExceeded("; ".join(beyond))
    if exit_code and not found.empty:
        raise typer.Exit(CHANGED)


def _plan(path: Path) -> "Plan":
    from tilec.ir.codec import plan_from_json
    from tilec.pipeline import read_source

    source = read_source("plan", path)
    return plan_from_json(source.body, source.place)
