"""A planted fault as data: which text of which file becomes what, and which tests must fail then."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

LIST = Path(__file__).with_name("list.yaml")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault: `old` occurs once in `file` and becomes `new`; `fault` is a sentence on it, `tests` are paths or
    node ids for pytest."""

    name: str
    file: str
    old: str
    new: str
    fault: str
    tests: tuple[str, ...]

    def text(self, root: Path) -> str:
        """The file with the fault. Raises StaleError where the list has to be pointed at other text."""
        path = root / self.file
        if not path.is_file():
            raise StaleError(f"{self.file} does not exist")
        source = path.read_text(encoding="utf-8")
        count = source.count(self.old)
        if count != 1:
            raise StaleError(f"{self.old!r} occurs {count} times in {self.file}")
        if self.old == self.new:
            raise StaleError(f"{self.new!r} changes nothing")
        changed = source.replace(self.old, self.new)
        if path.suffix == ".py":
            try:
                ast.parse(changed)
            except SyntaxError as error:
                raise StaleError(f"{self.file} is no Python with {self.new!r}: {error.msg}") from error
        return changed


class StaleError(Exception):
    """The code has changed: a mutant does not apply any more."""


def load(path: Path = LIST) -> tuple[Mutant, ...]:
    """The list, in its order. Raises ValueError for two mutants of one name."""
    rows: list[dict[str, Any]] = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    mutants = tuple(Mutant(**{**row, "tests": tuple(row["tests"])}) for row in rows)
    names = [mutant.name for mutant in mutants]
    if len(set(names)) < len(names):
        raise ValueError(f"two mutants are called {next(name for name in names if names.count(name) > 1)}")
    return mutants
