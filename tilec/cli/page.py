"""Text for a terminal of some width, or plain: columns of which the last one wraps, without a library's start-up
time."""

import os
import shutil
import sys
import textwrap
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

_GAP = "  "
_LEAST = 20
"""Smallest width of the last column, in characters."""

_HANG = 4
"""Indentation of a folded line whose last column would be narrower."""


@dataclass(frozen=True)
class Page:
    """`width` in characters, None for unlimited lines; whether `styles` are used."""

    width: int | None = None
    styles: bool = False

    @classmethod
    def of_stdout(cls) -> "Page":
        """The terminal of standard output; plain where it is none."""
        if not sys.stdout.isatty():
            return cls()
        plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
        return cls(shutil.get_terminal_size().columns, not plain)

    def bold(self, text: str) -> str:
        """The text in bold where there are styles."""
        return f"\x1b[1m{text}\x1b[0m" if self.styles and text else text

    def fold(self, line: str, indent: int) -> str:
        """The line, folded where it is wider than the terminal; what follows is indented, less where that leaves too
        little."""
        if self.width is None or len(line) <= self.width:
            return line
        hang = " " * (indent if indent + _LEAST <= self.width else _HANG)
        return "\n".join(textwrap.wrap(line, self.width, subsequent_indent=hang, break_on_hyphens=False))

    def folded(self, text: str) -> str:
        """The text with its lines folded, each a step behind its own indentation."""
        return "\n".join(self.fold(line, len(line) - len(line.lstrip()) + _HANG) for line in text.split("\n"))

    def rows(self, rows: Sequence[Sequence[str]]) -> str:
        """Rows as left-aligned columns, each row folded under its last column."""
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        indent = sum(widths[:-1]) + len(_GAP) * (len(widths) - 1)
        lines = [_GAP.join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join(self.fold(line, indent) for line in lines)

    def columns(self, heads: Sequence[str], rows: Sequence[Sequence[str]], right: Container[str]) -> Iterator[str]:
        """Lines of aligned columns, heads first; those named `right` are right-aligned, the last one wraps."""
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        last = None if self.width is None else max(_LEAST, self.width - sum(len(_GAP) + each for each in widths[:-1]))
        for number, row in enumerate((heads, *rows)):
            wrapped = textwrap.wrap(row[-1], last) if last is not None and len(row[-1]) > last else [row[-1]]
            for at, text in enumerate(wrapped):
                before = ["" if at else cell for cell in row[:-1]]
                cells = [
                    cell.rjust(width) if head in right else cell.ljust(width)
                    for cell, width, head in zip(before, widths, heads, strict=False)
                ]
                line = _GAP.join([*cells, text]).rstrip()
                yield self.bold(line) if number == 0 else line
