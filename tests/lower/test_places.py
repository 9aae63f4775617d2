"""Places of buffers: apart while they live together, aligned, best fit; barriers where units reuse them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

from tests.examples import examples
from tests.lower.cases import GPU, LANES, SOFTMAX, Case
from tests.machine.test_random_plans import lowered
from tests.programs import DRAM, buffer, compute, load, loop, tensor, whole, without
from tests.random_graphs import Case as Random
from tests.random_plans import ANY, cases
from tilec.ir.address_spaces import places
from tilec.ir.concurrency import iterations_per_unit
from tilec.ir.expr import Const
from tilec.ir.lifetimes import lifetimes, statements
from tilec.ir.plan import PlanLevel, Pool
from tilec.ir.program import Allocate, Barrier, Buffer, Fill, Loop, Program, Statement, StoreTiles
from tilec.ir.text import text_of
from tilec.ir.verify.program import check_program
from tilec.lower.counts.footprint import footprint, footprint_of, pools_of
from tilec.lower.places import with_places, with_places_and_barriers
from tilec.machine import MachineError, execute

SHARED = PlanLevel("shared", None, alignment=16)


def lives(*of: tuple[str, int | str, int, int], level: str = "shared", **options: object) -> tuple[Statement, ...]:
    """A body whose buffers (name, elements of one byte, first use, last use) are filled when they are born and when
    they die."""
    buffers = [buffer(name, level, f"{name}[0:{n}]", "u8", **options) for name, n, _, _ in of]
    used = sorted((step, name) for name, _, born, dies in of for step in (born, dies))
    return (*map(Allocate, buffers), *(Fill(name, 0) for _, name in used))


def offsets(body: tuple[Statement, ...]) -> dict[str, str]:
    inner = (s.buffer for s in statements(body) if isinstance(s, Allocate))
    return {b.name: "none" if b.offset is None else text_of(b.offset) for b in inner}


def together(body: tuple[Statement, ...], around: frozenset[str] = frozenset()) -> set[frozenset[str]]:
    """The sets of buffers that are alive during some statement."""
    life, alive, found = lifetimes(body), set(around), set[frozenset[str]]()
    for statement, born, dying in zip(body, life.born, life.dying, strict=True):
        alive |= set(born)
        found.add(frozenset(alive))
        if isinstance(statement, Loop):
            found |= together(statement.body, frozenset(alive))
        alive -= set(dying)
    return found


@pytest.mark.feature("W08")
@examples(40, seed=7)
@given(cases(operators=4, hierarchy=ANY))
def test_buffers_that_live_together_are_apart_and_aligned(case: Random) -> None:
    program = lowered(case)
    buffers = {s.buffer.name: s.buffer for s in statements(program.body) if isinstance(s, Allocate)}
    placed = places(buffers.values(), program.levels, iterations_per_unit(program.body, program.levels))
    addressed = {level.name: level.alignment for level in program.levels if level.alignment is not None}
    used = frozenset[str]().union(*together(program.body))
    assert placed.keys() == {name for name in used if buffers[name].level in addressed}
    ends = dict.fromkeys(addressed, 0)
    spans = {name: (int(p.begin.value), int(p.end.value)) for name, p in placed.items()}  # type: ignore[union-attr]
    for name, (begin, end) in spans.items():
        level = buffers[name].level
        assert begin % addressed[level] == 0
        ends[level] = max(ends[level], end)
    for alive in together(program.body):
        for level in addressed:
            there = sorted(spans[name] for name in alive if name in spans and buffers[name].level == level)
            there = [(begin, end) for begin, end in there if begin < end]
            assert all(end <= begin for (_, end), (begin, _) in pairwise(there))
    held = footprint(program)
    assert {level: held[level] for level in addressed} == {level: Const(end) for level, end in ends.items()}


@pytest.mark.feature("W08", "W38")
def test_the_smallest_gap_is_taken() -> None:
    """Gaps of 48 and 32 lines, in this order, hold 32 + 24 + 24 only where the first of them takes the second."""
    lines = {"first": (100, 0, 5), "before": (48, 0, 1), "between": (40, 0, 5), "behind": (32, 0, 1), "end": (32, 0, 5)}
    late = {"x": (32, 3, 5), "y": (24, 3, 5), "z": (24, 3, 5)}
    body = lives(*((name, 16 * n, born, dies) for name, (n, born, dies) in (lines | late).items()))
    assert footprint_of(with_places(body, (DRAM, SHARED)), (DRAM, SHARED)) == {"shared": Const(16 * 252)}


def test_copies_and_concurrent_iterations_lie_side_by_side_aligned() -> None:
    """5 bytes take 16; a pipelined buffer holds its copies all the time; two iterations of a unit that wait for each
    other hold theirs at once."""
    placed = with_places(lives(("a", 5, 0, 1), ("b", 5, 2, 3)), (DRAM, SHARED))
    assert offsets(placed) == {"a": "0", "b": "0"}
    placed = with_places(lives(("a", 5, 0, 1), ("b", 5, 2, 3), copies=2), (DRAM, SHARED))
    assert offsets(placed) == {"a": "0", "b": "32"}
    units = PlanLevel("unit", None, 2, scope="unit", alignment=16)
    exchange = (
        *load(buffer("X_u", "unit", "X[i:i+1]"), "X"),
        StoreTiles("T", "X_u"),
        *load(buffer("T_u", "unit", "T[i:i+1]"), "T"),
        StoreTiles("T", "T_u"),
        StoreTiles("X", "X_u"),
    )
    parameters = (whole("X", (4,)), whole("T", (4,)))
    (spread,) = with_places_and_barriers((loop("i", 4, *exchange, scope="unit"),), parameters, (DRAM, units))
    assert isinstance(spread, Loop)
    assert Barrier("unit") in spread.body
    assert offsets((spread,)) == {"X_u": "0", "T_u": "32"}
    assert footprint_of((spread,), (DRAM, units)) == {"unit": Const(2 * 2 * 16)}


def test_symbolic_sizes_share_places_where_that_holds_for_all_of_them() -> None:
    sizes = {"A": "N", "B": "N", "C": "N", "D": "M"}
    of = [(name, f"{n}", born, born + 2) for born, (name, n) in zip((0, 1, 3, 4), sizes.items(), strict=True)]
    body = with_places((*lives(("c", 40, 0, 5)), *lives(*of)), (DRAM, SHARED))
    rounded = "(N + 15)//16*16"
    assert offsets(body)["A"] == "0"
    assert offsets(body)["C"] == "0"
    assert offsets(body)["B"].replace(" ", "") == rounded.replace(" ", "")
    assert "N" in offsets(body)["D"]


def test_levels_of_a_pool_lie_in_it() -> None:
    """A buffer of the level that four pools hold takes a quarter of each, beside those of the level with its own."""
    low = PlanLevel("low", None, pool=Pool("sram", 1 << 20, 4), alignment=4)
    high = PlanLevel("high", None, 4, scope="tile", pool=Pool("sram", 1 << 20), alignment=8)
    body = (*lives(("L", 100, 0, 5), level="low"), *lives(("H", 100, 0, 1), level="high"))
    placed = with_places(body, (DRAM, low, high))
    assert pools_of(placed, (DRAM, low, high)) == {"sram": Const(104)}
    both = (*lives(("L", 100, 0, 5), level="low")[:-1], *lives(("H", 100, 0, 1), level="high"), Fill("L", 0))
    placed = with_places(both, (DRAM, low, high))
    assert pools_of(placed, (DRAM, low, high)) == {"sram": Const(32 + 104)}


def test_registers_and_caches_have_no_places() -> None:
    for level in (LANES, PlanLevel("shared", None, managed="implicit")):
        body = lives(("a", 5, 0, 1), level=level.name)
        assert with_places(body, (DRAM, level)) == body


REUSE = Case(
    SOFTMAX,
    {"m": 32, "n": 12},
    {"S": (32, 12)},
    {"shared": {"R": {"m": 16}}, "reg": {name: {"m": 1} for name in "XEZR"}},
    levels=GPU,
)


def reuse(alignment: int | None) -> Program:
    """Threads of a block double a row of A, then one of B, whose tile may lie where that of A was."""
    levels = (
        DRAM,
        PlanLevel("shared", 64, 4, scope="block", alignment=alignment),
        PlanLevel("reg", 64, 4, "explicit", "thread"),
    )
    body: list[Statement] = []
    for name, result in (("A", "T"), ("B", "U")):
        double = tensor(f"{result}[i, j] = {name}[i, j] * 2.0", {"i": 4, "j": 4})
        at, j = f"{result}j", f"{result}j : {result}j + 1"
        body += load(buffer(f"{name}_s", "shared", f"{name}[i:i+1, 0:4]"))
        inner = (
            *load(buffer(f"{name}_r", "reg", f"{name}[i:i+1, {j}]"), f"{name}_s"),
            Allocate(buffer(f"{result}_r", "reg", f"{result}[i:i+1, {j}]")),
            compute(double, f"{result}_r", "_r", i="i:i+1", j=j),
            StoreTiles(result, f"{result}_r"),
        )
        body.append(loop(at, 4, *inner, scope="thread"))
    parameters = tuple(whole(name, (4, 4)) for name in "ABTU")
    nest = with_places_and_barriers((loop("i", 4, *body, scope="block"),), parameters, levels)
    return Program("reuse", levels, (), parameters, ("T", "U"), nest)


@pytest.mark.feature("B24")
def test_offsets_of_a_whole_network_stay_short() -> None:
    """Each tensor lives with the one before, and its size is incomparable to theirs."""
    sizes = [f"n * {100 + 37 * step % 1000} + {7919 * step % 5000}" for step in range(120)]
    body = lives(*((f"t{step}", size, step, step + 2) for step, size in enumerate(sizes)))
    placed = with_places(body, (SHARED,))
    assert max(len(text) for text in offsets(placed).values()) < 1000
    assert len(text_of(footprint_of(placed, (SHARED,))["shared"])) < 1000


@pytest.mark.feature("W08", "W34")
def test_units_wait_before_they_reuse_a_place() -> None:
    """Without the barrier the verifier names both buffers, and the machine leaves poison where bytes were in use."""
    shapes = dict.fromkeys("ABTU", (4, 4))
    arrays = {name: np.arange(16, dtype=np.float32).reshape(4, 4) for name in "AB"}
    placed, apart = reuse(16), reuse(None)
    barriers = {p: [s for s in statements(p.body) if isinstance(s, Barrier)] for p in (placed, apart)}
    assert footprint(placed)["shared"] == footprint(apart)["shared"] == Const(16)
    assert len(barriers[placed]) == len(barriers[apart]) + 1
    assert check_program(placed, shapes) == ()
    np.testing.assert_array_equal(execute(placed, arrays).outputs["U"], arrays["B"] * 2)
    racing = without(placed, lambda s: s is barriers[placed][1])
    assert check_program(racing, shapes) == (
        "load     B_s from B: units of thread may still read A_s, where B_s lies, a barrier is missing",
    )
    with pytest.raises(MachineError, match="never written") as caught:
        execute(racing, arrays)
    assert caught.value.hint == "B_s was written where other units may still use A_s."


@pytest.mark.feature("W08")
def test_a_wrong_place_gives_wrong_bytes() -> None:
    """Every buffer of a single unit moved onto the first one: the verifier names the pairs, the machine finds
    poison."""
    program = replace(REUSE, levels=(DRAM, SHARED, PlanLevel("reg", None))).program()

    def first(b: Buffer) -> Buffer:
        return b if b.offset is None else replace(b, offset=Const(0))

    wrong = replace(program, body=_changed(program.body, first))
    assert any("live together and overlap in shared" in p for p in check_program(wrong, {}))
    with pytest.raises(MachineError, match="never written") as caught:
        execute(wrong, {"S": np.zeros((32, 12), np.float32)})
    assert caught.value.hint == "X_shared was written where S_shared lies."


def _changed(body: tuple[Statement, ...], change: object) -> tuple[Statement, ...]:
    result: list[Statement] = []
    for s in body:
        if isinstance(s, Allocate):
            result.append(Allocate(change(s.buffer)))  # type: ignore[operator]
        else:
            result.append(replace(s, body=_changed(s.body, change)) if isinstance(s, Loop) else s)
    return tuple(result)
