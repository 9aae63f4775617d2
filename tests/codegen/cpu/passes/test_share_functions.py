"""Functions that are alike are one: which are, with what they are called, and what stays apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.codegen.cpu.patterns import attention, sliced_products
from tests.lower.cases import Case
from tilec.codegen.cpu.emit.emit_kernel import emit
from tilec.codegen.cpu.kernel_ir import (
    Array,
    CallFunction,
    Dim,
    For,
    Function,
    KernelIR,
    ParallelNest,
    Step,
    Tile,
    calls,
)
from tilec.codegen.cpu.passes.outline_reductions import outline_reductions
from tilec.codegen.cpu.passes.share_functions import share_functions
from tilec.codegen.cpu.pipeline import memories_read
from tilec.codegen.cpu.target import CpuTarget
from tilec.codegen.cpu.verify_kernel import check_kernel
from tilec.ir.expr import Access, Binary, Call, Const, Expr, Var


def at(start: int, factor: int) -> Expr:
    moved = Binary("*", Var("i"), Const(factor))
    return Binary("+", moved, Const(start)) if start else moved


def loop(target: str, source: str, start: int, factor: int = 4) -> For:
    read = Access(source, (at(start, factor),))
    body = replace(BODY, value=read, target=Access(target, (Const(start),)))
    return For("i", Const(0), Const(3), (body,))


BODY = Tile((), (Dim("k", Const(2)),), "sum", Access("X", (Const(0),)), Access("A", (Const(0),)), "f32", "sum")


def kernel(*steps: Step, arrays: tuple[Array, ...] = (), nontemporal: frozenset[str] = frozenset()) -> KernelIR:
    operands = tuple(Array(name, "f32", 64, "operand") for name in ("A", "B", "X", "Y"))
    whole = KernelIR("k", (*operands, *arrays), (ParallelNest((), steps),), 512, nontemporal=nontemporal)
    return share_functions(outline_reductions(whole))


def copy(target: str) -> Tile:
    return replace(BODY, reduce=(), reducer=None, combine="none", target=Access(target, (Const(0),)))


def test_loops_that_differ_in_arrays_and_constants_are_one_function() -> None:
    made = kernel(loop("A", "X", 8), copy("A"), loop("B", "Y", 24), copy("B"))
    (part,) = made.parts
    assert part == Function("part0", (), (loop("A", "X", 0),), ("A", "X"))
    first, second = calls(made.nests[0].body)
    assert (first.arrays, second.arrays) == ((("A", 8), ("X", 8)), (("B", 24), ("Y", 24)))
    assert memories_read(made) == {"A", "B", "X", "Y"}


@pytest.mark.parametrize(
    ("steps", "arrays", "nontemporal"),
    [
        ((loop("A", "X", 8), loop("B", "Y", 8, factor=5)), (), frozenset()),
        ((loop("A", "X", 0), loop("L", "X", 0)), (Array("L", "f32", 8, "scratch", 0),), frozenset()),
        ((loop("A", "X", 0), loop("H", "X", 0)), (Array("H", "f16", 8, "operand"),), frozenset()),
        ((loop("A", "X", 8), loop("B", "Y", 16)), (), frozenset({"A", "B"})),
        ((loop("A", "X", 8), loop("B", "Y", 8)), (), frozenset({"A"})),
        ((loop("A", "X", 0), loop("A", "A", 0)), (), frozenset()),
    ],
    ids=["stride", "kind", "type", "streamed from elsewhere", "streamed", "in place"],
)
def test_what_differs_otherwise_stays_apart(
    steps: tuple[For, For], arrays: tuple[Array, ...], nontemporal: frozenset[str]
) -> None:
    first, second = steps
    made = kernel(first, copy("A"), second, copy("B"), arrays=arrays, nontemporal=nontemporal)
    assert len(made.parts) == 2


def test_arrays_in_one_place_of_scratch_stay_one() -> None:
    shared = (Array("S", "f32", 64, "scratch", 0), Array("T", "f32", 64, "scratch", 0))
    apart = (Array("U", "f32", 64, "scratch", 256), Array("V", "f32", 64, "scratch", 256))
    made = kernel(loop("S", "T", 8), copy("A"), loop("U", "V", 24), copy("B"), arrays=(*shared, *apart))
    assert len(made.parts) == 1
    others = (shared[0], replace(shared[1], offset=256))
    assert len(kernel(loop("S", "T", 8), copy("A"), loop("A", "X", 8), copy("B"), arrays=others).parts) == 2
    assert check_kernel(made) == ()


def test_a_call_with_what_the_function_leaves_is_found() -> None:
    made = kernel(loop("A", "X", 8), copy("A"), loop("B", "Y", 24), copy("B"))
    short = tuple(replace(each, elements=30) if each.name == "Y" else each for each in made.memories)
    assert any("reaches elements" in problem for problem in check_kernel(replace(made, memories=short)))


@pytest.mark.parametrize(("start", "below"), [(8, False), (7, True)])
def test_what_is_read_backward_lies_before_where_the_array_is_called_with(start: int, below: bool) -> None:
    """Kernels of a transposed convolution run against its image."""
    made = kernel(loop("A", "X", start, factor=-4), copy("A"))
    (call,) = calls(made.nests[0].body)
    assert call.arrays == (("A", start), ("X", start))
    assert any("reaches elements" in problem for problem in check_kernel(made)) is below


def test_functions_in_functions_count_from_where_each_is_called_with() -> None:
    inner = Function("inner", (), (loop("A", "X", 0),), ("A", "X"))
    outer = Function("outer", (), (CallFunction("inner", (), (("A", 1), ("X", 20))),), ("A", "X"))
    arrays = tuple(Array(name, "f32", 64, "operand") for name in ("A", "X"))
    for start, fits in ((30, True), (40, False)):  # the last of X is 10 behind where the inner one begins
        body = (CallFunction("outer", (), (("A", 0), ("X", start))),)
        made = KernelIR("k", arrays, (ParallelNest((), body),), 0, parts=(inner, outer))
        assert (check_kernel(made) == ()) is fits


@pytest.mark.parametrize(("case", "parts"), [(sliced_products(), 1), (attention(True), 4)], ids=["slices", "attention"])
def test_products_of_slices_are_one_function(case: Case, parts: int) -> None:
    assert len(emit(case.program(), CpuTarget()).parts) == parts


def test_arrays_that_are_read_behind_a_guard_count_from_their_first_element() -> None:
    """That is what is read where the guard does not hold."""

    def guarded(target: str, source: str, start: int) -> For:
        (tile,) = loop(target, source, start).body
        assert isinstance(tile, Tile)
        value = Call("where", (Binary("<", Var("i"), Const(2)), tile.value, Const(0.0)))
        return For("i", Const(0), Const(3), (replace(tile, value=value),))

    made = kernel(guarded("A", "X", 8), copy("A"), guarded("B", "Y", 8), copy("B"))
    assert len(made.parts) == 1
    assert [call.arrays for call in calls(made.nests[0].body)] == [(("A", 8), ("X", 0)), (("B", 8), ("Y", 0))]
    assert len(kernel(guarded("A", "X", 8), copy("A"), guarded("B", "Y", 24), copy("B")).parts) == 2


@pytest.mark.parametrize(("count", "parts"), [(3, 0), (4, 1)])
def test_many_reductions_outside_of_loops_are_a_function(count: int, parts: int) -> None:
    local = tuple(Array(f"L{n}", "f32", 8, "local", pieces=((0, 8),)) for n in range(count))
    steps: list[Step] = []
    for n in range(count):
        (summed,) = loop("L", "X", 8 * n).body
        assert isinstance(summed, Tile)
        steps.append(replace(summed, target=Access(f"L{n}", (Const(0),))))
        steps.append(replace(copy("B"), value=Access(f"L{n}", (Const(0),)), target=Access("B", (Const(n),))))
    made = kernel(For("i", Const(0), Const(3), tuple(steps)), arrays=local)
    assert len(made.parts) == parts
    if parts:
        assert [call.arrays for call in calls(made.nests[0].body)] == [(("X", 8 * n), ("B", n)) for n in range(count)]
    assert check_kernel(made) == ()
