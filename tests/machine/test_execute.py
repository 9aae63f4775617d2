"""The tile machine: right results, poison, capacities, byte counts, units in lockstep."""

import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tests.programs import (
    DRAM,
    SHARED,
    buffer,
    compute,
    convolution,
    copy_program,
    flash,
    load,
    loop,
    matmul,
    neighbours,
    rewrite,
    split,
    tensor,
    threads,
    whole,
    without,
)
from tilec.ir.expr import Const
from tilec.ir.plan import PlanLevel, Pool
from tilec.ir.program import Allocate, Barrier, Fill, LoadTiles, Loop, Program, Statement, StoreTiles
from tilec.ir.text import parse_expr
from tilec.ir.types import numpy_dtype
from tilec.machine import MachineError, Traffic, execute

machine = sys.modules["tilec.machine.execute"]
RNG = np.random.default_rng(3)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


A, B = normal(6, 12), normal(12, 8)


@pytest.mark.feature("W31")
@pytest.mark.parametrize("cores", [1, 2])
def test_matmul_with_shifted_tiles_and_reduce_steps(cores: int) -> None:
    result = execute(matmul(cores=cores), {"A": A, "B": B})
    np.testing.assert_allclose(result.outputs["C"], A @ B, rtol=1e-5, atol=1e-5)
    reads = 2 * (4 * 12 + 12 * 8) * 4
    assert result.moved == {"dram": Traffic(), "shared": Traffic(reads, 2 * 4 * 8 * 4)}
    assert result.peak["shared"] == 4 * (4 * 8 + 4 * 3 + 3 * 8)


@pytest.mark.parametrize("guarded", [False, True])
def test_a_staged_halo_and_a_guard_compute_the_same(guarded: bool) -> None:
    x, w = normal(9), normal(3)
    result = execute(convolution(guarded=guarded), {"X": x, "W": w})
    np.testing.assert_allclose(result.outputs["Y"], np.maximum(np.convolve(x, w[::-1], "same"), 0), rtol=1e-5)
    assert result.moved["shared"] == Traffic((3 + 5 + 6 + 2) * 4, 9 * 4)


def test_rescaled_softmax() -> None:
    q, k, v = normal(6, 5), normal(5, 12), normal(12, 3)
    result = execute(flash(), {"Q": q, "KT": k, "V": v})
    weights = np.exp(q.astype(float) @ k)
    np.testing.assert_allclose(result.outputs["Y"], weights / weights.sum(1, keepdims=True) @ v, rtol=1e-4)


@pytest.mark.feature("W30")
def test_statements_on_lower_levels_are_collective_and_own_ones_private() -> None:
    x = normal(4, 3)
    again = buffer("X_again", "shared", "X[i1:i1+1, 0:3]")
    result = execute(threads((*load(again, "X"), Barrier("thread"))), {"X": x})
    np.testing.assert_array_equal(result.outputs["T"], 2 * x)
    # X comes twice, once for all threads each time; every thread moves its own element once
    assert result.moved["shared"] == Traffic(2 * 4 * 3 * 4, 4 * 3 * 4)
    assert result.moved["reg"] == Traffic(4 * 3 * 4, 4 * 3 * 4)
    assert result.peak["reg"] == 8
    assert result.peak["shared"] == 3 * 4 * 3


def test_lockstep_shares_what_all_threads_stored() -> None:
    """Every thread stores before any of them reads its neighbour's element."""
    program = neighbours()
    x = normal(4)
    np.testing.assert_array_equal(execute(program, {"X": x}).outputs["Y"], 2 * np.roll(x, -1))
    serial = rewrite(program, lambda s: replace(s, kind="serial", scope="") if isinstance(s, Loop) else s)
    with pytest.raises(MachineError, match="never written"):
        execute(serial, {"X": x})


WAVES = {
    "matmul": (matmul(cores=2), {"A": (6, 12), "B": (12, 8)}),
    "convolution": (convolution(), {"X": (9,), "W": (3,)}),
    "flash": (flash(), {"Q": (6, 5), "KT": (5, 12), "V": (12, 3)}),
    "threads": (threads(()), {"X": (4, 3)}),
    "neighbours": (neighbours(), {"X": (4,)}),
    "split": (split(), {"A": (6,)}),
}


