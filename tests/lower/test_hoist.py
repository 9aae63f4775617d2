"""Invariant loads in front of serial loops."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests import programs
from tests.lower.cases import DRAM, MATMUL, SHARED, Case, check, loops
from tests.lower.counts.test_traffic import toy
from tests.programs import buffer, load
from tilec.ir.plan import PlanLevel
from tilec.ir.program import Allocate, Fill, LoadTiles
from tilec.lower.counts.traffic import traffic
from tilec.lower.hoist import hoisted

SERIAL = PlanLevel("shared", None)
TILED = Case(
    ["C[m, n] = sum(k, A[m, k] * B[k, n])"],
    {"m": 32, "n": 24, "k": 8},
    {"A": (32, 8), "B": (8, 24)},
    {"shared": {"C": {"m": 8, "n": 12}}},
    levels=(DRAM, SERIAL),
)


def loaded_in(case: Case) -> dict[str, str]:
    """Buffer -> innermost loop around its load."""
    program = case.program()
    nest = {s.target: "" for s in program.body if isinstance(s, LoadTiles)}
    for loop in loops(program.body):
        nest |= {s.target: loop.variable for s in loop.body if isinstance(s, LoadTiles)}
    return nest


def test_loads_stand_where_their_window_changes() -> None:
    assert loaded_in(TILED) == {"A_shared": "m_C_shared", "B_shared": "n_C_shared"}
    _, result = check(TILED)
    assert result.moved["shared"].read == (32 * 8 + 4 * 8 * 24) * 4
    whole = replace(TILED, tiles={"shared": {"C": {"m": 8}}})
    assert loaded_in(whole) == {"A_shared": "m_C_shared", "B_shared": ""}


@pytest.mark.feature("W07")
def test_nothing_leaves_a_spread_loop() -> None:
    spread = replace(TILED, levels=(DRAM, SHARED))
    assert set(loaded_in(spread).values()) == {"n_C_shared"}
    whole_steps = replace(toy(16), steps={})
    serial = traffic(replace(whole_steps, levels=(DRAM, SERIAL)).program())["shared"]
    assert traffic(whole_steps.program())["shared"].read - serial.read == (98304 // 16 - 1) * 64 * 128 * 4


def test_a_buffer_that_something_else_writes_stays() -> None:
    """Accumulators that go through a level are loaded in every step."""
    case = replace(
        MATMUL,
        texts=MATMUL.texts[:1],
        tiles={"reg": {"C": {"m": 10}}},
        steps={"l2": {"C": {"k": 8}}},
        connect={},
    )
    assert loaded_in(case)["C_reg"] == "m_C_reg"
    check(case)


def test_a_buffer_that_is_filled_anew_in_every_iteration_is_loaded_there_too() -> None:
    held = buffer("X_shared", "shared", "X[0:4]")
    refilled = (Allocate(held), Fill("X_shared", 0.0), LoadTiles("X_shared", "X"))
    for body, stays in ((refilled, True), (load(held), False)):
        (*front, last) = hoisted((programs.loop("i", 3, *body),), (DRAM, SERIAL))
        assert (front == []) is stays
        assert (last == programs.loop("i", 3, *body)) is stays


def test_a_level_that_would_overflow_keeps_its_loads_inside() -> None:
    texts = [
        "C[m, n] = sum(k, A[m, k] * B[k, n])",
        "D[m, p] = sum(n, C[m, n] * E[n, p])",
    ]
    case = replace(
        TILED,
        texts=texts,
        extents={**TILED.extents, "p": 16},
        inputs={**TILED.inputs, "E": (24, 16)},
        tiles={"shared": {"D": {"m": 8}}},
    )
    sizes = {"A": 8 * 8, "B": 8 * 24, "C": 8 * 24, "E": 24 * 16, "D": 8 * 16}
    inside = max(sizes["A"] + sizes["B"] + sizes["C"], sizes["C"] + sizes["E"] + sizes["D"]) * 4
    assert loaded_in(case)["E_shared"] == ""
    tight = replace(case, levels=(DRAM, PlanLevel("shared", inside)))
    assert loaded_in(tight)["E_shared"] == "m_D_shared"
    check(tight)
