"""Mutations of a kernel's text: a synchronisation less, other lanes, places one element off."""

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """A text with one change, of a kind, at a line from 1."""

    kind: str
    line: int
    text: str


CHANGES = (
    ("barrier dropped", r"t_barrier\(\);", ";"),
    ("wait too late", r"t_wait_copies<\d>\(\);", ";"),
    ("lanes swapped", r"lane / (\d+)\)", r"lane % \1)"),
    ("lanes swapped", r"lane % (\d+)\)", r"lane / \1)"),
    ("other partner", r"(t_shfl_xor\([^;]*), 16\)", r"\1, 8)"),
    (
        "pitch one less",
        r"(?<!\], )((?:LDS|STS)\d?\([^;]*\* )(\d\d+)\)",
        lambda found: f"{found[1]}{int(found[2]) - 1})",
    ),
    ("pitch one more", r"(ldmatrix4t?\([^;]*\* )(\d\d+)\)", lambda found: f"{found[1]}{int(found[2]) + 1})"),
    ("copy to another place", r"(t_copy\(\d+, )(\w+) \+", r"\1\2 + 4 +"),
    ("another stage", r"\((next\w*) % (\d)\)", r"((\1 + 1) % \2)"),
)
"""Kind, pattern, replacement; each of its places is a mutant. A maximum may be that of other elements: a softmax
takes it off all of them."""


def mutants(text: str) -> Iterator[Mutant]:
    """Every mutant of a text."""
    for kind, pattern, by in CHANGES:
        for found in re.finditer(pattern, text):
            changed = re.sub(pattern, by, found[0], count=1)
            yield Mutant(
                kind, text.count("\n", 0, found.start()) + 1, text[: found.start()] + changed + text[found.end() :]
            )