@pytest.mark.parametrize("name", WAVES)
def test_units_that_do_not_wait_for_each_other_may_run_one_by_one(monkeypatch, name: str) -> None:
    """What waits still runs at once: neighbours read what the others stored."""
    program, shapes = WAVES[name]
    arrays = {tensor: normal(*shape) for tensor, shape in shapes.items()}
    at_once = execute(program, arrays)
    monkeypatch.setattr(machine, "WAVE", 1)
    one_by_one = execute(program, arrays)
    assert (one_by_one.moved, one_by_one.peak) == (at_once.moved, at_once.peak)
    for output, array in at_once.outputs.items():
        np.testing.assert_allclose(one_by_one.outputs[output], array, rtol=1e-6)


def test_no_more_units_run_at_once_than_memory_has_room_for(monkeypatch) -> None:
    seen = []
    reserve = machine.reserve
    monkeypatch.setattr(machine, "reserve", lambda *given: seen.append(reserve(*given)) or seen[-1])
    x, program = {"X": np.zeros(32, np.float32)}, copy_program()
    (serial,) = program.body
    assert isinstance(serial, Loop)
    spread = replace(program, levels=(DRAM, SHARED), body=(replace(serial, kind="spread", scope="block"),))
    execute(spread, x, {"N": 32})
    assert max(len(held.codes) for held in seen) == 4
    del seen[:]
    a_tile = 8 * (4 + 1)  # elements and their marks
    monkeypatch.setattr(machine, "WAVE", 2 * 2 * a_tile)
    execute(spread, x, {"N": 32})
    assert max(len(held.codes) for held in seen) == 2


def doubled_by_all(place: str = "j2") -> Program:
    """Three threads a block, each of which has three threads scale the block's row once more; `place` tells which
    element a thread scales."""
    own = (
        buffer("X_again", "reg", f"X[i1:i1+1, {place}:{place}+1]"),
        buffer("U_r", "reg", f"U[i1:i1+1, {place}:{place}+1]"),
    )
    double = tensor("U[i, j] = X[i, j] * 2.0", {"i": 4, "j": 3})
    scale = compute(double, "U_r", "_again", i="i1:i1+1", j=f"{place}:{place}+1")
    inner = loop("j2", 3, *load(own[0], "X_s"), Allocate(own[1]), scale, StoreTiles("U_s", "U_r"), scope="thread")
    return threads((Allocate(buffer("U_s", "shared", "U[i1:i1+1, 0:3]")), inner))


@pytest.mark.parametrize(("place", "lanes"), [("j2", 4 * 3), ("j1", 4 * 3 * 3)])
def test_what_units_repeat_runs_once_and_counts_for_all(monkeypatch, place: str, lanes: int) -> None:
    seen = {}
    reserve = machine.reserve
    monkeypatch.setattr(machine, "reserve", lambda *given: seen.setdefault(given[0].name, reserve(*given)))
    x = normal(4, 3)
    result = execute(doubled_by_all(place), {"X": x})
    np.testing.assert_array_equal(result.outputs["T"], 2 * x)
    assert len(seen["X_again"].codes) == lanes
    once, by_all = 4 * 3 * 4, 4 * 3 * 3 * 4
    assert result.moved["reg"] == Traffic(once + by_all, once + by_all)


def test_no_unit_runs_where_there_is_nothing_to_do() -> None:
    program = copy_program()
    (serial,) = program.body
    assert isinstance(serial, Loop)
    spread = replace(program, levels=(DRAM, SHARED), body=(replace(serial, kind="spread", scope="block"),))
    result = execute(spread, {"X": np.zeros(0, np.float32)}, {"N": 0})
    assert result.outputs["Y"].shape == (0,)
    assert result.moved["shared"] == Traffic()


def test_units_combine_partial_sums() -> None:
    program = split()
    a = normal(6)
    np.testing.assert_allclose(execute(program, {"A": a}).outputs["R"], a.sum(), rtol=1e-5)
    with pytest.raises(MachineError, match="combines with elements"):
        execute(replace(program, body=program.body[1:]), {"A": a})


