"""Cases that only `make test-all` runs, because others of the same test say nearly the same in less time."""

from collections.abc import Iterable
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("slow_cases.txt")
"""Their ids, one a line, as pytest prints them."""


def slow_cases(path: Path = LIST) -> frozenset[str]:
    """The ids of the list."""
    return frozenset(path.read_text(encoding="utf-8").split("\n")) - {""}


def mark_slow(items: Iterable[pytest.Item]) -> None:
    """Give the cases of the list the marker `slow`."""
    slow = slow_cases()
    for item in items:
        if item.nodeid in slow:
            item.add_marker(pytest.mark.slow)
