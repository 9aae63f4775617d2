"""Kernels of tile programs: right for all lanes, sizes and types, without races, in every order of threads."""

import numpy as np
import pytest

from tests.codegen.gpu.kernels import emulated, program, rows_program
from tests.emulator.kernels import needs_compiler
from tests.programs import buffer, compute, load, loop, tensor, whole
from tilec.ir.program import Allocate, Fill, StoreTiles
from tilec.ir.types import numpy_dtype

pytestmark = needs_compiler


def integers(*shape, seed=0):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


@pytest.mark.quick_cases("1-1-32", "2-128-32")
@pytest.mark.feature("A20")
@pytest.mark.parametrize(("m", "n", "lanes"), [(1, 1, 32), (3, 33, 32), (3, 33, 1), (2, 128, 32), (5, 70, 64)])
def test_rows_are_reduced_over_lanes_and_read_back_by_all(m, n, lanes):
    texts = [
        "top[m] = max(r, x[m, r])",
        "low[m] = min(r, x[m, r])",
        "y[m, n] = x[m, n] - top[m]",
        "s[m] = sum(r, y[m, r])",
        "z[m, n] = y[m, n] * s[m] + low[m]",
    ]
    types = dict.fromkeys(("x", "top", "low", "y", "s", "z"), "f32")
    x = integers(m, n)
    found, text = emulated(rows_program(texts, {"m": m, "n": n, "r": n}, types), {"x": x}, lanes)
    y = x - x.max(1, keepdims=True)
    expected = y * y.sum(1, keepdims=True) + x.min(1, keepdims=True)
    np.testing.assert_array_equal(found["z"], expected)
    assert ("t_shfl_xor" in text) == (lanes > 1 and n >= lanes)


@pytest.mark.feature("W36")
@pytest.mark.parametrize(("p", "n", "lanes"), [(5, 6, 32), (2, 3, 32), (3, 24, 32), (7, 9, 64)])
def test_narrow_tiles_are_shared_along_several_iterators(p, n, lanes):
    texts = [
        "y[m, p, n] = x[m, p] + x[m, n]",
        "s[m, p] = sum(r, y[m, p, r])",
        "z[m, p, n] = y[m, p, n] * s[m, p]",
    ]
    x = integers(3, n)
    sizes = {"m": 3, "p": p, "n": n, "r": n}
    found, text = emulated(rows_program(texts, sizes, dict.fromkeys("xysz", "f32")), {"x": x}, lanes)
    y = x[:, :p, None] + x[:, None, :]
    np.testing.assert_array_equal(found["z"], y * y.sum(2, keepdims=True))
    np.testing.assert_array_equal(found["s"], y.sum(2))
    assert ("(lane & 24) == 0" in text) == (p * n == 6), "others hold the same and store nothing"


def test_nan_comes_through_reductions_and_a_row_without_elements_is_neutral():
    texts = ["top[m] = max(r, x[m, r])", "low[m] = min(r, x[m, r])", "p[m] = prod(r, x[m, r])"]
    types = dict.fromkeys(("x", "top", "low", "p"), "f32")
    x = integers(2, 40)
    x[1, 17] = np.nan
    found, _ = emulated(rows_program(texts, {"m": 2, "n": 40, "r": 40}, types), {"x": x}, 32)
    np.testing.assert_array_equal(found["top"], [x[0].max(), np.nan])
    np.testing.assert_array_equal(found["low"], [x[0].min(), np.nan])
    np.testing.assert_array_equal(found["p"], [x[0].prod(dtype=np.float64), np.nan])
    none, _ = emulated(rows_program(texts, {"m": 2, "n": 40, "r": 0}, types), {"x": x}, 32)
    np.testing.assert_array_equal(none["top"], [-np.inf] * 2)
    np.testing.assert_array_equal(none["p"], [1.0] * 2)


@pytest.mark.parametrize("ttype", ["f16", "bf16"])
def test_halves_are_computed_as_floats_and_rounded_where_they_are_stored(ttype):
    import ml_dtypes

    dtype = np.float16 if ttype == "f16" else ml_dtypes.bfloat16
    x = np.random.default_rng(1).normal(size=(3, 64)).astype(dtype)
    types = {"x": ttype, "y": ttype, "s": "f32"}
    texts = ["y[m, n] = x[m, n] * 3.0", "s[m] = sum(r, y[m, r])"]
    found, _ = emulated(rows_program(texts, {"m": 3, "n": 64, "r": 64}, types), {"x": x}, 32)
    y = (x.astype(np.float32) * 3).astype(dtype)
    np.testing.assert_array_equal(found["y"].view(np.uint16), y.view(np.uint16))
    np.testing.assert_allclose(found["s"], y.astype(np.float64).sum(1), rtol=1e-5)


