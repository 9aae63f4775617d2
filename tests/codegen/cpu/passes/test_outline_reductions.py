"""Loops that reduce as functions of their own: which, with what, and what stays where it is."""

from __future__ import annotations

import pytest

from tests.codegen.cpu.patterns import attention, depthwise_pointwise, layer_norm_matmul
from tilec.codegen.cpu.emit.emit_kernel import emit
from tilec.codegen.cpu.kernel_ir import Array, CallFunction, For, KernelIR, ParallelNest, Step, Tile, memories_of, tiles
from tilec.codegen.cpu.passes.outline_reductions import outline_reductions
from tilec.codegen.cpu.target import CpuTarget
from tilec.ir.expr import Access, Const, Var

AVX512 = CpuTarget()


def tile(target: str, source: str, reducer: str | None = None) -> Tile:
    return Tile((), (), reducer, Access(source, (Var("i"),)), Access(target, (Var("j"),)), "f32")


def tree(*steps: Step, local: tuple[str, ...] = ()) -> KernelIR:
    names = dict.fromkeys(memories_of(steps))
    memories = tuple(Array(n, "f32", 8, "local" if n in local else "operand") for n in names)
    return KernelIR("k", memories, (ParallelNest((("t", 2),), steps),), 0)


def loop(*body: Step, variable: str = "i", first: int = 0) -> For:
    return For(variable, Const(first), Const(first + 4), body)


def test_loops_that_reduce_beside_other_work() -> None:
    made = outline_reductions(tree(loop(tile("a", "x", "sum")), loop(tile("y", "a"), variable="j")))
    (run, copy) = made.nests[0].body
    assert isinstance(run, CallFunction)
    assert isinstance(copy, For)
    (part,) = made.parts
    assert part.body == (loop(tile("a", "x", "sum")),)
    assert [t.target.tensor for t in tiles(made.nests[0].body)] == ["y"]


def test_a_loop_that_was_cut_is_one_part() -> None:
    pieces = loop(tile("a", "x", "sum")), loop(tile("a", "x", "sum"), first=4)
    assert outline_reductions(tree(*pieces)).parts == ()
    (part,) = outline_reductions(tree(*pieces, tile("y", "a"))).parts
    assert part.body == pieces


def test_parts_get_the_variables_that_they_need() -> None:
    inner = loop(tile("a", "x", "max"))
    made = outline_reductions(tree(For("j", Const(0), Const(3), (inner, tile("y", "a")))))
    assert [part.variables for part in made.parts] == [("j",)]


def test_what_shares_a_register_stays() -> None:
    accumulate = loop(tile("a", "x", "sum"))
    assert outline_reductions(tree(accumulate, tile("y", "a"), local=("a",))).parts == ()
    assert (
        len(outline_reductions(tree(loop(tile("a", "x", "sum"), tile("b", "a")), tile("y", "b"), local=("a",))).parts)
        == 1
    )


@pytest.mark.parametrize(
    ("case", "parts"), [(attention(True), 4), (layer_norm_matmul(), 3), (depthwise_pointwise(), 2)]
)
def test_stitched_groups_have_a_part_for_every_reduction(case, parts: int) -> None:
    kernel = emit(case.program(), AVX512, "symbol")
    assert list(kernel.parts) == [f"symbol_part{n}" for n in range(parts)]
    text = kernel.function.script()
    assert all(symbol in text for symbol in kernel.parts)
    assert all(str(part.attrs["global_symbol"]) == symbol for symbol, part in kernel.parts.items())


def test_a_single_reduction_is_the_kernel() -> None:
    alone = tree(loop(tile("a", "x", "sum")))
    assert outline_reductions(alone) == alone
