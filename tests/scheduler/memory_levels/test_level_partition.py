"""tier partition: orders, connected pieces, and the changes that are tried."""

from tilec.scheduler.memory_levels.level_partition import chained, changes, components, running_order

DIAMOND = [frozenset[int](), frozenset({0}), frozenset({0}), frozenset({1, 2}), frozenset[int](), frozenset({4})]


def test_chained_follows_branches() -> None:
    needs = [frozenset[int](), frozenset({0}), frozenset({0}), frozenset({1}), frozenset({2}), frozenset({3, 4})]
    assert chained(needs) == [0, 1, 3, 2, 4, 5]


def test_components() -> None:
    assert components(DIAMOND) == [(0, 1, 2, 3), (4, 5)]


def test_sets_that_wait_for_each_other_have_no_order() -> None:
    assert running_order(DIAMOND, [(0, 3), (1, 2), (4, 5)]) is None
    assert running_order(DIAMOND, [(1, 2, 3), (4, 5), (0,)]) == [2, 0, 1]


def test_every_edge_between_two_sets_is_tried() -> None:
    found = list(changes(DIAMOND, [(0, 1), (2, 3), (4, 5)]))
    pair = ((0, 1), (2, 3))
    assert (pair, ((0, 1, 2, 3),)) in found
    assert (pair, ((1,), (0, 2, 3))) in found
    assert (pair, ((3,), (0, 1, 2))) in found
    assert (pair, ((0,), (1, 2, 3))) in found
    assert (pair, ((2,), (0, 1, 3))) in found
    assert all(old == pair for old, _ in found)
    assert sum(len(new) == 1 for _, new in found) == 1