def matmul(m, n, k, tile, step):
    """Products through shared memory: rows of blocks with a shifted tail, columns on lanes, steps of the sum."""
    node = tensor("C[m, n] = sum(k, A[m, k] * B[k, n])", {"m": m, "n": n, "k": k})
    first = f"minimum(m1*{tile}, {m - tile})"
    rows, chunk, one = (
        f"{first} : {first} + {tile}",
        f"k1*{step} : k1*{step} + {step}",
        f"{first} + u : {first} + u + 1",
    )
    a = buffer("A_s", "shared", f"A[{rows}, {chunk}]", shape=(tile, step))
    b = buffer("B_s", "shared", f"B[{chunk}, 0:{n}]")
    c = buffer("C_r", "reg", f"C[{one}, 0:{n}]", shape=(1, n))
    inner = loop("k1", k // step, *load(a), *load(b), compute(node, "C_r", "_s", True, m=one, k=chunk))
    unit = loop("u", tile, Allocate(c), Fill("C_r", 0.0), inner, StoreTiles("C", "C_r"), scope="warp")
    shapes = {"A": (m, k), "B": (k, n), "C": (m, n)}
    parameters = tuple(whole(name, shape) for name, shape in shapes.items())
    return program("matmul", parameters, ("C",), (loop("m1", -(-m // tile), unit, scope="block"),))


@pytest.mark.parametrize(
    ("m", "n", "k", "tile", "step", "lanes"), [(4, 64, 8, 4, 4, 32), (7, 37, 9, 3, 3, 32), (7, 37, 9, 3, 3, 1)]
)
def test_sums_go_on_in_registers_while_shared_memory_is_filled_again(m, n, k, tile, step, lanes):
    a, b = integers(m, k), integers(k, n, seed=1)
    found, text = emulated(matmul(m, n, k, tile, step), {"A": a, "B": b}, lanes)
    np.testing.assert_array_equal(found["C"], a.astype(np.float64) @ b)
    assert text.count("t_barrier();") >= 2
    assert ("STS4" in text) == (n % 4 == 0)


def test_windows_that_leave_the_tensor_are_filled():
    node = tensor("y[i, n] = sum(r, x[i + r - 1, n])", {"i": 5, "n": 33, "r": 3})
    x = buffer("x_s", "shared", "x[i1*2 - 1 : i1*2 + 3, 0:33]", shape=(4, 33))
    y = buffer("y_r", "reg", "y[i1*2 + u : minimum(i1*2 + u + 1, 5), 0:33]", shape=(1, 33))
    unit = loop(
        "u", 2, Allocate(y), compute(node, "y_r", "_s", i="i1*2 + u : minimum(i1*2 + u + 1, 5)"),
        StoreTiles("y", "y_r"), scope="warp",
    )  # fmt: skip
    parameters = (whole("x", (5, 33)), whole("y", (5, 33)))
    body = (loop("i1", 3, *load(x, fill=0.0), unit, scope="block"),)
    value = integers(5, 33)
    padded = np.pad(value, ((1, 1), (0, 0)))
    found, _ = emulated(program("halo", parameters, ("y",), body), {"x": value}, 32)
    np.testing.assert_array_equal(found["y"], padded[:-2] + padded[1:-1] + padded[2:])


@pytest.mark.parametrize("ttype", ["u8", "i8", "f16", "u32"])
def test_operands_past_the_end_of_ragged_lanes_are_zeros_of_their_type(ttype):
    """Rows of 50 for 32 lanes, read at three points each."""
    kind = "f32" if ttype == "f16" else "i32"
    node = tensor(f"y[m, j, n] = {kind}(x[m, n]) * {kind}(j + 1)", {"m": 4, "j": 3, "n": 50})
    held = buffer("y_r", "reg", "y[u:u + 1, 0:3, 0:50]", kind)
    inner = [Allocate(held), compute(node, held.name, "_s", m="u:u + 1"), StoreTiles("y", held.name)]
    body = [*load(buffer("x_s", "shared", "x[0:4, 0:50]", ttype)), loop("u", 4, *inner, scope="warp")]
    parameters = (whole("x", (4, 50), ttype=ttype), whole("y", (4, 3, 50), ttype=kind))
    values = (np.arange(200) % 100).reshape(4, 50).astype(numpy_dtype(ttype))
    found, text = emulated(
        program("rows", parameters, ("y",), (loop("b", 1, *body, scope="block"),)), {"x": values}, 32
    )
    exact = values.astype(np.int64)[:, None, :] * np.arange(1, 4)[None, :, None]
    np.testing.assert_array_equal(found["y"], exact)
    assert "t_zero<" in text
