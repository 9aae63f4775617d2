"""Rules of places in GPU kernels: what data decide stays inside of a state, and nothing is read there."""

from dataclasses import replace

import numpy as np
import pytest

from tests.codegen.gpu.kernels import REG, SHARED, emulated
from tests.emulator.kernels import needs_compiler
from tests.programs import DRAM, buffer, compute, load, loop, tensor, whole
from tilec.codegen.gpu.kernel_context import KernelContext
from tilec.codegen.gpu.kernel_ir import Copy, steps
from tilec.codegen.gpu.pipeline import lower_kernel
from tilec.codegen.gpu.verify_kernel import check_kernel
from tilec.errors import TilecError
from tilec.ir.expr import Access, Const, Expr, Var
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.places import kept_inside
from tilec.ir.program import Allocate, Place, Program, StoreTiles
from tilec.ir.text import parse_expr

INSIDE = kept_inside(parse_expr("t[i] * 2 - 1"), Const(32))


def updating(index: Expr) -> Program:
    """Rows of `x` go to rows of a state of 32, where an index says."""
    rows = "u : u + 1"
    held = buffer("y_r", "reg", f"y[{rows}, 0:4]")
    node = tensor("y[m, n] = x[m, n]", {"m": 8, "n": 4})
    body = [*load(buffer("x_r", "reg", f"x[{rows}, 0:4]")), Allocate(held)]
    body += [compute(node, "y_r", "_r", m=rows), StoreTiles("y", "y_r")]
    state = replace(whole("y", (8, 4)), place=Place((Const(32), Const(4)), ("i", "j"), (index, Var("j"))))
    parameters = (whole("x", (8, 4)), whole("t", (8,), ttype="i64"), state)
    return Program("k", (DRAM, SHARED, REG), (), parameters, ("y",), (loop("u", 8, *body, scope="warp"),))


def lowered(program: Program):
    return lower_kernel(KernelContext(program, 32, KnownRanges()))


@needs_compiler
def test_rows_go_to_places_that_data_decide_and_stay_inside():
    program = updating(INSIDE)
    arrays = {"x": np.arange(32, dtype="f4").reshape(8, 4), "y": np.full((32, 4), -1, "f4")}
    arrays["t"] = np.array([3, 5, 9, 4, 1 << 40, -(1 << 40), 2, 14])  # of two 32 bits hold nothing
    expected = arrays["y"].copy()
    expected[np.clip(arrays["t"] * 2 - 1, 0, 31)] = arrays["x"]
    found, _ = emulated(program, arrays, 32)
    np.testing.assert_array_equal(found["y"], expected)


@pytest.mark.parametrize(
    ("index", "problem"),
    [
        (parse_expr("t[i]"), "data decide that elements of y lie outside of its memory"),
        (kept_inside(Access("t", (Var("i"),)), Const(33)), "data decide that elements of y lie outside"),
        (kept_inside(parse_expr("y[i, 0]"), Const(32)), "the place of y reads y, which the kernel is not given"),
    ],
)
def test_places_that_data_decide_stay_inside_and_read_what_is_given(index, problem):
    with pytest.raises(TilecError, match=problem):
        lowered(updating(index))


def test_nothing_is_read_at_a_place():
    kernel = lowered(updating(INSIDE))
    assert check_kernel(kernel, KnownRanges()) == ()
    (store,) = (step for step in steps(kernel.body) if isinstance(step, Copy) and not step.up)
    (units,) = kernel.body
    read = replace(store, up=True, lo=store.upper.lo, hi=store.upper.hi)
    wrong = replace(kernel, body=(replace(units, body=(*units.body, read)),))
    (problem,) = check_kernel(wrong, KnownRanges())
    assert problem.endswith("elements of y are read at their place")
