"""`tilec explain`: the meaning of a code that tilec prints; the reasons for a plan's decisions."""

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilec.cli.completion import devices, edges, groups, nodes, recipes
from tilec.cli.console import Console
from tilec.cli.options import AsJson, PlanShapes
from tilec.cli.page import Page as Terminal
from tilec.cli.shape_flags import parse_shapes
from tilec.errors import UsageError

if TYPE_CHECKING:
    from tilec.artifact import Json
    from tilec.ir.plan import Plan
    from tilec.report.codes import Page

_WIDTH = 100


def explain(
    console: Console,
    subject: Annotated[
        str | None,
        typer.Argument(
            metavar="[PLAN|CODE]",
            help="A path that exists or ends in .json is a plan (2-plan.json, its folder); everything else a code, an "
            "error's class, an exit code, or a message.",
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            metavar="NAME|NUMBER",
            help="Why a group is tiled as it is.",
            autocompletion=groups,
        ),
    ] = None,
    edge: Annotated[
        str | None,
        typer.Option(
            "--edge", metavar="A->B", help="Why B is, or is not, connected to A that it reads.", autocompletion=edges
        ),
    ] = None,
    node: Annotated[
        str | None,
        typer.Option(
            "--node",
            metavar="NAME",
            help="Where a node ended up.",
            autocompletion=nodes,
        ),
    ] = None,
    graph: Annotated[
        Path | None, typer.Option("--graph", metavar="FILE", help="The plan's graph (default: 1-graph.json beside it).")
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            metavar="NAME|FILE",
            help="The plan's device (default: device.yaml beside it, or its name).",
            autocompletion=devices,
        ),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            "--recipe",
            metavar="NAME|FILE",
            help="The plan's recipe (default: recipe.yaml beside it).",
            autocompletion=recipes,
        ),
    ] = None,
    shape: PlanShapes = None,
    json: AsJson = False,
) -> None:
    """Say why a plan is as it is, or what a code means.

    \b
    tilec explain bert.tilec/                             # what was decided, and what can be asked
    tilec explain bert.tilec/ --group 3                   # tiles, candidates, where the bytes go
    tilec explain bert.tilec/2-plan.json --edge "a->b"    # why connected or not, and what would change it
    tilec explain bert.tilec/ --node a --json
    tilec explain bert.tilec/ --group 3 --shape seq=384   # which variant runs there, and its figures
    tilec explain slower
    tilec explain PlanError
    tilec explain "its output's shape depends on the data"

    Of a plan the search is run again, with the plan's graph, device and recipe, and tells its figures. Without
    anything, all codes are listed.
    """
    asked = {"--group": group, "--edge": edge, "--node": node}
    given = [option for option, text in asked.items() if text is not None]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} are asked at once", hint="Ask for one of them at a time.")
    if subject is not None and (subject.endswith(".json") or Path(subject).exists()):
        _plan(console, Path(subject), group, edge, node, graph, device, recipe, parse_shapes(shape or ()), json)
        return
    others = {"--graph": graph, "--device": device, "--recipe": recipe, "--shape": shape}
    if given or any(other is not None for other in others.values()):
        named = [*given, *(option for option, value in others.items() if value is not None)]
        where = f"{subject!r} is no file or folder" if subject is not None else "no plan is named"
        raise UsageError(f"{named[0]} asks about a plan, but {where}", hint="tilec explain PLAN --group 1")
    _code(console, subject, json)


def _plan(
    console: Console,
    path: Path,
    group: str | None,
    edge: str | None,
    node: str | None,
    graph: Path | None,
    device: str | None,
    recipe: str | None,
    sizes: Mapping[str, int],
    json: bool,
) -> None:
    """Explain a plan; figures of one with symbols are at the sizes that it is made for, or at those of `sizes`."""
    from tilec.analysis.explain.replay import replay
    from tilec.analysis.scenario_figures import FEW_LENGTHS
    from tilec.analysis.size_variants import PlanAt
    from tilec.cli.plan_origin import graph_of, plan_of, planned_device, planned_options
    from tilec.ir.bind_plan import complete_sizes
    from tilec.pipeline.code_decisions import decide_for
    from tilec.pipeline.plan_at_sizes import plan_at_sizes
    from tilec.pipeline.plan_bounds import bounded_plan
    from tilec.pipeline.scenario_figures import scenario_figures
    from tilec.report.explain.answer import answered, require

    source, plan = plan_of(path)
    spec, options = planned_device(source, device), planned_options(source, recipe)
    whole = graph_of(source, plan, graph)
    plan = bounded_plan(plan, spec)
    require(plan, group=group, edge=edge, node=node)
    there = complete_sizes(plan, sizes)
    with console.stage("search"):
        replayed = replay(whole, spec, options, decide_for(spec))

    def at(of: "Plan") -> PlanAt:
        return PlanAt(plan_at_sizes(of, there, spec), there)

    asked = group is not None or edge is not None or node is not None
    scenarios = () if asked else scenario_figures(plan, spec, FEW_LENGTHS)
    answer = answered(replayed, plan, str(path), group=group, edge=edge, node=node, at=at, scenarios=scenarios)
    for line in answer.notes:
        console.note(line)
    if json:
        console.json(answer.json)
    else:
        console.data(Terminal.of_stdout().folded(answer.text))


def _code(console: Console, code: str | None, json: bool) -> None:
    """Explain a code; list all of them without one."""
    from tilec.report.codes import all_pages, pages_of

    if code is None:
        pages = all_pages()
        if json:
            console.json({"codes": [{"code": p.code, "kind": p.kind, "meaning": p.meaning} for p in pages]})
        else:
            console.data(_listed(pages))
        return
    pages = pages_of(code)
    if json:
        console.json({"pages": [_to_json(page) for page in pages]})
    else:
        console.data("\n\n".join("\n".join(_lines(page)) for page in pages))


def _to_json(page: "Page") -> "Json":
    return {
        "code": page.code,
        "kind": page.kind,
        "meaning": page.meaning,
        "numbers": dict(page.numbers),
        "example": page.example,
        "remedy": page.remedy,
    }


def _listed(pages: "tuple[Page, ...]") -> str:
    """All codes under their kinds."""
    from tilec.report.codes import KINDS

    width = max(len(page.code) for page in pages)
    terminal = Terminal.of_stdout()

    def line(page: "Page") -> str:
        return terminal.fold(f"  {page.code:<{width}}  {page.meaning}", width + 4)

    parts = ["\n".join([title, *(line(page) for page in pages if page.kind == kind)]) for kind, title in KINDS.items()]
    return "\n\n".join(parts)


def _lines(page: "Page") -> Iterator[str]:
    """A page as text."""
    from tilec.report.codes import KINDS

    yield f"{page.code}: {KINDS[page.kind]}"
    yield from _wrapped(page.meaning)
    if page.numbers:
        yield "  numbers"
        width = max(map(len, page.numbers))
        for name, what in page.numbers.items():
            yield f"    {name:<{width}}  {what}"
    yield "  example"
    yield from (f"    {line}" for line in page.example.splitlines())
    yield "  what to do"
    yield from _wrapped(page.remedy, "    ")


def _wrapped(text: str, indent: str = "  ") -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
