"""Planned footprints; that they equal the machine's peaks is checked with every case of test_lowering."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lower.cases import MATMUL
from tests.lower.counts.test_traffic import toy
from tilec.ir.expr import Const, Var
from tilec.lower.counts.footprint import footprint


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
