"""Connected parts and their order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lower.cases import ATTENTION, POOLED, Case
from tilec.lower.connected_parts import connected_parts


@pytest.mark.feature("W02", "W10", "W15", "W18")
def test_parts_of_every_level() -> None:
    s = POOLED.setting()
    part = tuple(s.nodes)
    assert connected_parts(s, part, 1) == (("C", "L", "P"),)
    assert connected_parts(s, part, 2) == (("C", "L"), ("P",))
    assert connected_parts(s, part, 3) == (("C",), ("L",), ("P",))


def test_producers_come_first_even_if_their_part_ends_later() -> None:
    case = Case(
        ["A[i] = X[i] * 2.0", "B[i] = A[i] + 1.0", "C[i] = A[i] * 3.0", "D[i] = B[i] - 1.0", "E[i] = C[i] + D[i]"],
        {"i": 4},
        {"X": (4,)},
        connect={"A->B": "l2", "A->C": "reg", "B->D": "reg", "C->E": "l2", "D->E": "l2"},
    )
    assert connected_parts(case.setting(), ("A", "B", "C", "D", "E"), 2) == (("A", "C"), ("B", "D"), ("E",))


@pytest.mark.feature("W15")
def test_edges_without_a_level_are_not_connected() -> None:
    whole = ATTENTION.setting()
    s = replace(whole, connect={e: level for e, level in whole.connect.items() if e not in ("S->X", "S->E")})
    assert connected_parts(s, tuple(s.nodes), 1) == (("S",), ("X", "E", "Z", "R", "O"))
