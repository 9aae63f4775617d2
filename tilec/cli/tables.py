"""Rows as aligned columns, and the output formats of reports."""

import io
import sys
from collections.abc import Container, Sequence
from enum import StrEnum

_WIDEST = 400
"""Width in characters where there is no terminal."""


class Format(StrEnum):
    """The output format of rows."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


def table(cells: Sequence[Sequence[str]], names: Container[str]) -> str:
    """Aligned columns, headings first, in the terminal's colors where there is one; columns `names` are left-aligned,
    numbers right-aligned."""
    from rich.console import Console as RichConsole
    from rich.table import Table

    head, *body = cells
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in head:
        grid.add_column(title, justify="left" if title in names else "right", no_wrap=True)
    for row in body:
        grid.add_row(*row)
    terminal, memory = sys.stdout.isatty(), io.StringIO()
    rich = RichConsole(
        file=memory, force_terminal=terminal, width=None if terminal else _WIDEST, highlight=False, markup=False
    )
    rich.print(grid)
    return "\n".join(line.rstrip() for line in memory.getvalue().splitlines())
