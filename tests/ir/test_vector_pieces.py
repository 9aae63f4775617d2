"""Vectors that cover a width."""

import pytest

from tilec.ir.vector_pieces import vector_count, vector_pieces


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (32, [(0, 16), (16, 16)]),
        (23, [(0, 16), (16, 4), (20, 2), (22, 1)]),
        (7, [(0, 4), (4, 2), (6, 1)]),
        (1, [(0, 1)]),
        (0, []),
    ],
)
def test_pieces_cover_a_width_without_predicates(width: int, expected: list[tuple[int, int]]) -> None:
    assert list(vector_pieces(width, 16)) == expected
    assert vector_count(width, 16) == len(expected)
