"""Planned footprints; that they equal the machine's peaks is checked with every case of test_lowering."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lower.cases import MATMUL
from tests.lower.counts.test_traffic import toy
from tests.programs import buffer, load
from tilec.ir.expr import Const, Var
from tilec.ir.plan import PlanLevel, Pool
from tilec.lower.counts.footprint import footprint, pools_of


@pytest.mark.feature("W08")
def test_buffers_share_room_over_their_lifetimes() -> None:
    # The accumulator S of 4 x 128, beside one step of A (4 x 16) and B (16 x 128); later S, X, E and S, E, Z, R.
    assert footprint(toy(4).program()) == {"dram": Const(0), "shared": Const(4 * (4 * 128 + 4 * 16 + 16 * 128))}


@pytest.mark.feature("W08")
def test_pipeline_copies_count() -> None:
    once = footprint(MATMUL.program())["l2"]
    twice = footprint(replace(MATMUL, more={"copies": {"l2": {"A": 2}}}).program())["l2"]
    assert isinstance(once, Const)
    assert isinstance(twice, Const)
    assert twice.value == once.value + 25 * 20 * 4


@pytest.mark.feature("B06")
def test_symbols_stay() -> None:
    case = replace(
        MATMUL,
        extents={"m": 10, "n": Var("N"), "k": 20},
        inputs={"A": (10, 20), "B": (20, Var("N")), "b": (Var("N"),)},
        symbols=("N",),
        tiles={"reg": {"Y": {"m": 2, "n": 16}}},
    )
    held = footprint(case.program())["l2"]
    assert held != Const(0)
    assert "N" in repr(held)


@pytest.mark.feature("W08")
def test_levels_take_their_share_of_a_pool_rounded_up() -> None:
    """9 bytes of a level that 4 pools divide are 3 bytes of each, beside 5 of a level that has its own."""
    low, high = (PlanLevel(name, None, pool=Pool("sram", 100, n)) for name, n in (("low", 4), ("high", 1)))
    body = (*load(buffer("X_low", "low", "X[0:9]", "u8")), *load(buffer("X_high", "high", "X[0:5]", "u8"), "X_low"))
    assert pools_of(body, (PlanLevel("dram", None), low, high)) == {"sram": Const(3 + 5)}
