"""Rows that were measured, put into a table of the manual: `python -m docs.measured TABLE FILE`.

FILE is what `make outside`, `make exports` or `make torch-models` printed. A row takes the place of the one with the
same key, or is added. The last column of these tables is the commit that a row was measured at; the table is as old as
its oldest row.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from docs import provenance
from tilec.artifact import write_text

KEYS: Mapping[str, tuple[str, ...]] = {
    "open-files": ("package", "model"),
    "exports": ("model",),
    "torch-models": ("model", "type", "run by"),
}
"""Tables whose rows are measured one by one, and the columns that tell their rows apart."""


def with_rows(table: Sequence[str], rows: Iterable[str], keys: Sequence[str]) -> list[str]:
    """The lines of a table with some rows measured anew, in the order of their keys."""
    head, line, *kept = table
    columns = [head.split("|").index(f" {key} ") for key in keys]

    def key(row: str) -> tuple[str, ...]:
        return tuple(row.split("|")[column].strip() for column in columns)

    found = {key(row): row for row in kept}
    found |= {key(row): row for row in rows if row.count("|") == head.count("|") and row not in (head, line)}
    return [head, line, *(found[name] for name in sorted(found))]


def oldest(table: Sequence[str], history: Sequence[str]) -> str:
    """The commit of the oldest row, which is the last of them in `history`, the newest first."""
    commits = {row.split("|")[-2].strip() for row in table[2:]}
    return max(commits, key=history.index)


def main(name: str, file: Path) -> None:
    """Put the rows of a file into a table."""
    path = provenance.ROOT / "docs" / provenance.TABLES[name].page
    text = path.read_text(encoding="utf-8")
    found = re.search(rf"(<!-- measured: {name} -->\n)(.*?)(<!-- end -->\n)", text, re.DOTALL)
    assert found is not None, name
    table = with_rows(found[2].splitlines(), file.read_text(encoding="utf-8").splitlines(), KEYS[name])
    write_text(path, text.replace(found[0], "\n".join([found[1] + table[0], *table[1:], found[3]])))
    commit = oldest(table, provenance.history())
    provenance.mark_as({name: (commit, provenance.digest_at(commit, provenance.TABLES[name]))})


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
