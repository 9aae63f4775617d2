"""What others touch in the next task: what is fetched, to read or to write, by which reduction, and by kernels."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from itertools import product as every

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.codegen.cpu.passes.test_prefetch_operands import offsets
from tests.codegen.cpu.running import AVX2, AVX512, NEON
from tests.lower.cases import Case
from tilec.codegen.cpu.emit.emit_kernel import emit
from tilec.codegen.cpu.kernel_ir import Array, Dim, For, If, KernelIR, ParallelNest, Prefetch, Step, Tile, tiles
from tilec.codegen.cpu.passes.prefetch_next_task import prefetch_next_task
from tilec.codegen.cpu.target import CpuTarget
from tilec.ir.expr import Access, Binary, Const, Var
from tilec.ir.program import Combine
from tilec.ir.text import parse_expr
from tilec.spec.machine_costs import CpuCosts

COSTS = CpuCosts()
COLUMNS = 64
TASK = 128 * COLUMNS


def written(offset: str, combine: Combine = "none", rows: int = 128) -> Tile:
    """A tile of `rows` that writes y, whose offset is given."""
    dims = (Dim("i", Const(rows)), Dim("j", Const(COLUMNS)))
    return Tile(dims, (), None, parse_expr(f"h[i * {COLUMNS} + j]"), Access("y", (parse_expr(offset),)), "f32", combine)


def summed(steps: int) -> Tile:
    """A reduction into scratch memory."""
    value, target = parse_expr("x[i] * w[k]"), Access("h", (Var("i"),))
    return Tile((Dim("i", Const(8)),), (Dim("k", Const(steps)),), "sum", value, target, "f32")


def loop(name: str, rounds: int, *body: Step) -> For:
    return For(name, Const(0), Const(rounds), body)


def fetched(
    *body: Step, spread: tuple[tuple[str, int], ...] = (("t", 5),), costs: CpuCosts = COSTS
) -> list[tuple[Prefetch, ...]]:
    """What the tiles of a task fetch."""
    memories = tuple(Array(name, "f32", 1 << 20, "operand") for name in "xwyz")
    tree = prefetch_next_task(KernelIR("k", memories, (ParallelNest(spread, body),), 0), costs, {"y"})
    return [tile.ahead for tile in tiles(tree.nests[0].body)]


def read(offset: str, rows: int = 128) -> Tile:
    """A tile that copies `rows` of z, whose offset is given, to scratch memory."""
    dims = (Dim("i", Const(rows)), Dim("j", Const(COLUMNS)))
    return Tile(dims, (), None, parse_expr(f"z[{offset}]"), Access("h", (parse_expr(f"i * {COLUMNS} + j"),)), "f32")


def test_the_longest_reduction_fetches_what_others_read_in_the_next_task() -> None:
    body = (read(f"t * {TASK} + i * {COLUMNS} + j"), summed(8), loop("c", 4, summed(4)))
    first, short, (ahead,) = fetched(*body)
    assert (first, short) == ((), ())
    assert (ahead.memory, ahead.written, ahead.loops) == ("z", False, (("c", 0, 4),))
    assert offsets(ahead, t=3) == set(range(4 * TASK, 5 * TASK))


def test_what_a_reduction_reads_before_is_near() -> None:
    reduction = replace(summed(8), value=parse_expr("z[t * 8 + i] * w[k]"))
    copy = read(f"t * {TASK} + i * {COLUMNS} + j")
    assert not any(fetched(reduction, copy))
    assert any(fetched(copy, reduction))


def test_the_longest_reduction_fetches_what_the_next_task_writes() -> None:
    body = (summed(8), loop("c", 4, summed(4)), written(f"t * {TASK} + i * {COLUMNS} + j"))
    short, (ahead,), last = fetched(*body)
    assert (short, last) == ((), ())
    assert (ahead.memory, ahead.written, ahead.run, ahead.count) == ("y", True, TASK, 1)
    assert ahead.loops == (("c", 0, 4),)
    assert offsets(ahead, t=3) == set(range(4 * TASK, 5 * TASK))


def test_of_two_tiles_that_write_a_result_the_larger_one_counts() -> None:
    tall, low = written(f"t * {TASK} + i * {COLUMNS} + j"), written(f"t * {TASK} + i * {COLUMNS} + j", rows=100)
    for yes, no in ((tall, low), (low, tall)):
        (ahead,), *_ = fetched(summed(8), If(Binary("<", Var("t"), Const(2)), (yes,), (no,)))
        assert ahead.run == TASK


def test_behind_the_last_task_of_a_row_comes_the_first_one_of_the_next() -> None:
    """Tasks of 16 x 32 in 32 x 96."""
    (ahead,), _ = fetched(
        summed(8),
        loop("r", 16, written(f"t * {16 * 96 * 64} + u * {32 * 64} + r * {96 * 64} + i * {COLUMNS} + j", rows=32)),
        spread=(("t", 2), ("u", 3)),
    )
    place = [(t, u) for t in range(2) for u in range(3)]
    for (t, u), (row, column) in pairwise(place):
        rows = (row * 16 * 96 * 64 + column * 32 * 64 + r * 96 * 64 for r in range(16))
        assert offsets(ahead, t=t, u=u) == {first + n for first in rows for n in range(32 * 64)}


def test_loops_that_stay_at_a_limit() -> None:
    """Rows of 32 columns in eleven steps of three, the last of which begins at column 29."""
    tile = written(f"t * {128 * 32 * 64} + r * {32 * 64} + minimum(c * 3, 29) * 64 + i * {COLUMNS} + j", rows=3)
    (ahead,), _ = fetched(summed(8), loop("r", 128, loop("c", 11, tile)))
    assert (ahead.run, ahead.count) == (128 * 32 * 64, 1)


def test_tasks_that_write_the_same_are_rounds_too() -> None:
    tile = written(f"t * {TASK} + i * {COLUMNS} + j")
    (ahead,), _ = fetched(summed(8), tile, spread=(("t", 5), ("u", 3)))
    assert ahead.loops == (("u", 0, 3),)


@given(
    st.tuples(st.integers(1, 60), st.integers(1, 60), st.integers(1, 12)),
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)), max_size=2),
)
def test_what_is_fetched_is_what_is_written_next(steps: tuple[int, int, int], dims: list[tuple[int, int]]) -> None:
    """All that the next task writes and this one does not, and nothing else but of that."""
    task, unit, step = steps
    text = "".join(f" + d{number} * {stride}" for number, (stride, _) in enumerate(dims))
    target = Access("y", (parse_expr(f"t * {task} + u * {unit} + c * {step}{text}"),))
    tile = Tile(tuple(Dim(f"d{n}", Const(size)) for n, (_, size) in enumerate(dims)), (), None, Const(0), target, "f32")
    costs = CpuCosts(fetch_elements=1)
    aheads, _ = fetched(summed(8), loop("c", 3, tile), spread=(("t", 2), ("u", 2)), costs=costs)

    def wrote(t: int, u: int) -> set[int]:
        places = every((c * step for c in range(3)), *(range(0, stride * size, stride) for stride, size in dims))
        return {t * task + u * unit + sum(place) for place in places}

    for ahead in aheads:
        assert offsets(ahead, t=0, u=0) <= wrote(0, 1)
        assert wrote(0, 1) - wrote(0, 0) <= offsets(ahead, t=0, u=0)
        assert offsets(ahead, t=0, u=1) <= wrote(1, 0)


@pytest.mark.parametrize(
    "tile",
    [
        written(f"t * {TASK} + i * {COLUMNS} + j", combine="sum"),
        written(f"i * {COLUMNS} + j"),
        written(f"t * {TASK} - i * {COLUMNS} + j"),
        written(f"t * {TASK} + i * {COLUMNS} + minimum(t, 3) + j"),
        written(f"t * {TASK} + i * {COLUMNS} + s // 2 + j"),
        written(f"t * {TASK} + i * {COLUMNS} + j", rows=8),
        read(f"i * {COLUMNS} + j"),
        read(f"t // 2 * {TASK} + i * {COLUMNS} + j"),
    ],
    ids=["what is added to", "stays", "backwards", "tasks that stay", "a symbol", "little", "all read", "jumps"],
)
def test_nothing_else_is_fetched(tile: Tile) -> None:
    assert not any(fetched(summed(8), tile))


def test_without_a_reduction_nothing_is_fetched() -> None:
    assert fetched(written(f"t * {TASK} + i * {COLUMNS} + j")) == [()]
    endless = For("c", Const(0), Var("s"), (summed(8),))
    assert fetched(endless, written(f"t * {TASK} + i * {COLUMNS} + j")) == [(), ()]


@pytest.mark.parametrize("target", [AVX512, AVX2, NEON])
def test_kernels_fetch_large_results_that_they_read(target: CpuTarget) -> None:
    case = Case(
        ["Y[m, n] = sum(k, X[m, k] * W[k, n])", "Z[m, o] = sum(n, Y[m, n] * V[n, o])"],
        {"m": 512, "n": 64, "k": 64, "o": 16},
        {"X": (512, 64), "W": (64, 64), "V": (64, 16)},
        {"l2": {"Z": {"m": 64}}, "reg": {"Y": {"m": 4, "n": 16}, "Z": {"m": 4, "o": 16}}},
        outputs=("Y", "Z"),
    )

    def fetches(*large: str) -> int:
        kernel = emit(case.program(), target, "k", large=frozenset(large))
        texts = [function.script() for function in (kernel.function, *kernel.parts.values())]
        return sum(line.endswith(", 1, 2, 1)") for text in texts for line in text.splitlines() if "prefetch" in line)

    assert fetches("Y") == 1
    assert fetches("Z") == fetches() == 0
