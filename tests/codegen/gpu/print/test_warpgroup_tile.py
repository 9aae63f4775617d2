"""Products by warpgroups: sums are exact for all orders of storage, and what is out of step is reported."""

from dataclasses import replace

import numpy as np
import pytest

from tests.codegen.gpu.kernels import HEAD, emulated, kernel_of, program, shape_of
from tests.codegen.gpu.print.test_matrix_tile import integers
from tests.emulator.kernels import built, needs_compiler, region
from tests.programs import buffer, compute, load, loop, tensor, whole
from tilec.emulator import ORDERS
from tilec.errors import UnsupportedError
from tilec.ir.program import Allocate, Fill, StoreTiles
from tilec.spec.resolve import device_source, parse_device

pytestmark = needs_compiler

UNITS = {unit.name: unit for unit, _ in parse_device(device_source("h100")).matrix_units}
WGMMA = "wgmma.m64n256k16.f16"


def products(unit, m, n, k, *, step, tile, a="m k", b="k n", swizzles=(128, 128), rows=16):
    """`C` in steps of `k`: a warp has some rows and `tile` columns, warps below one another are neighbours."""
    kind = unit.accumulator
    sizes = {"m": m, "n": n, "k": k}
    left, right = (
        f"{x}[{', '.join(order.split())}]" if of == kind else f"{kind}({x}[{', '.join(order.split())}])"
        for x, order, of in (("A", a, unit.inputs[0]), ("B", b, unit.inputs[1]))
    )
    expr = tensor(f"C[m, n] = sum(k, {left} * {right})", sizes)
    box = {"m": f"u*{rows} : u*{rows} + {rows}", "n": f"v*{tile} : v*{tile} + {tile}"}
    chunk = f"k1*{step} : k1*{step} + {step}"
    spans, widths = {"m": f"0:{m}", "n": f"0:{n}", "k": chunk}, {"m": m, "n": n, "k": step}

    def staged(name, order, ttype, swizzle):
        window = ", ".join(spans[i] for i in order.split())
        shape = tuple(widths[i] for i in order.split())
        return buffer(f"{name}_s", "shared", f"{name}[{window}]", ttype, shape=shape, swizzle=swizzle)

    loads = [staged(name, order, of, s) for name, order, of, s in zip("AB", (a, b), unit.inputs, swizzles, strict=True)]
    c = buffer("C_r", "reg", f"C[{box['m']}, {box['n']}]", kind, shape=(rows, tile))
    one = replace(compute(expr, "C_r", "_s", True, k=chunk, **box), unit=unit.name)
    steps = loop("k1", k // step, *load(loads[0]), *load(loads[1]), one)
    body = [Allocate(c), Fill("C_r", 0), steps, StoreTiles("C", "C_r")]
    shapes = {"A": (a, unit.inputs[0]), "B": (b, unit.inputs[1])}
    parameters = [whole(x, tuple(sizes[i] for i in order.split()), ttype=t) for x, (order, t) in shapes.items()]
    parameters.append(whole("C", (m, n), ttype=kind))
    warps = loop("v", n // tile, loop("u", m // rows, *body, scope="warp"), scope="warp")
    return program("products", tuple(parameters), ("C",), (warps,), capacity=227 << 10)


def arrays(unit, m, n, k, a, b):
    left, right = integers((m, k), unit.inputs[0]), integers((k, n), unit.inputs[1], seed=1)
    stored = {"A": left if a == "m k" else left.T.copy(), "B": right if b == "k n" else right.T.copy()}
    return stored, left.astype(np.float64) @ right.astype(np.float64)


HALVES = [
    (64, 64, 64, 64, "m k", "k n", (128, 128)),
    (64, 128, 32, 128, "m k", "n k", (64, 64)),
    (128, 96, 16, 48, "m k", "k n", (32, 32)),
    (64, 256, 128, 128, "k m", "k n", (128, 128)),
    (64, 64, 64, 24, "m k", "n k", (128, 128)),
]
CASES = [(WGMMA, *case) for case in HALVES] + [
    ("wgmma.m64n256k16.bf16", *HALVES[0]),
    ("wgmma.m64n256k32.s8", 64, 64, 64, 32, "m k", "n k", (64, 64)),
    ("wgmma.m64n256k32.s8", 64, 32, 128, 16, "m k", "n k", (128, 128)),
]


@pytest.mark.quick_cases(
    "wgmma.m64n256k16.f16-64-128-32-128-m k-n k-swizzles1",
    "wgmma.m64n256k32.s8-64-64-64-32-m k-n k-swizzles6",
    "wgmma.m64n256k32.s8-64-32-128-16-m k-n k-swizzles7",
)
@pytest.mark.feature("L21")
@pytest.mark.parametrize(("name", "m", "n", "step", "tile", "a", "b", "swizzles"), CASES)
def test_sums_are_those_of_the_elements(name, m, n, step, tile, a, b, swizzles):
    unit, n = UNITS[name], n // tile * tile
    stored, expected = arrays(unit, m, n, 2 * step, a, b)
    made = products(unit, m, n, 2 * step, step=step, tile=tile, a=a, b=b, swizzles=swizzles)
    found, text = emulated(made, stored, 32, UNITS)
    np.testing.assert_array_equal(found["C"], expected)
    assert f"m64n{tile}k{unit.depth}" in text
    assert "ldmatrix" not in text


FAULTS = {
    "t_wait_products(acc);": "product never awaited",
    "t_commit_products();": "product never awaited",
    "t_warpgroup_fence(acc);": "sums without a fence",
    "t_publish();": "store never published",
}


@pytest.mark.quick_cases("t_commit_products();-product never awaited", "t_publish();-store never published")
@pytest.mark.feature("L21")
@pytest.mark.parametrize(("dropped", "reported"), FAULTS.items())
def test_what_is_left_out_is_reported(dropped, reported):
    unit = UNITS[WGMMA]
    made = products(unit, 64, 64, 128, step=64, tile=64)
    stored, _ = arrays(unit, 64, 64, 128, "m k", "k n")
    printed = kernel_of(made, 32, UNITS)
    assert dropped in printed.text
    text = HEAD + "".join(printed.functions.values()) + printed.text.replace(dropped, "")
    kernel = built(text, "kernel", 32)
    shape = shape_of(printed)
    for order in ORDERS:
        out = np.zeros((64, 64), np.float32)
        told = kernel.launch(shape, [region(stored["A"]), region(stored["B"]), region(out, True)], order)
        assert reported in {finding.kind for finding in told.findings}, order.name


def test_stores_into_factors_of_products_in_flight_are_reported():
    unit = UNITS[WGMMA]
    made = products(unit, 64, 64, 128, step=64, tile=64)
    stored, _ = arrays(unit, 64, 64, 128, "m k", "k n")
    printed = kernel_of(made, 32, UNITS)
    early = printed.text.replace("t_commit_products();", "STS(A_s, f16{0}); t_commit_products();")
    kernel = built(HEAD + "".join(printed.functions.values()) + early, "kernel", 32)
    shape = shape_of(printed)
    out = np.zeros((64, 64), np.float32)
    told = kernel.launch(shape, [region(stored["A"]), region(stored["B"]), region(out, True)])
    assert "product in flight" in {finding.kind for finding in told.findings}


REFUSED = [
    ({"rows": 32}, "whole instructions"),
    ({"tile": 8, "n": 64, "b": "n k"}, None),
    ({"step": 40, "swizzles": (0, 0)}, "in swizzled rows"),
    ({"m": 32}, "rows of 4 warps beside one another"),
    ({"tile": 32}, "from the beginning of a panel on"),
]


@pytest.mark.parametrize(("change", "words"), REFUSED)
def test_tiles_that_instructions_do_not_take_are_refused(change, words):
    how = {"m": 64, "n": 64, "k": 128, "step": 64, "tile": 64} | change
    made = products(UNITS[WGMMA], how.pop("m"), how.pop("n"), how.pop("k"), **how)
    if words is None:
        assert kernel_of(made, 32, UNITS).functions
        return
    with pytest.raises(UnsupportedError, match=words):
        kernel_of(made, 32, UNITS)
