"""Rows as aligned columns, and the forms that reports have."""

import io
import sys
from collections.abc import Container, Sequence
from enum import StrEnum

_WIDEST = 400
"""Columns where there is no terminal."""


class Format(StrEnum):
    """How the rows are written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


def table(cells: Sequence[Sequence[str]], names: Container[str]) -> str:
    """Aligned columns, headings first, in the terminal's colors where there is one; `names` are heads of columns on the
    left, numbers stand on the right."""
    from rich.console import Console as RichConsole
    from rich.table import Table

    head, *body = cells
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in head:
        made.add_column(title, justify="left" if title in names else "right", no_wrap=True)
    for row in body:
        made.add_row(*row)
    terminal, memory = sys.stdout.isatty(), io.StringIO()
    rich = RichConsole(
        file=memory, force_terminal=terminal, width=None if terminal else _WIDEST, highlight=False, markup=False
    )
    rich.print(made)
    return "\n".join(line.rstrip() for line in memory.getvalue().splitlines())
