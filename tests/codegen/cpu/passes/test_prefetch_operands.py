"""What is read next: which operands are fetched, from where, and that kernels do it."""

from __future__ import annotations

from itertools import product as every

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.codegen.cpu.running import AVX2, AVX512, NEON
from tests.lower.cases import Case
from tilec.codegen.cpu.emit.emit_kernel import emit
from tilec.codegen.cpu.kernel_ir import Array, Dim, For, KernelIR, ParallelNest, Prefetch, Step, Tile, tiles
from tilec.codegen.cpu.passes.prefetch_operands import prefetch_operands
from tilec.codegen.cpu.target import CpuTarget
from tilec.ir.algebra import simplify
from tilec.ir.expr import Access, Const, Expr, Var, as_expr, constant_value, substitute, variables
from tilec.ir.text import parse_expr
from tilec.spec.machine_costs import CpuCosts

COSTS = CpuCosts()
ROWS, K, WIDTH = 3, 512, 16
TASK = K * WIDTH


def product(weights: str, reducer: str | None = "sum", k: int | Expr = K) -> Tile:
    """A row of a product; `weights` is the offset of its second operand."""
    value = parse_expr(f"x[i * {K} + k] * w[{weights}]")
    reduce = (Dim("k", as_expr(k)),) if reducer else ()
    return Tile((Dim("n", Const(WIDTH)),), reduce, reducer, value, Access("y", (Var("n"),)), "f32")


def fetched(
    tile: Tile, spread: tuple[tuple[str, int], ...], *loops: tuple[str, Expr], costs: CpuCosts = COSTS
) -> tuple[Prefetch, ...]:
    """What a tile inside loops fetches."""
    memories = tuple(Array(name, "f32", 1 << 20, "operand") for name in "xwy")
    body: tuple[Step, ...] = (tile,)
    for name, rounds in reversed(loops):
        body = (For(name, Const(0), rounds, body),)
    tree = KernelIR("k", memories, (ParallelNest(spread, body),), 0)
    (made,) = tiles(prefetch_operands(tree, costs).nests[0].body)
    return made.ahead


def found(tile: Tile, spread: tuple[tuple[str, int], ...], rows: int | Expr = ROWS) -> tuple[Prefetch, ...]:
    return fetched(tile, spread, ("i", as_expr(rows)))


def value(expr: Expr, **at: int) -> int:
    number = constant_value(simplify(substitute(expr, {name: Const(n) for name, n in at.items()})))
    assert number is not None
    return number


def offsets(ahead: Prefetch, **at: int) -> set[int]:
    """All that is fetched in a round of the loops around."""
    first = value(ahead.first, **at)
    return {first + each * ahead.pitch + n for each in range(ahead.count) for n in range(ahead.run)}


def test_it_begins_where_a_task_ends() -> None:
    (ahead,) = found(product(f"t * {TASK} + k * {WIDTH} + n"), (("t", 5),))
    assert (ahead.memory, ahead.run, ahead.count, ahead.loops) == ("w", TASK, 1, (("i", 0, ROWS),))
    assert value(ahead.first, t=3) == 4 * TASK


def test_task_loops_that_leave_an_operand_are_rounds_too() -> None:
    tile = product(f"t * {TASK} + k * {WIDTH} + n")
    (ahead,) = found(tile, (("t", 5), ("u", 7)), 1)
    assert ahead.loops == (("u", 0, 7), ("i", 0, 1))
    assert variables(ahead.first) == {"t"}


def test_of_windows_that_overlap_only_what_is_new() -> None:
    (ahead,) = found(product(f"t * {TASK // 2} + k * {WIDTH} + n"), (("t", 5),))
    assert (ahead.run, value(ahead.first, t=0)) == (TASK // 2, TASK)


def test_of_tasks_with_a_gap_between_them_what_lies_behind_it() -> None:
    (ahead,) = found(product(f"t * {2 * TASK} + k * {WIDTH} + n"), (("t", 5),))
    assert (ahead.run, value(ahead.first, t=1)) == (TASK, 4 * TASK)


def test_columns_of_a_row_major_matrix_are_runs() -> None:
    (ahead,) = found(product(f"t * {WIDTH} + k * {4 * WIDTH} + n"), (("t", 4),))
    assert (ahead.run, ahead.pitch, ahead.count) == (WIDTH, 4 * WIDTH, K)
    assert value(ahead.first, t=1) == 2 * WIDTH


def test_steps_of_a_reduction_fetch_the_next_step_and_the_last_one_the_next_task() -> None:
    tile = product(f"t * {4 * TASK} + c * {TASK} + k * {WIDTH} + n")
    (ahead,) = fetched(tile, (("t", 5),), ("c", Const(4)), ("i", Const(ROWS)))
    assert (ahead.run, ahead.loops) == (TASK, (("i", 0, ROWS),))
    assert [value(ahead.first, t=1, c=c) for c in range(4)] == [(5 + c) * TASK for c in range(4)]


def test_behind_the_last_step_of_the_only_task_is_nothing_to_fetch() -> None:
    (ahead,) = fetched(product(f"c * {TASK} + k * {WIDTH} + n"), (("t", 1),), ("c", Const(4)), ("i", Const(ROWS)))
    assert [value(ahead.first, c=c) for c in range(4)] == [TASK, 2 * TASK, 3 * TASK, 4 * TASK]


def test_what_all_tasks_read_is_near_already() -> None:
    tile = product(f"c * {TASK} + k * {WIDTH} + n")
    assert fetched(tile, (("t", 5),), ("c", Const(4)), ("i", Const(ROWS))) == ()


def test_what_a_loop_of_the_task_comes_to_again_is_near_already() -> None:
    tile = product(f"t * {4 * TASK} + c * {TASK} + k * {WIDTH} + n")
    (ahead,) = fetched(tile, (("t", 5),), ("i", Const(ROWS)), ("c", Const(4)), ("j", Const(2)))
    assert (ahead.run, variables(ahead.first)) == (4 * TASK, {"t"})


DIMS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)), max_size=3)
"""Stride and size of dimensions of a tile."""