@pytest.mark.parametrize("n", [1, 7, 8, 19, 0])
@pytest.mark.parametrize("ttype", ["f32", "i8", "bool", "bf16"])
def test_symbolic_sizes_and_every_type(n: int, ttype: str) -> None:
    x = RNG.integers(0, 2, n).astype(numpy_dtype(ttype))
    result = execute(copy_program(ttype), {"X": x}, {"N": n})
    np.testing.assert_array_equal(result.outputs["Y"], x)
    assert result.moved["shared"] == Traffic(x.nbytes, x.nbytes)


def test_capacities_hold_for_explicit_levels_and_count_copies() -> None:
    x = {"X": normal(16)}
    assert execute(copy_program(capacity=64), x, {"N": 16}).peak["shared"] == 64
    with pytest.raises(MachineError, match="brings shared to 96 bytes, its capacity is 64"):
        execute(copy_program(copies=2), x, {"N": 16})
    assert execute(copy_program(copies=2, managed="implicit"), x, {"N": 16}).peak["shared"] == 96


def test_a_buffer_whose_last_use_is_over_leaves_room() -> None:
    """Three tiles in a row need two places."""
    names = ("X", "P", "Q", "Y")
    exprs = [tensor(f"{b}[i] = {a}[i] + 1.0", {"i": 4}) for a, b in pairwise(names)]
    buffers = [buffer(f"{t}_s", "shared", f"{t}[0:4]") for t in names]
    body: list[Statement] = [Allocate(b) for b in buffers]
    body += [LoadTiles("X_s", "X"), *(compute(e, f"{e.tensor}_s", "_s") for e in exprs), StoreTiles("Y", "Y_s")]
    levels = (DRAM, PlanLevel("shared", 32))
    program = Program("chain", levels, (), (whole("X", (4,)), whole("Y", (4,))), ("Y",), tuple(body))
    result = execute(program, {"X": np.zeros(4, np.float32)})
    assert result.outputs["Y"].tolist() == [3] * 4
    assert result.peak["shared"] == 32


def relay(low: PlanLevel, high: PlanLevel) -> Program:
    """Y = X + 1 over two levels, the lower of which holds X whole, the higher its first half."""
    expr = tensor("Y[i] = X[i] + 1.0", {"i": 4})
    body: list[Statement] = [*load(buffer("X_low", low.name, "X[0:8]"))]
    body += [*load(buffer("X_high", high.name, "X[0:4]"), "X_low"), Allocate(buffer("Y_high", high.name, "Y[0:4]"))]
    body += [compute(expr, "Y_high", "_high"), StoreTiles("Y", "Y_high")]
    return Program("relay", (DRAM, low, high), (), (whole("X", (8,)), whole("Y", (4,))), ("Y",), tuple(body))


def test_a_pool_holds_what_its_levels_hold_together() -> None:
    """32 bytes of a level that two pools divide are 16 of each, beside a tile of 16 bytes that is copied from there."""
    x = {"X": normal(8)}
    for capacity in (32, 31):
        low, high = (PlanLevel(n, None, pool=Pool("sram", capacity, many)) for n, many in (("low", 2), ("high", 1)))
        if capacity == 32:
            np.testing.assert_array_equal(execute(relay(low, high), x).outputs["Y"], x["X"][:4] + 1)
            continue
        with pytest.raises(MachineError, match="brings pool sram to 32 bytes, its capacity is 31"):
            execute(relay(low, high), x)


def test_what_was_never_written_is_poison_on_all_levels_that_it_is_copied_to() -> None:
    program = without(
        relay(PlanLevel("low", None), PlanLevel("high", None)),
        lambda s: isinstance(s, LoadTiles) and s.target == "X_low",
    )
    with pytest.raises(MachineError, match="reads elements that were never written"):
        execute(program, {"X": normal(8)})


