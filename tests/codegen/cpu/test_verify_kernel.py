"""Rules of the kernel IR: a kernel that passes made is legal, and each rule is found when it is broken."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.codegen.cpu.patterns import attention, depthwise_pointwise, layer_norm_matmul
from tests.codegen.cpu.running import AVX512, verified
from tilec.codegen.cpu.extents import Extent
from tilec.codegen.cpu.kernel_ir import (
    Array,
    CallFunction,
    Dim,
    For,
    Function,
    If,
    KernelIR,
    ParallelNest,
    Prefetch,
    Step,
    Tile,
)
from tilec.codegen.cpu.pipeline import KERNEL_PASSES, KernelContext, lower_kernel
from tilec.codegen.cpu.verify_kernel import check_kernel
from tilec.ir.expr import Access, Binary, Call, Const, Expr, Var
from tilec.ir.text import parse_expr

ARRAYS = (Array("x", "f32", 32, "operand"), Array("y", "f32", 32, "operand"))


def tile(target: str = "t*16 + d", source: str = "t*16 + d", extent: int = 16) -> Tile:
    value = Access("x", (parse_expr(source),))
    return Tile((Dim("d", Const(extent)),), (), None, value, Access("y", (parse_expr(target),)), "f32")


def kernel(
    *steps: Step, arrays: tuple[Array, ...] = (), scratch: int = 0, parts: tuple[Function, ...] = ()
) -> KernelIR:
    return KernelIR("k", ARRAYS + arrays, (ParallelNest((("t", 2),), steps),), scratch, parts)


OPEN = Binary("*", Var("n"), Const(4))


def scratch(name: str, offset: Extent | None, elements: int = 16, ttype: str = "f32") -> Array:
    return Array(name, ttype, elements, "scratch", offset)


def loop(*body: Step, variable: str = "i", end: int = 4) -> For:
    return For(variable, Const(0), Const(end), body)


def test_a_legal_kernel_breaks_no_rule() -> None:
    assert check_kernel(kernel(tile(), loop(tile()))) == ()


@pytest.mark.parametrize("case", [attention(True), depthwise_pointwise(), layer_norm_matmul()])
def test_every_pass_keeps_the_rules(case) -> None:
    program = case.program()
    seen = []

    def observe(step: str, after: KernelIR) -> None:
        seen.append(step)
        verified(step, after)

    lower_kernel(KernelContext(program, AVX512, frozenset(program.outputs)), observe)
    assert seen == [each.name for each in KERNEL_PASSES]


AHEAD = Prefetch("x", Var("t"), 16, 1, 1, (("q", 0, 4),))

BROKEN = {
    "the name of two arrays": (kernel(arrays=(ARRAYS[0],)), "array x stands twice"),
    "outside of scratch": (kernel(arrays=(scratch("a", 64),), scratch=64), "outside of the 64 bytes of scratch"),
    "overlapping arrays": (kernel(arrays=(scratch("a", 0), scratch("b", 32)), scratch=128), "overlaps a"),
    "types that share": (
        kernel(arrays=(scratch("a", 0), scratch("b", 0, 8, "f64")), scratch=128),
        "in the place of a, which has another type",
    ),
    "open arrays that overlap at some size": (
        replace(kernel(arrays=(scratch("a", 0), scratch("b", OPEN)), scratch=1024), symbols=("n",)),
        "overlaps a",
    ),
    "a place that no symbol says": (kernel(arrays=(scratch("a", OPEN),), scratch=64), "n is no symbol of the kernel"),
    "a local array of open size": (
        replace(kernel(arrays=(Array("a", "f32", OPEN, "local"),)), symbols=("n",)),
        "a size that is no number",
    ),
    "an array without elements": (kernel(arrays=(scratch("a", None, 0),)), "no elements"),
    "pieces that overlap": (
        kernel(arrays=(Array("a", "f32", 16, "local", pieces=((0, 8), (4, 8))),)),
        "the piece 4:+8 overlaps another",
    ),
    "nontemporal stores to scratch": (
        replace(kernel(arrays=(scratch("a", 0),), scratch=64), nontemporal=frozenset({"a"})),
        "nontemporal stores to a",
    ),
    "a variable bound twice": (kernel(loop(loop(tile()))), "i is bound already"),
    "a dimension named like a loop": (kernel(loop(tile(), variable="d")), "d is bound already"),
    "a variable of nothing": (kernel(tile(source="j*16 + d")), "j is not bound"),
    "a condition on nothing": (kernel(If(parse_expr("j <= 2"), (tile(),), ())), "j is not bound"),
    "an extent of nothing": (kernel(For("i", Const(0), Var("n"), (tile(),))), "n is not bound"),
    "an array of nobody": (kernel(replace(tile(), value=Access("z", (Var("d"),)))), "z is no array"),
    "two offsets": (kernel(replace(tile(), value=Access("x", (Var("d"), Var("t"))))), "has 2 offsets"),
    "an element behind the array": (kernel(tile(target="t*16 + d + 1")), "reaches elements 1 to 32 of 32"),
    "an element before the array": (kernel(tile(source="t*16 + d - 1")), "reaches elements -1 to 30 of 32"),
    "a tile without points": (kernel(tile(extent=0)), "d has 0 points"),
    "a reduction over nothing": (kernel(replace(tile(), reducer="sum")), "reduced by sum over 0 dimensions"),
    "a result at every step of a reduction": (
        kernel(replace(tile(), spatial=(), reduce=tile().spatial, reducer="sum")),
        "the place of the result depends on a reduction",
    ),
    "a function that is not there": (kernel(CallFunction("part0", ("t",))), "there is no such function"),
    "other variables than the function's": (
        kernel(CallFunction("part0", ()), parts=(Function("part0", ("t",), (tile(),)),)),
        "there is no such function",
    ),
    "a function with a free variable": (
        kernel(CallFunction("part0", ()), parts=(Function("part0", (), (tile(),)),)),
        "t is not bound",
    ),
    "a prefetch during a loop of nothing": (kernel(replace(tile(), ahead=(AHEAD,))), "q is not bound"),
    "a prefetch of scratch": (
        kernel(replace(tile(), ahead=(replace(AHEAD, memory="a", loops=()),)), arrays=(scratch("a", 0),), scratch=64),
        "a is no operand",
    ),
}


@pytest.mark.parametrize(("broken", "problem"), BROKEN.values(), ids=BROKEN)
def test_a_broken_rule_is_told(broken: KernelIR, problem: str) -> None:
    assert any(problem in text for text in check_kernel(broken)), check_kernel(broken)


def test_offsets_are_judged_by_the_values_that_reach_them() -> None:
    behind = tile(target="t*16 + d + 16")
    first = Binary("<=", Var("t"), Const(0))
    assert check_kernel(kernel(If(first, (behind,), (tile(),)))) == ()
    assert "reaches elements 32 to 47" in check_kernel(kernel(If(first, (), (behind,))))[0]


def test_a_reduction_over_nothing_reads_nothing() -> None:
    empty = Tile(
        (), (Dim("d", Const(0)),), "sum", Access("x", (parse_expr("d + 99"),)), Access("y", (Const(0),)), "f32"
    )
    assert check_kernel(kernel(empty)) == ()
    assert "d has -1 points" in check_kernel(kernel(replace(empty, reduce=(Dim("d", Const(-1)),))))[0]


def test_what_a_condition_keeps_from_being_read_may_lie_anywhere() -> None:
    guard: Expr = parse_expr("d < 3")
    guarded = Call("where", (guard, Access("x", (parse_expr("d + 99"),)), Const(0.0)))
    assert check_kernel(kernel(replace(tile(), value=guarded))) == ()
