"""Barriers where units read or overwrite what others wrote, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lower.cases import CASES, CPU, DRAM, GPU, GPU_MATMUL, HOST, LANES, MATMUL, POOLED, check, loops
from tilec.ir.lifetimes import statements
from tilec.ir.plan import PlanLevel
from tilec.ir.program import Barrier, LoadTiles, Loop, StoreTiles
from tilec.lower.barriers import with_barriers


def kinds(body) -> list[str]:
    """What stands in a body, in order."""
    names = []
    for s in body:
        match s:
            case Barrier(scope):
                names.append(f"barrier {scope}")
            case LoadTiles(target, _):
                names.append(f"load {target}")
            case StoreTiles(target, source):
                names.append(f"store {source}")
            case Loop():
                names.append(f"loop {s.variable}")
    return names


@pytest.mark.feature("W34")
def test_a_step_waits_before_and_after_its_collective_loads() -> None:
    nest = {loop.variable: loop for loop in loops(GPU_MATMUL.program().body)}
    assert kinds(nest["k_C_shared"].body) == [
        "barrier thread",
        "load A_shared",
        "load B_shared",
        "barrier thread",
        "loop k_C_reg",
    ]
    assert kinds(nest["n_Y_shared"].body) == [
        "load b_shared",
        "load T_shared",
        "barrier thread",
        "loop m_Y_reg",
        "barrier thread",
        "store Y_shared",
    ]


@pytest.mark.feature("W34")
def test_producer_and_consumer_on_shared_memory() -> None:
    case = replace(
        POOLED,
        tiles={"shared": {"P": {"a": 3, "b": 4}}, "reg": {"L": {"w": 4}, "P": {"b": 2}}},
        steps={},
        levels=GPU,
        connect={"C->L": "reg", "L->P": "shared"},
    )
    program, _ = check(case)
    nest = {loop.variable: loop for loop in loops(program.body)}
    inner = kinds(nest["b_P_shared"].body)
    assert inner[inner.index("loop w_L_reg") + 1 :] == [
        "barrier thread",
        "loop b_P_reg",
        "barrier thread",
        "store P_shared",
    ]


def test_private_memory_needs_none() -> None:
    for name in ("attention", "convolution, ReLU and pooling with halo", "hidden layer in chunks"):
        assert CASES[name].levels == CPU
        assert not any(isinstance(s, Barrier) for s in statements(CASES[name].program().body))


def test_one_unit_needs_none() -> None:
    levels = (DRAM, PlanLevel("shared", None), PlanLevel("reg", None))
    assert not any(isinstance(s, Barrier) for s in statements(replace(GPU_MATMUL, levels=levels).program().body))


def test_kernels_wait_for_each_other() -> None:
    """Two loops over the cores that meet in main memory."""
    case = CASES["four levels"]
    assert case.levels == HOST
    (tiles,) = [loop for loop in loops(case.program().body) if loop.variable == "a_P_dram"]
    assert kinds(tiles.body).count("barrier core") >= 1
    meeting = [s for s in statements(tiles.body) if isinstance(s, Barrier)]
    assert {s.scope for s in meeting} == {"core"}


def test_the_widest_scope_is_enough() -> None:
    levels = (DRAM, PlanLevel("shared", None, 4, scope="block"), LANES)
    case = replace(MATMUL, levels=levels, tiles={}, steps={}, connect={"C->Y": "dram"})
    program, _ = check(case)
    outer = [s for s in program.body if isinstance(s, Barrier | Loop)]
    assert [s.scope for s in outer] == ["block", "block", "block"]
    assert isinstance(outer[1], Barrier)


def test_a_finished_program_gets_no_more() -> None:
    program = GPU_MATMUL.program()
    assert with_barriers(program.body, program.parameters, program.levels) == program.body