class TestRefusals:
    def run(self, program: Program, message: str) -> None:
        with pytest.raises(MachineError, match=message):
            execute(program, {"A": A, "B": B})

    def test_a_dropped_load(self) -> None:
        program = without(matmul(), lambda s: isinstance(s, LoadTiles) and s.target == "B_s")
        self.run(program, "reads elements that were never written")

    def test_a_missing_fill(self) -> None:
        self.run(without(matmul(), lambda s: isinstance(s, Fill)), "accumulates into elements of C_s")

    def test_a_missing_store(self) -> None:
        self.run(without(matmul(), lambda s: isinstance(s, StoreTiles)), "48 of 48 elements of output C")

    def test_a_missing_iteration(self) -> None:
        program = rewrite(
            matmul(), lambda s: replace(s, extent=Const(1)) if isinstance(s, Loop) and s.variable == "m1" else s
        )
        self.run(program, "16 of 48 elements")

    def test_a_shrunk_window(self) -> None:
        def shrink(s: Statement) -> Statement:
            if isinstance(s, Allocate) and s.buffer.name == "A_s":
                b = s.buffer
                return Allocate(replace(b, hi=(b.hi[0], parse_expr("k1*3 + 2"))))
            return s

        self.run(rewrite(matmul(), shrink), "never written")

    def test_a_window_wider_than_its_reservation(self) -> None:
        def narrow(s: Statement) -> Statement:
            return (
                Allocate(replace(s.buffer, shape=(Const(3), Const(8))))
                if isinstance(s, Allocate) and s.buffer.name == "C_s"
                else s
            )

        self.run(rewrite(matmul(), narrow), r"window of C_s is \[4, 8\], only \[3, 8\]")

    def test_a_box_outside_the_tensor(self) -> None:
        program = rewrite(
            matmul(), lambda s: replace(s, extent=Const(5)) if isinstance(s, Loop) and s.variable == "k1" else s
        )
        self.run(program, "never written|leaves the extents")

    def test_a_buffer_of_another_unit(self) -> None:
        program = threads((), 3)
        (outer,) = program.body
        assert isinstance(outer, Loop)
        hoisted = Allocate(buffer("T_r", "reg", "T[i1:i1+1, 0:1]"))
        dropped = without(program, lambda s: isinstance(s, Allocate) and s.buffer.name == "T_r")
        (outer,) = dropped.body
        assert isinstance(outer, Loop)
        wrong = replace(dropped, body=(replace(outer, body=(hoisted, *outer.body)),))
        with pytest.raises(MachineError, match="T_r at reg does not exist here"):
            execute(wrong, {"X": normal(4, 3)})

    def test_wrong_arrays(self) -> None:
        with pytest.raises(MachineError, match="no array for parameter B"):
            execute(matmul(), {"A": A})
        with pytest.raises(MachineError, match=r"B is float32\[12, 8\], not float64\[12, 8\]"):
            execute(matmul(), {"A": A, "B": B.astype(np.float64)})

    def test_unbound_symbols_and_unknown_scopes(self) -> None:
        with pytest.raises(MachineError, match="symbol N has no value"):
            execute(copy_program(), {"X": normal(8)})
        program = rewrite(matmul(), lambda s: replace(s, kind="spread", scope="warp") if isinstance(s, Loop) else s)
        self.run(program, "no level has the scope warp")

    def test_integers_are_poisoned_too(self) -> None:
        program = without(copy_program("i8"), lambda s: isinstance(s, LoadTiles))
        with pytest.raises(MachineError, match="never written") as caught:
            execute(program, {"X": np.zeros(4, np.int8)}, {"N": 4})
        assert caught.value.place is not None
        assert caught.value.place.startswith("compute  Y_s[i] = X_s[i]")


def test_half_precision_accumulates_in_single_and_loads_convert() -> None:
    expr = tensor("R[i] = sum(k, A[i, k])", {"i": 1, "k": 64})
    body = (
        Allocate(buffer("R_s", "shared", "R[0:1]", "f32")),
        Fill("R_s", 0.0),
        loop(
            "k1",
            16,
            *load(buffer("A_s", "shared", "A[0:1, k1*4:k1*4+4]", "f16")),
            compute(expr, "R_s", "_s", True, k="k1*4:k1*4+4"),
        ),
        StoreTiles("R", "R_s"),
    )
    parameters = (whole("A", (1, 64), ttype="f16"), whole("R", (1,), ttype="f16"))
    program = Program("half", (DRAM, SHARED), (), parameters, ("R",), body)
    a = np.full((1, 64), 0.1, np.float16) + np.arange(64, dtype=np.float16)
    result = execute(program, {"A": a})
    assert result.outputs["R"].dtype == np.float16
    assert result.outputs["R"][0] == np.float16(a.astype(np.float64).sum())
