"""What the next task reads: which operands are fetched, from where, and that kernels do it."""

from __future__ import annotations

import pytest

from tests.codegen.cpu.running import AVX2, AVX512, NEON
from tests.lower.cases import Case
from tilec.codegen.cpu.ahead import fetching
from tilec.codegen.cpu.emit import emit
from tilec.codegen.cpu.target import CpuTarget
from tilec.codegen.cpu.tree import Ahead, Dim, Memory, Nest, Range, Tile, Tree, tiles
from tilec.ir.algebra import simplify
from tilec.ir.expr import Access, Const, Expr, Var, as_expr, bound, substitute, variables
from tilec.ir.text import parse_expr

ROWS, K, WIDTH = 3, 512, 16
TASK = K * WIDTH


def product(weights: str, reducer: str | None = "sum", k: int | Expr = K) -> Tile:
    """A row of a product; `weights` is the offset of its second operand."""
    value = parse_expr(f"x[i * {K} + k] * w[{weights}]")
    reduce = (Dim("k", as_expr(k)),) if reducer else ()
    return Tile((Dim("n", Const(WIDTH)),), reduce, reducer, value, Access("y", (Var("n"),)), "f32")


def found(tile: Tile, spread: tuple[tuple[str, int], ...], rows: int | Expr = ROWS) -> tuple[Ahead, ...]:
    memories = tuple(Memory(name, "f32", 1 << 20, "operand") for name in "xwy")
    nest = Nest(spread, (Range("i", Const(0), as_expr(rows), (tile,)),))
    (made,) = tiles(fetching(Tree("k", memories, (nest,), 0)).nests[0].body)
    return made.ahead


def value(expr: Expr, **at: int) -> int | None:
    return bound(simplify(substitute(expr, {name: Const(n) for name, n in at.items()})))


def test_it_begins_where_a_task_ends() -> None:
    (ahead,) = found(product(f"t * {TASK} + k * {WIDTH} + n"), (("t", 5),))
    assert (ahead.memory, ahead.elements, ahead.loops) == ("w", TASK, (("i", 0, ROWS),))
    assert value(ahead.first, t=3) == 4 * TASK


def test_task_loops_that_leave_an_operand_are_rounds_too() -> None:
    tile = product(f"t * {TASK} + k * {WIDTH} + n")
    (ahead,) = found(tile, (("t", 5), ("u", 7)), 1)
    assert ahead.loops == (("u", 0, 7), ("i", 0, 1))
    assert variables(ahead.first) == {"t"}


def test_of_windows_that_overlap_only_what_is_new() -> None:
    (ahead,) = found(product(f"t * {TASK // 2} + k * {WIDTH} + n"), (("t", 5),))
    assert ahead.elements == TASK // 2
    assert value(ahead.first, t=0) == TASK


@pytest.mark.parametrize(
    ("tile", "rows"),
    [
        (product(f"t * {TASK} + k * {WIDTH} + n"), 1),
        (product(f"t * {2 * TASK} + k * {WIDTH} + n"), ROWS),
        (product(f"t * {TASK} + k * {2 * WIDTH} + n"), ROWS),
        (product(f"t * {TASK} - k * {WIDTH} + n"), ROWS),
        (product(f"t // 2 * {TASK} + k * {WIDTH} + n"), ROWS),
        (product(f"k * {WIDTH} + n"), ROWS),
        (product(f"t * {TASK} + k * {WIDTH} + n", k=4), ROWS),
        (product(f"t * {TASK} + k * {WIDTH} + n", k=Var("s")), ROWS),
        (product(f"t * {TASK} + n", reducer=None), ROWS),
    ],
    ids=["one pass", "a gap", "gaps inside", "backwards", "jumps", "stays", "little", "a symbol", "no reduction"],
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