@given(st.integers(1, 60), st.integers(1, 12), st.integers(2, 4), DIMS)
def test_what_is_fetched_is_what_comes_next(task: int, step: int, steps: int, dims: list[tuple[int, int]]) -> None:
    """All that is new in the next step or task, and nothing else but of that."""
    names = [f"d{number}" for number in range(len(dims))]
    text = "".join(f" + {name} * {stride}" for name, (stride, _) in zip(names, dims, strict=True))
    reduce = (*(Dim(name, Const(size)) for name, (_, size) in zip(names, dims, strict=True)), Dim("k", Const(2)))
    expr = parse_expr(f"w[t * {task} + c * {step}{text} + k]")
    tile = Tile((), reduce, "sum", expr, Access("y", ()), "f32")
    costs = CpuCosts(fetch_elements=1)
    aheads = fetched(tile, (("t", 3),), ("c", Const(steps)), ("i", Const(2)), costs=costs)

    def read(t: int, *rounds: int) -> set[int]:
        places = every((c * step for c in rounds), *(range(0, stride * size, stride) for stride, size in dims), (0, 1))
        return {t * task + sum(place) for place in places}

    for ahead, t, c in every(aheads, range(2), range(steps)):
        now, then = read(t, *range(steps)), read(t + 1, *range(steps))
        last = "c" in variables(ahead.first) and c + 1 == steps
        if "c" in variables(ahead.first):
            now, then = read(t, c), read(t + 1, 0) if last else read(t, c + 1)
        assert offsets(ahead, t=t, c=c) <= then
        assert last or then - now <= offsets(ahead, t=t, c=c)


@pytest.mark.parametrize(
    ("tile", "rows"),
    [
        (product(f"t * {TASK} + k * {WIDTH} + n"), 1),
        (product(f"t * {TASK} + k * {WIDTH} + n"), 0),
        (product(f"t * {TASK} + i * {8 * WIDTH} + k * {2 * WIDTH} + n"), ROWS),
        (product(f"t * {TASK} - k * {WIDTH} + n"), ROWS),
        (product(f"t // 2 * {TASK} + k * {WIDTH} + n"), ROWS),
        (product(f"k * {WIDTH} + n"), ROWS),
        (product(f"t * {TASK} + k * {WIDTH} + n", k=4), ROWS),
        (product(f"t * {TASK} + k * {WIDTH} + n", k=Var("s")), ROWS),
        (product(f"t * {TASK} + n", reducer=None), ROWS),
    ],
    ids=[
        "one pass",
        "no pass",
        "runs of two kinds",
        "backwards",
        "jumps",
        "stays",
        "little",
        "a symbol",
        "no reduction",
    ],
)
def test_nothing_else_is_fetched(tile: Tile, rows: int | Expr) -> None:
    assert found(tile, (("t", 5),), rows) == ()
    assert found(tile, (("t", 1),), rows) == ()


@pytest.mark.parametrize("target", [AVX512, AVX2, NEON])
def test_kernels_fetch_as_little_in_every_round_as_they_can(target: CpuTarget) -> None:
    """Two passes over 16 rows of 256, 128 steps or less each: a line at a time."""

    def script(columns: int) -> str:
        case = Case(
            ["Y[m, n] = sum(k, X[m, k] * W[k, n])"],
            {"m": 64, "n": columns, "k": 256},
            {"X": (64, 256), "W": (256, columns)},
            {"l2": {"Y": {"m": 16}}, "reg": {"Y": {"m": 4, "n": 16}}},
        )
        kernel = emit(case.program(), target, "k")
        return "".join(function.script() for function in (kernel.function, *kernel.parts.values()))

    assert script(32).count("llvm.prefetch") == 1
    assert script(16).count("llvm.prefetch") == 0
