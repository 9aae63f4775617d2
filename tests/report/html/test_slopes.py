"""Ski slopes of groups: through the bounds of the plan, found once for equal kernels."""

from dataclasses import replace

import pytest
from report.plans import base, plan

from tilec.bounds.einsum.oro_plus import oro_plus
from tilec.bounds.levels import LevelCapacity
from tilec.bounds.plan.groups import group_graph
from tilec.bounds.plan.plan_bounds import leasts, with_bounds
from tilec.report.html.slopes import slopes


def with_bounds_at(given, capacity=4096):
    return with_bounds(given, [LevelCapacity("smem", "dram", capacity, 8, None)], oro_plus)


@pytest.mark.feature("O01")
@pytest.mark.parametrize("capacity", [300, 4096, 100_000])
def test_a_slope_falls_and_passes_through_the_bounds_of_the_plan(capacity):
    given = with_bounds_at(base(), capacity)
    found, by_group = slopes(given, oro_plus)
    assert set(by_group) == {"r", "g", "y"}
    for group in given.groups:
        slope, bound = found[by_group[group.name]], group.bounds["smem"]
        assert list(slope.known) == sorted(slope.known)
        assert all(a[1] > b[1] for a, b in zip(slope.known, slope.known[1:], strict=False))
        at = [moved for size, moved in slope.known if size <= capacity]
        assert (at[-1] if at else None) == bound.known
        assert all(a[1] >= b[1] for a, b in zip(slope.proved, slope.proved[1:], strict=False))
        assert [moved for size, moved in slope.proved if size <= capacity][-1] == bound.least
        assert slope.proved[-1][0] == capacity
        graph = group_graph(given, group)
        assert [moved for _, moved in slope.proved] == leasts(graph, [size for size, _ in slope.proved])


def test_equal_kernels_share_a_slope():
    first = base().groups[0]
    given = with_bounds_at(plan(first, replace(first, name="again")))
    found, by_group = slopes(given, oro_plus)
    assert len(found) == 1
    assert by_group == {"r": 0, "again": 0}


def test_a_plan_without_bounds_has_none():
    assert slopes(base(), oro_plus) == ((), {})
