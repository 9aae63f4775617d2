"""Reduce loops whose loads are asynchronous: right for any rounds, and wrong where a wait or a barrier lacks."""

import re

import numpy as np
import pytest

from tests.codegen.gpu.kernels import HEAD, emulated, program, shape_of
from tests.codegen.gpu.mutations import mutants
from tests.emulator.kernels import built, needs_compiler, region
from tests.programs import buffer, compute, load, loop, tensor, whole
from tilec.codegen.gpu.kernel_context import KernelContext
from tilec.codegen.gpu.pipeline import lower_kernel
from tilec.codegen.gpu.print.kernel import print_kernel
from tilec.codegen.gpu.verify_kernel import check_kernel
from tilec.emulator import ORDERS
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.program import Allocate, Fill, StoreTiles
from tilec.ir.types import numpy_dtype
from tilec.ir.verify.program import check_program
from tilec.lower.waits import with_waits
from tilec.machine import execute

pytestmark = needs_compiler


def product(m, n, k, step, stages, ttype="f32", fill=None):
    """`y = x @ w`, two warps for every eight rows; with `fill` windows of the last step leave the tensors."""
    expr = tensor("y[m, n] = sum(k, f32(x[m, k]) * f32(w[k, n]))", {"m": m, "n": n, "k": k})
    rows = f"minimum(m1*8, {m - 8}) : minimum(m1*8, {m - 8}) + 8"
    half = f"minimum(m1*8, {m - 8}) + u*4 : minimum(m1*8, {m - 8}) + u*4 + 4"
    end = f"minimum(k1*{step} + {step}, {k})"
    held = f"k1*{step} : {end}" if fill is None else f"k1*{step} : k1*{step} + {step}"
    x = buffer("x_s", "shared", f"x[{rows}, {held}]", ttype, shape=(8, step), copies=stages)
    w = buffer("w_s", "shared", f"w[{held}, 0:{n}]", ttype, shape=(step, n), copies=stages)
    y = buffer("y_r", "reg", f"y[{half}, 0:{n}]")
    tile = compute(expr, "y_r", "_s", True, m=half, k=f"k1*{step} : {end}")
    steps = loop("k1", -(-k // step), *load(x, fill=fill, stages=stages), *load(w, fill=fill, stages=stages), tile)
    units = loop("u", 2, Allocate(y), Fill("y_r", 0.0), steps, StoreTiles("y", "y_r"), scope="warp")
    parameters = (whole("x", (m, k), ttype=ttype), whole("w", (k, n), ttype=ttype), whole("y", (m, n)))
    return program("product", parameters, ("y",), with_waits((loop("m1", -(-m // 8), units, scope="block"),), "xw"))


def operands(m, n, k, ttype="f32"):
    draw = np.random.default_rng(k)
    return {
        "x": draw.integers(-4, 5, (m, k)).astype(numpy_dtype(ttype)),
        "w": draw.integers(-4, 5, (k, n)).astype(numpy_dtype(ttype)),
    }


@pytest.mark.slow_cases("8-8-64-16-f32-None-2", "9-5-33-8-f32-None-2")
@pytest.mark.feature("L22", "W28")
@pytest.mark.parametrize("stages", [2, 4])
@pytest.mark.parametrize(
    ("m", "n", "k", "step", "ttype", "fill"),
    [
        (8, 8, 64, 16, "f32", None),  # rows of 16 bytes
        (9, 5, 33, 8, "f32", None),  # single elements, a short last step
        (9, 5, 33, 8, "f32", 0.0),  # zeros beyond the tensors
        (9, 5, 33, 8, "f32", -0.0),  # with a sign, which no asynchronous copy fills in
        (8, 8, 24, 8, "f16", None),
        (9, 3, 21, 4, "f16", 0.0),  # two bytes, which no asynchronous copy has
        (8, 4, 6, 8, "f32", None),  # fewer rounds than copies
    ],
)
def test_sums_are_those_of_the_elements(m, n, k, step, ttype, fill, stages):
    made = product(m, n, k, step, stages, ttype, fill)
    arrays = operands(m, n, k, ttype)
    assert not check_program(made, {p.tensor: p.shape for p in made.parameters})
    expected = arrays["x"].astype(np.float32) @ arrays["w"].astype(np.float32)
    np.testing.assert_array_equal(execute(made, arrays, {}).outputs["y"], expected)
    found, text = emulated(made, arrays, 32)
    np.testing.assert_array_equal(found["y"], expected)
    assert text.count("t_wait_copies") == 1
    assert ("t_copy(" in text) == ((ttype, fill) != ("f16", 0.0))
    guarded = re.search(r"t_copy\([^;]*(?<!true)\);", text) is not None
    assert guarded == (ttype == "f32" and str(fill) == "0.0")
    assert text.count("t_barrier();") == 1, "it makes copies visible, and keeps them until all have read them"


WRONG = ("wait too late", "wait dropped", "barrier dropped", "another iteration", "another stage")


@pytest.mark.parametrize("kind", WRONG)
def test_a_loop_that_waits_too_little_is_found(kind):
    """By the rules of shared memory, and by the emulator."""
    arrays = operands(8, 8, 64)
    right = lower_kernel(KernelContext(product(8, 8, 64, 8, 3), 32, KnownRanges()))
    assert check_kernel(right, KnownRanges()) == ()
    wrong = [each for each in mutants(right) if each.kind == kind]
    assert all(check_kernel(each.kernel, KnownRanges()) for each in wrong)
    printed = print_kernel(wrong[-1].kernel, "kernel", KnownRanges())
    expected = arrays["x"] @ arrays["w"]
    kernel = built(HEAD + printed.text, "kernel")
    shape = shape_of(printed)
    seen = []
    for order in ORDERS:
        y = np.zeros((8, 8), np.float32)
        regions = [region(arrays["x"], False), region(arrays["w"], False), region(y, True)]
        seen.append(bool(kernel.launch(shape, regions, order).findings) or not np.array_equal(y, expected))
    assert any(seen)


def test_a_loop_waits_once_for_all_that_it_loads():
    """What is computed between two loads reads one of them; both of the next iteration are on their way meanwhile."""
    m, n, k, step, stages = 8, 8, 64, 16, 2
    twice = tensor("z[m, k] = x[m, k] * 2.0", {"m": m, "k": k})
    expr = tensor("y[m, n] = sum(k, z[m, k] * w[k, n])", {"m": m, "n": n, "k": k})
    chunk = f"k1*{step} : k1*{step} + {step}"
    x = buffer("x_s", "shared", f"x[0:8, {chunk}]", shape=(8, step), copies=stages)
    w = buffer("w_s", "shared", f"w[{chunk}, 0:{n}]", shape=(step, n), copies=stages)
    z, z_r = buffer("z_s", "shared", f"z[0:8, {chunk}]"), buffer("z_r", "reg", f"z[v*4 : v*4 + 4, {chunk}]")
    y = buffer("y_r", "reg", f"y[u*4 : u*4 + 4, 0:{n}]")
    scaled = compute(twice, "z_r", "_s", m="v*4 : v*4 + 4", k=chunk)
    doubled = loop("v", 2, Allocate(z_r), scaled, StoreTiles("z_s", "z_r"), scope="warp")
    tile = compute(expr, "y_r", "_s", True, m="u*4 : u*4 + 4", k=chunk)
    steps = loop("k1", k // step, *load(x, stages=stages), Allocate(z), doubled, *load(w, stages=stages), tile)
    units = loop("u", 2, Allocate(y), Fill("y_r", 0.0), steps, StoreTiles("y", "y_r"), scope="warp")
    parameters = (whole("x", (m, k)), whole("w", (k, n)), whole("y", (m, n)))
    body = with_waits((loop("b", 1, units, scope="block"),), "xw")
    given = operands(m, n, k)
    found, text = emulated(program("twice", parameters, ("y",), body), given, 32)
    np.testing.assert_array_equal(found["y"], 2 * given["x"] @ given["w"])
    assert text.count("t_wait_copies<0>();") == 1
    assert "LDG" not in text.partition("for (int k1")[2].partition("t_commit_copies")[2]
