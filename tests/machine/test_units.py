"""Lanes: positions of spread loops, the instances that serve them, and those that are treated alike."""

import numpy as np
import pytest

from tilec.ir.text import parse_expr
from tilec.machine import units
from tilec.machine.units import Lanes, alike, integers, pieces, region_text, volumes


def two_loops() -> Lanes:
    """Two blocks, the second of which has fewer threads."""
    return Lanes().spread("block", np.array([2]), 1).spread("thread", np.array([3, 1]), 3)


def test_a_lane_is_one_position_of_all_loops():
    lanes = two_loops()
    assert lanes.count == 4
    assert {name: column.tolist() for name, column in lanes.values.items()} == {
        "block": [0, 0, 0, 1],
        "thread": [0, 1, 2, 0],
    }


def test_lower_levels_have_one_instance_for_many_lanes():
    lanes = two_loops()
    assert (lanes.names(0), lanes.names(2), lanes.names(3)) == ((), ("block",), ("block", "thread"))
    assert [lanes.instances(level).count for level in (0, 1, 2, 3)] == [1, 2, 2, 4]
    assert lanes.instances(2).values["block"].tolist() == [0, 1]
    assert lanes.instances(3) is lanes
    assert lanes.codes(2).tolist() == [0, 0, 0, 1]
    assert len(set(lanes.codes(3).tolist())) == 4


def test_instances_of_an_inner_loop_of_lower_units_are_told_apart():
    lanes = Lanes().spread("thread", np.array([2]), 3).spread("block", np.array([3, 3]), 1)
    assert lanes.instances(1).values["block"].tolist() == [0, 1, 2]
    assert lanes.instances(3).count == 6


def test_chosen_lanes_keep_their_codes():
    lanes = two_loops()
    assert lanes.chosen(np.array([False, True, False, True])).codes(3).tolist() == lanes.codes(3)[[1, 3]].tolist()


@pytest.mark.parametrize("rows", [[], [[1, 2]], [[1, 2], [1, 2]], [[3, -1], [0, 5], [3, -1], [0, 5], [3, 0]]])
def test_equal_rows_are_found_together(rows):
    found = [tuple(map(int, some)) for some in alike(np.array(rows, np.int64).reshape(-1, 2))]
    expected: dict[tuple[int, ...], list[int]] = {}
    for position, row in enumerate(rows):
        expected.setdefault(tuple(row), []).append(position)
    assert sorted(found) == sorted(map(tuple, expected.values()))


def test_scalars_are_all_alike():
    assert [some.tolist() for some in alike(np.zeros((3, 0), np.int64))] == [[0, 1, 2]]
    assert [some.tolist() for some in pieces(np.zeros((2, 0), np.int64))] == [[0, 1]]


def test_pieces_stay_small_and_leave_out_what_is_empty(monkeypatch):
    monkeypatch.setattr(units, "MAX_ELEMENTS", 10)
    widths = np.array([[2, 2], [2, 2], [0, 4], [2, 2], [9, 9], [-1, 3]])
    assert [some.tolist() for some in pieces(widths)] == [[0, 1], [3], [4]]
    reduced = np.array([[2, 0], [0, 2], [2, 0]])
    assert [some.tolist() for some in pieces(reduced, rank=1)] == [[0, 2]]


def test_integers_are_one_row_a_lane():
    lane = {"i": np.array([0, 1, 2]), "n": 7}
    exprs = [parse_expr("i * 4"), parse_expr("minimum(i * 4 + 4, n)"), parse_expr("3")]
    assert integers(exprs, lane, 3).tolist() == [[0, 4, 3], [4, 7, 3], [8, 7, 3]]
    assert integers([], lane, 3).shape == (3, 0)
    with pytest.raises(KeyError):
        integers([parse_expr("j")], lane, 3)


def test_volumes_and_texts_of_regions():
    assert volumes(np.array([[2, 3], [2, -1], [0, 5]])).tolist() == [6, 0, 0]
    assert volumes(np.zeros((2, 0), np.int64)).tolist() == [1, 1]
    assert region_text(np.array([0, 2]), np.array([4, 3])) == "[(0, 4), (2, 3)]"
