"""Ancestry against a search over the edges, and parts that read each other."""

from random import Random

import pytest

from tilec.scheduler.analysis.reachability import Reachability


def reached(edges: dict[int, set[int]], start: int) -> set[int]:
    found: set[int] = set()
    waiting = [start]
    while waiting:
        new = edges[waiting.pop()] - found
        found |= new
        waiting += new
    return found


@pytest.mark.parametrize("seed", range(20))
def test_what_depends_on_what(seed: int) -> None:
    random = Random(seed)
    ancestry = Reachability()
    edges: dict[int, set[int]] = {}
    for part in range(12):
        ancestry.add()
        edges[part] = set()
        for reader in random.sample(range(part + 1), min(part + 1, 2)):
            producers = set(random.sample(range(part + 1), random.randint(0, min(part + 1, 2))))
            ancestry.read(reader, producers)
            edges[reader] |= producers
        for second in edges:
            below = reached(edges, second)
            assert [ancestry.leads(first, second) for first in edges] == [first in below for first in edges]


def test_parts_that_read_each_other_are_one() -> None:
    ancestry = Reachability()
    for _ in range(4):
        ancestry.add()
    ancestry.read(1, [0])
    ancestry.read(3, [2])
    assert not ancestry.leads(0, 3)
    ancestry.read(1, [2])
    ancestry.read(2, [1])
    assert ancestry.leads(1, 3)
    assert ancestry.leads(0, 3)
