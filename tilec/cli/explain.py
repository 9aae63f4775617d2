"""`tilec explain`: what a code that tilec prints means and what to do about it."""

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from tilec.cli.console import Console
from tilec.cli.options import AsJson

if TYPE_CHECKING:
    from tilec.artifact import Json
    from tilec.report.codes import Page

_WIDTH = 100


def explain(
    console: Console,
    code: Annotated[
        str | None, typer.Argument(metavar="[CODE]", help="A code, an error's class, an exit code, or a message.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Say what a code means: its numbers, an example, what to do.

    \b
    tilec explain slower
    tilec explain PlanError
    tilec explain 4
    tilec explain "its output's shape depends on the data"

    Without a code, all of them are listed.
    """
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
    parts = [
        "\n".join([title, *(f"  {page.code:<{width}}  {page.meaning}" for page in pages if page.kind == kind)])
        for kind, title in KINDS.items()
    ]
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
