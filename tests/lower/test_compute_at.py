"""Producers inside and outside the reduce loops of their consumers."""

from __future__ import annotations

import pytest

from tests.lower.cases import ATTENTION, MLP, Case
from tilec.lower.compute_at import compute_at


def placed(case: Case, stepped: dict[str, list[str]], kept: tuple[str, ...] = (), parts=()) -> dict:
    s = case.setting()
    return compute_at(s, tuple(s.nodes), stepped, kept, parts)


@pytest.mark.feature("W09")
def test_a_producer_is_inside_if_its_window_varies() -> None:
    assert placed(MLP, {"Y": ["h"]}) == {"H": ("Y",), "G": ("Y",), "Y": ()}
    assert placed(MLP, {"H": ["k"]}) == {"H": (), "G": (), "Y": ()}


def test_loops_nest() -> None:
    case = Case(
        ["A[i, k] = X[i, k] * 2.0", "B[i, j] = sum(k, A[i, k] * W[k, j])", "C[i] = sum(j, B[i, j] * V[j])"],
        {"i": 4, "j": 6, "k": 8},
        {"X": (4, 8), "W": (8, 6), "V": (6,)},
    )
    assert placed(case, {"B": ["k"], "C": ["j"]}) == {"A": ("C", "B"), "B": ("C",), "C": ()}


def test_softmax_rows_stay_whole() -> None:
    """Only R is read by O alone; E is summed first, in front of the loop."""
    assert placed(ATTENTION, {"O": ["n"]}) == {"S": (), "X": (), "E": (), "Z": (), "R": ("O",), "O": ()}


def test_every_access_must_vary() -> None:
    case = Case(
        ["A[i] = X[i] * 2.0", "B[j] = sum(i, A[i] * A[j])"],
        {"i": 8, "j": 8},
        {"X": (8,)},
    )
    assert placed(case, {"B": ["i"]})["A"] == ()


def test_gathered_rows_do_not_vary_in_a_known_way() -> None:
    case = Case(
        ["A[i, j] = X[i, j] * 2.0", "B[j] = sum(i, A[I[i], j])"],
        {"i": 8, "j": 8},
        {"X": (8, 8), "I": (8,)},
        ttypes={"I": "i64"},
    )
    assert placed(case, {"B": ["i"]})["A"] == ()


def test_outputs_are_computed_as_a_whole() -> None:
    assert placed(MLP, {"Y": ["h"]}, kept=("G",)) == {"H": (), "G": (), "Y": ()}


def test_a_part_of_a_higher_level_stays_together() -> None:
    """G alone could live in the loop, but what runs with it is needed outside."""
    assert placed(MLP, {"Y": ["h"]}, kept=("H",), parts=[("H", "G")]) == {"H": (), "G": (), "Y": ()}
    assert placed(MLP, {"Y": ["h"]}, parts=[("H", "G")]) == {"H": ("Y",), "G": ("Y",), "Y": ()}
