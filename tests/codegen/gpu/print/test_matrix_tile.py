"""Products of matrices by instructions of a warp: exact sums for all types, layouts and ragged sizes."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from tests.codegen.gpu.kernels import emulated, kernel_of, program
from tests.emulator.kernels import needs_compiler
from tests.programs import buffer, compute, load, loop, tensor, whole
from tilec.codegen.gpu.kernel_ir import MatrixTile
from tilec.codegen.gpu.passes import unroll_products
from tilec.errors import UnsupportedError
from tilec.ir.expr import Const
from tilec.ir.matrix_units import MatrixProduct
from tilec.ir.program import Allocate, Fill, StoreTiles
from tilec.ir.verify.program import check_program
from tilec.spec.resolve import device_source, parse_device

pytestmark = needs_compiler

UNITS = {unit.name: unit for gpu in ("a100", "mi250") for unit, _ in parse_device(device_source(gpu)).matrix_units}
TYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "u8": np.uint8}


def integers(shape, ttype, seed=0):
    low = 0 if ttype == "u8" else -4
    return np.random.default_rng(seed).integers(low, 5, shape).astype(TYPES[ttype])


def products(unit, m, n, k, *, step, a="m k", b="k n", after=(), **storage):
    """`C` in steps of `k` by two warps, then more nodes on the sums in registers; `a`, `b` are orders of storage."""
    kind = unit.accumulator
    sizes = {"m": m, "n": n, "k": k, "r": n}
    left, right = (
        f"{x}[{', '.join(order.split())}]" if of == kind else f"{kind}({x}[{', '.join(order.split())}])"
        for x, order, of in (("A", a, unit.inputs[0]), ("B", b, unit.inputs[1]))
    )
    expr = tensor(f"C[m, n] = sum(k, {left} * {right})", sizes)
    half = -(-m // 2)
    rows = {"m": f"u*{half} : minimum(u*{half} + {half}, {m})"}
    chunk = f"k1*{step} : minimum(k1*{step} + {step}, {k})"
    spans, widths = {"m": f"0:{m}", "n": f"0:{n}", "k": chunk}, {"m": m, "n": n, "k": step}

    def staged(name, order, ttype):
        window = ", ".join(spans[i] for i in order.split())
        shape = tuple(widths[i] for i in order.split())
        return buffer(f"{name}_s", "shared", f"{name}[{window}]", ttype, shape=shape, **storage)

    left, right = staged("A", a, unit.inputs[0]), staged("B", b, unit.inputs[1])
    c = buffer("C_r", "reg", f"C[{rows['m']}, 0:{n}]", kind, shape=(half, n))
    tile = replace(compute(expr, "C_r", "_s", True, k=chunk, **rows), unit=unit.name)
    steps = loop("k1", -(-k // step), *load(left), *load(right), tile)
    body = [Allocate(c), Fill("C_r", 0), steps, StoreTiles("C", "C_r")]
    nodes = [tensor(text, sizes) for text in after]
    for node in nodes:
        window = ", ".join(rows["m"] if i == "m" else f"0:{n}" for i in node.spatial)
        shape = tuple(half if i == "m" else n for i in node.spatial)
        held = buffer(f"{node.tensor}_r", "reg", f"{node.tensor}[{window}]", kind, shape=shape)
        body += [Allocate(held), compute(node, held.name, "_r", **rows), StoreTiles(node.tensor, held.name)]
    shapes = {"A": (a, unit.inputs[0]), "B": (b, unit.inputs[1])}
    parameters = [whole(x, tuple(sizes[i] for i in order.split()), ttype=t) for x, (order, t) in shapes.items()]
    parameters += [whole(e.tensor, tuple(sizes[i] for i in e.spatial), ttype=kind) for e in (expr, *nodes)]
    outputs = tuple(e.tensor for e in (expr, *nodes))
    return program("products", tuple(parameters), outputs, (loop("u", 2, *body, scope="warp"),))


def problems(made):
    return check_program(made, {p.tensor: p.shape for p in made.parameters})


WHOLE = [(64, 16, 64, "m k", "n k", True), (64, 16, 64, "k m", "k n", True)]
"""Whole fragments: rows of 16 bytes, and the same transposed where elements have 16 bits."""

SHORT = [(28, 16, 64, "m k", "k n", True), (7, 24, 64, "m k", "n k", True)]
"""Fewer rows than fragments have: lanes load the last one again."""

RAGGED = [(5, 9, 70, "m k", "k n", False), (33, 3, 31, "k m", "n k", False), (2, 2, 1, "m k", "k n", False)]
"""Less than a fragment each way, an odd end of the depth."""

MORE_ACROSS = (64, 24, 64, "m k", "n k", True)
"""Two blocks of sums down and three across."""

ALL_LAYOUTS = ("mma.m16n8k16.f16", "mma.m16n8k32.s8", "mfma.f32.32x32x8.f16")
CASES = [(name, *case) for name in UNITS for case in ((*WHOLE, *RAGGED) if name in ALL_LAYOUTS else RAGGED[:1])]
CASES += [("mma.m16n8k16.f16", *case) for case in (*SHORT, MORE_ACROSS)]


@pytest.mark.quick_cases(
    "mfma.f32.32x32x8.f16-64-16-64-m k-n k-True",
    "mfma.f32.32x32x8.f16-64-16-64-k m-k n-True",
    "mfma.f32.32x32x8.f16-5-9-70-m k-k n-False",
    "mfma.f32.32x32x8.f16-2-2-1-m k-k n-False",
    "mfma.f32.32x32x2.f32-5-9-70-m k-k n-False",
    "mma.m16n8k16.f16-28-16-64-m k-k n-True",
    "mma.m16n8k16.f16-7-24-64-m k-n k-True",
    "mma.m16n8k16.f16-64-24-64-m k-n k-True",
)
@pytest.mark.feature("L21", "L24", "W28")
@pytest.mark.parametrize(("name", "m", "n", "k", "a", "b", "by_rows"), CASES)
def test_sums_are_those_of_the_elements(name, m, n, k, a, b, by_rows):
    unit = UNITS[name]
    arrays = {"A": integers((m, k), unit.inputs[0]), "B": integers((k, n), unit.inputs[1], seed=1)}
    expected = arrays["A"].astype(np.float64) @ arrays["B"].astype(np.float64)
    stored = {
        "A": arrays["A"] if a == "m k" else arrays["A"].T.copy(),
        "B": arrays["B"] if b == "k n" else arrays["B"].T.copy(),
    }
    found, text = emulated(products(unit, m, n, k, step=64, a=a, b=b), stored, 64 if "mfma" in name else 32, UNITS)
    np.testing.assert_array_equal(found["C"], expected)
    wide = "mfma" not in name and (a == "m k" or unit.inputs[0] in ("f16", "bf16"))
    assert ("ldmatrix4" in text) == (by_rows and wide)


def test_what_follows_in_registers_reads_the_sums_where_lanes_have_them():
    unit = UNITS["mma.m16n8k16.f16"]
    after = ["top[m] = max(r, C[m, r])", "E[m, n] = C[m, n] - top[m]", "low[n] = sum(r, E[0 * r, n])"]
    arrays = {"A": integers((32, 48), "f16"), "B": integers((48, 24), "f16", seed=1)}
    found, text = emulated(products(unit, 32, 24, 48, step=16, after=after[:2]), arrays, 32, UNITS)
    c = arrays["A"].astype(np.float32) @ arrays["B"].astype(np.float32)
    np.testing.assert_array_equal(found["top"], c.max(1))
    np.testing.assert_array_equal(found["E"], c - c.max(1, keepdims=True))
    assert "t_shfl_xor" in text, "four lanes have a row"


@pytest.mark.parametrize(("down", "unrolled"), [(2, 4), (4, 2)])
def test_steps_along_the_depth_are_unrolled_where_registers_suffice(down, unrolled):
    """Fragments of four steps want 96 and 128 registers beside 64 and 128 sums."""
    unit = UNITS["mma.m16n8k16.f16"]
    matrix = MatrixTile(unit, MatrixProduct("m", "n", "k", Const(0), Const(0)), None, down, 8)
    assert unroll_products._unroll(4, matrix, 4, 32) == unrolled


def test_padded_rows_hold_the_same():
    unit = UNITS["mma.m16n8k16.f16"]
    arrays = {"A": integers((32, 64), "f16"), "B": integers((64, 16), "f16", seed=1)}
    plain, _ = emulated(products(unit, 32, 16, 64, step=32), arrays, 32, UNITS)
    padded, text = emulated(products(unit, 32, 16, 64, step=32, pad=8), arrays, 32, UNITS)
    np.testing.assert_array_equal(padded["C"], plain["C"])
    assert "* 40)" in text


@pytest.mark.quick_cases("32-32-32-64-m k-k n", "32-32-32-64-k m-n k")
@pytest.mark.feature("W37")
@pytest.mark.parametrize(
    ("m", "n", "step", "swizzle", "a", "b"),
    [
        (64, 64, 64, 128, "m k", "k n"),
        (64, 128, 128, 128, "k m", "n k"),
        (32, 32, 32, 64, "m k", "k n"),
        (32, 32, 32, 64, "k m", "n k"),
        (32, 16, 16, 32, "m k", "k n"),
    ],
)
def test_swizzled_rows_hold_the_same_and_take_the_fewest_wavefronts(m, n, step, swizzle, a, b):
    unit = UNITS["mma.m16n8k16.f16"]
    arrays = {"A": integers((m, 128), "f16"), "B": integers((128, n), "f16", seed=1)}
    expected = arrays["A"].astype(np.float32) @ arrays["B"].astype(np.float32)
    arrays = {
        "A": arrays["A"] if a == "m k" else arrays["A"].T.copy(),
        "B": arrays["B"].T.copy() if b == "n k" else arrays["B"],
    }
    counts = []
    made = products(unit, m, n, 128, step=step, a=a, b=b, swizzle=swizzle)
    found, text = emulated(made, arrays, 32, UNITS, counts)
    np.testing.assert_array_equal(found["C"], expected)
    assert f", {swizzle}, 2)" in text
    assert "LDS(" not in text
    assert counts[0].total("shared").units == counts[0].total("shared").ideal
    assert problems(made) == ()


def test_rows_that_are_no_whole_panels_are_refused():
    unit = UNITS["mma.m16n8k16.f16"]
    for wrong, words in ((48, "swizzle of 48 bytes"), (64, "no whole panels of 64 bytes")):
        assert any(words in each for each in problems(products(unit, 32, 24, 48, step=48, swizzle=wrong)))
    both = products(unit, 32, 64, 64, step=64, swizzle=128, pad=8)
    assert any("have no padding" in each for each in problems(both))


def test_sums_that_are_read_across_lanes_and_other_types_are_refused():
    unit = UNITS["mma.m16n8k16.f16"]
    with pytest.raises(UnsupportedError, match="otherwise than lanes of mma.m16n8k16.f16 hold it"):
        kernel_of(products(unit, 32, 24, 48, step=16, after=["E[m, n] = C[m, 23 - n]"]), 32, UNITS)
    wrong = products(replace(unit, inputs=("bf16", "bf16")), 32, 24, 48, step=16)
    with pytest.raises(UnsupportedError, match="takes products of matrices of f16 and f16"):
        kernel_of(wrong, 32, UNITS)


def test_a_window_without_rows_is_no_product():
    """Two blocks of which the second needs rows of one half, the first none: nothing is read for it."""
    unit = UNITS["mma.m16n8k16.f16"]
    sizes = {"m": 32, "n": 8, "k": 16}
    product = tensor("C[m, n] = sum(k, f32(A[m, k]) * f32(B[n, k]))", {**sizes, "m": 16})
    join = tensor("Y[m, n] = where(m < 16, X[m, n], C[m - 16, n])", sizes)
    rows = "maximum(i*16 - 16, 0) : minimum(i*16, 16)"
    a = buffer("A_s", "shared", f"A[{rows}, 0:16]", "f16", shape=(16, 16))
    b, c = buffer("B_s", "shared", "B[0:8, 0:16]", "f16"), buffer("C_s", "shared", f"C[{rows}, 0:8]", shape=(16, 8))
    held = buffer("C_r", "reg", f"C[{rows}, 0:8]", shape=(16, 8))
    y = buffer("Y_r", "reg", "Y[i*16 : i*16 + 16, 0:8]")
    tile = replace(compute(product, "C_r", "_s", m=rows), unit=unit.name)
    reading = replace(compute(join, "Y_r", "_s", m="i*16 : i*16 + 16"), operands=(("X", "X"), ("C", "C_s")))
    parts = loop("u", 1, Allocate(held), tile, StoreTiles("C_s", "C_r"), scope="warp")
    last = loop("w", 1, Allocate(y), reading, StoreTiles("Y", "Y_r"), scope="warp")
    body = loop("i", 2, *load(a), *load(b), Allocate(c), parts, last, scope="block")
    parameters = (
        whole("A", (16, 16), ttype="f16"),
        whole("B", (8, 16), ttype="f16"),
        whole("X", (32, 8)),
        whole("Y", (32, 8)),
    )
    arrays = {"A": integers((16, 16), "f16"), "B": integers((8, 16), "f16", 1), "X": integers((32, 8), "f32", 2)}
    found, text = emulated(program("joined", parameters, ("Y",), (body,)), arrays, 32, UNITS)
    exact = arrays["A"].astype(np.float32) @ arrays["B"].astype(np.float32).T
    np.testing.assert_array_equal(found["Y"], np.concatenate([arrays["X"][:16], exact]))
    assert "t_mma" in text
