"""Any hierarchy of levels with capacities and pools: plan, verifier and machine agree on what fits and what moves, to
the byte."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.lower.cases import DRAM, MATMUL, SOFTMAX, Case
from tests.machine.test_random_plans import check, lowered
from tests.random_graphs import Case as Random
from tests.random_plans import ANY, cases
from tilec.ir.expr import Const
from tilec.ir.plan import PlanLevel, Pool
from tilec.ir.program import Program
from tilec.ir.verify.program import check_program
from tilec.lower.checks.check_plan import overflows
from tilec.lower.counts.footprint import footprint, pools_of
from tilec.machine import MachineError, execute


def tiles(pool: int) -> tuple[PlanLevel, ...]:
    """Four tiles whose memories together are the level below."""
    chip = PlanLevel("chip", None, pool=Pool("sram", pool, 4))
    return (DRAM, chip, PlanLevel("tile", None, 4, "explicit", "tile", pool=Pool("sram", pool)))


GROUPS = {
    "matmul": replace(
        MATMUL,
        tiles={"chip": {"Y": {"m": 20}}, "tile": {"Y": {"m": 5, "n": 10}}},
        steps={"tile": {"C": {"k": 4}}},
        connect={"C->Y": "tile"},
    ),
    "softmax": Case(SOFTMAX, {"m": 32, "n": 12}, {"S": (32, 12)}, {"chip": {"R": {"m": 16}}, "tile": {"R": {"m": 2}}}),
}
HOISTED = Case(
    ["S[m, n] = sum(k, A[m, k] * B[k, n])", *SOFTMAX],
    {"m": 32, "k": 8, "n": 12},
    {"A": (32, 8), "B": (8, 12)},
    {"chip": {"R": {"m": 16}}, "tile": {"R": {"m": 2}}},
)


@pytest.mark.feature("W08", "W30")
@pytest.mark.parametrize("name", GROUPS)
def test_levels_of_one_pool_share_it(name: str) -> None:
    """Each tile holds its share of the chip's buffers and its own: one byte less than both is too little."""

    def on(case: Case, pool: int) -> Program:
        return replace(case, levels=tiles(pool)).program()

    case = GROUPS[name]
    program = on(case, 1 << 20)
    held = footprint(program)
    chip, tile = (int(held[level].value) for level in ("chip", "tile"))  # type: ignore[union-attr]
    together = pools_of(program.body, program.levels)["sram"]
    assert isinstance(together, Const)
    need = int(together.value)
    assert max(-(-chip // 4), tile) < need <= -(-chip // 4) + tile + 8
    shapes = {name: tuple(map(int, shape)) for name, shape in case.inputs.items()}
    shapes |= {e.tensor: tuple(int(n.value) for n in e.shape) for e in case.nodes()}  # type: ignore[union-attr]
    fitting, small = on(case, need), on(case, need - 1)
    assert overflows(fitting) == ()
    assert check_program(fitting, shapes) == ()
    execute(fitting, case.arrays())
    (refusal,) = overflows(small)
    assert refusal.numbers == {"level": "pool sram", "bytes": need, "capacity": need - 1}
    assert f"pool sram: {need} bytes live at once" in check_program(small, shapes)[0]
    with pytest.raises(MachineError, match=f"pool sram to {need} bytes, its capacity is {need - 1}"):
        execute(small, case.arrays())


def test_loads_stay_where_the_pool_has_no_room() -> None:
    """A load that moves in front of a serial loop may cost the pool what another level needs."""
    roomy = replace(HOISTED, levels=tiles(1 << 20)).program()
    need = pools_of(roomy.body, roomy.levels)["sram"]
    assert isinstance(need, Const)
    tight = replace(HOISTED, levels=tiles(int(need.value) - 1)).program()
    assert tight.body != roomy.body
    assert overflows(tight) == ()


@st.composite
def bounded(draw: Callable, levels: tuple[PlanLevel, ...], program: Program) -> tuple[PlanLevel, ...]:
    """Explicit levels with capacities and pools around what the program needs of them."""
    held = footprint(program)
    first = draw(st.integers(1, len(levels)))
    last = draw(st.integers(first, len(levels)))
    found = []
    for place, level in enumerate(levels):
        need = int(held[level.name].value) if level.name in held else 0  # type: ignore[union-attr]
        capacity = draw(st.sampled_from((None, None, need, need + 1, max(0, need - 1), 1 << 40)))
        divided = 1
        for above in levels[place + 1 : last]:
            divided *= above.units
        shared = first <= place < last and level.managed == "explicit"
        found.append(replace(level, capacity=capacity, pool=Pool("pool", 1 << 40, divided) if shared else None))
    need = pools_of(program.body, [level for level in found if level.name in held]).get("pool", Const(0))
    assert isinstance(need, Const)
    size = max(0, int(need.value) + draw(st.sampled_from((-1, 0, 1))))
    return tuple(
        level if level.pool is None else replace(level, pool=replace(level.pool, capacity=size)) for level in found
    )


@pytest.mark.feature("W07", "W08", "W17", "W30")
@examples(35, seed=3)
@given(cases(operators=5, hierarchy=ANY), st.data())
def test_what_fits_runs_and_what_does_not_is_refused_by_all(case: Random, data: st.DataObject) -> None:
    levels = data.draw(bounded(case.plan.levels, lowered(case)))
    case = replace(case, plan=replace(case.plan, levels=levels))
    program = lowered(case)
    full = overflows(program)
    if not full:
        check(case)
        return
    problems = check_program(program, case.shapes)
    assert len(problems) == len(full)
    for number, problem in zip((refusal.numbers for refusal in full), problems, strict=True):
        held = re.search(r"(?:(\d+) bytes live at once|places end at byte (\d+)), its capacity is (\d+)", problem)
        assert held is not None
        assert [int(each) for each in held.groups() if each] == [number["bytes"], number["capacity"]]
    with pytest.raises(MachineError, match="its capacity is"):
        execute(program, case.arrays())
