"""Cases of a test that only `make test-all` runs, as its markers say: others tell nearly the same in less time."""

from collections import defaultdict
from collections.abc import Iterable

import pytest

UNKNOWN = pytest.StashKey[list[str]]()
"""Where a run keeps the cases that markers name and no test has."""


def mark_slow(items: Iterable[pytest.Item]) -> list[str]:
    """Give cases that `slow_cases` names, or `quick_cases` does not, the marker `slow`; ids that no case has."""
    tests = defaultdict(list)
    for item in items:
        if item.get_closest_marker("slow_cases") or item.get_closest_marker("quick_cases"):
            tests[item.nodeid.partition("[")[0]].append(item)
    unknown = []
    for test, cases in tests.items():
        quick, slow = (_named(cases[0], marker) for marker in ("quick_cases", "slow_cases"))
        for case in cases:
            if _id(case) in slow or (quick and _id(case) not in quick):
                case.add_marker(pytest.mark.slow)
        unknown += [f"{test}[{each}]" for each in (quick | slow) - {_id(case) for case in cases}]
    return unknown


def _named(item: pytest.Item, marker: str) -> set[str]:
    return {name for each in item.iter_markers(marker) for name in each.args}


def _id(case: pytest.Item) -> str:
    return case.nodeid.partition("[")[2].removesuffix("]")
