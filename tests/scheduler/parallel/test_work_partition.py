"""stretches: an order of parts in pieces of about the same work."""

from itertools import pairwise
from unittest import mock

import pytest
from scheduler.graphs import make_graph
from scheduler.running import problem_of, tiny

from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.parallel import work_partition as dividing
from tilec.scheduler.parallel.work_partition import partition_work
from tilec.scheduler.target_model import target_model_of

TINY = target_model_of(tiny())


def products(widths: list[int]) -> FusionProblem:
    """Products in a row; those of equal width are alike."""
    nodes = [
        (f"x{n + 1}[s, k] = sum(n, x{n}[s, n] * w{n}[n, k])", {"s": 8, "n": a, "k": b})
        for n, (a, b) in enumerate(pairwise(widths))
    ]
    shapes = {f"w{n}": (a, b) for n, (a, b) in enumerate(pairwise(widths))}
    return problem_of(make_graph({"x0": (8, widths[0])} | shapes, nodes, [f"x{len(widths) - 1}"]), TINY)


@pytest.mark.parametrize("most", [1, 2, 3, 7])
def test_stretches_are_all_parts_in_order(most: int) -> None:
    problem = products(list(range(3, 43)))
    with mock.patch.object(dividing, "MIN_PARTS", 1):
        found = partition_work(problem, most)
    assert [n for own in found for n in own] == list(range(39))
    assert len(found) == most
    assert max(map(len, found)) - min(map(len, found)) <= len(found)


def test_what_is_alike_is_no_work_the_second_time() -> None:
    problem = products([8] * 40 + list(range(9, 49)))
    with mock.patch.object(dividing, "MIN_PARTS", 1):
        first, second = partition_work(problem, 2)
    assert len(first) > 1.3 * len(second)


def test_little_work_is_not_divided() -> None:
    assert partition_work(products(list(range(3, 9))), 8) == (range(5),)
    assert partition_work(products([3, 4]), 8) == (range(1),)


def test_what_stays_together_is_in_one_stretch() -> None:
    problem = products(list(range(3, 43)))
    vars(problem)["together"] = frozenset(range(10, 30))
    with mock.patch.object(dividing, "MIN_PARTS", 1):
        starts = [own.start for own in partition_work(problem, 8)]
    assert not set(starts) & set(range(11, 30))
    assert len(starts) > 1
