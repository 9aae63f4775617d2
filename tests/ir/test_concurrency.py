"""Buffers of iterations that wait for each other are held at once where units run several of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lower.cases import DRAM, GPU_MATMUL, Case
from tilec.errors import TilecError
from tilec.ir.concurrency import iterations_per_unit
from tilec.ir.expr import Const
from tilec.ir.plan import PlanLevel
from tilec.ir.program import Program
from tilec.ir.verify.program import check_program
from tilec.lower.counts.footprint import footprint
from tilec.machine import execute

STEPS = Case(
    ["C[m, n] = sum(k, A[m, k] * B[k, n])"],
    {"m": 16, "n": 8, "k": 6},
    {"A": (16, 6), "B": (6, 8)},
    {"shared": {"C": {"m": 8}}, "reg": {"C": {"m": 2, "n": 4}}},
    {"shared": {"C": {"k": 2}}, "reg": {"C": {"k": 1}}},
)
"""Two blocks of 4 x 2 threads that load a step of 2 together."""


def program(case: Case, threads: int, capacity: int | None = None) -> Program:
    shared = PlanLevel("shared", None, 1, "explicit", "block")
    levels = (DRAM, replace(shared, units=2), PlanLevel("reg", capacity, threads, "explicit", "thread"))
    return replace(case, levels=levels).program()


def often(case: Case, threads: int) -> set[str]:
    made = program(case, threads)
    counts = iterations_per_unit(made.body, made.levels)
    assert {name.split("_")[1] for name in counts} <= {"reg"}
    return {str(count.value) for count in counts.values() if isinstance(count, Const)}


@pytest.mark.feature("W08", "W31")
def test_threads_that_load_together_hold_all_their_tiles() -> None:
    assert often(STEPS, 8) == set()
    assert often(STEPS, 4) == {"2"}
    assert often(STEPS, 3) == {"3"}
    assert iterations_per_unit(program(GPU_MATMUL, 2000).body, program(GPU_MATMUL, 2000).levels) == {}


def test_threads_that_need_not_wait_take_turns() -> None:
    alone = replace(STEPS, steps={"reg": {"C": {"k": 1}}})
    assert often(alone, 3) == set()


@pytest.mark.feature("W08")
def test_planned_verified_and_measured_alike() -> None:
    # An accumulator of 2 x 4, a column of A and a row of B for each of two turns.
    need = 2 * (8 + 2 + 4) * 4
    shapes = {"A": (16, 6), "B": (6, 8), "C": (16, 8)}
    assert footprint(program(STEPS, 4))["reg"] == Const(need)
    fitting, small = program(STEPS, 4, need), program(STEPS, 4, need - 1)
    assert check_program(fitting, shapes) == ()
    assert execute(fitting, STEPS.arrays()).peak["reg"] == need
    assert check_program(small, shapes) == (f"level reg: {need} bytes live at once, its capacity is {need - 1}",)
    with pytest.raises(TilecError, match=f"to {need} bytes, its capacity is {need - 1}"):
        execute(small, STEPS.arrays())
