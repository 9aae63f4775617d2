"""How units of matrices read factors: chosen by a pass, shown, held by the verifier, refused before printing."""

from dataclasses import replace

import pytest

from tests.codegen.gpu.kernels import kernel_of, program, rows_program
from tests.codegen.gpu.print.test_matrix_tile import UNITS, products
from tests.codegen.gpu.print.test_warpgroup_tile import UNITS as WARPGROUPS
from tests.codegen.gpu.print.test_warpgroup_tile import WGMMA
from tests.codegen.gpu.print.test_warpgroup_tile import products as of_warpgroups
from tests.programs import buffer, compute, load, loop, tensor, whole
from tilec.codegen.gpu.kernel_ir import tiles
from tilec.codegen.gpu.kernel_text import kernel_text
from tilec.codegen.gpu.rewrite import with_tiles
from tilec.codegen.gpu.verify_kernel import check_kernel
from tilec.errors import UnsupportedError
from tilec.ir.expr import Binary, Const
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.program import Allocate, StoreTiles

MMA = "mma.m16n8k16.f16"


@pytest.mark.parametrize(
    ("sizes", "orders", "unit", "loads"),
    [
        ((32, 16, 64), ("m k", "n k"), MMA, "rows and rows"),
        ((32, 16, 64), ("k m", "k n"), MMA, "columns and columns"),
        ((32, 16, 62), ("m k", "k n"), MMA, "words and elements"),
        ((33, 3, 31), ("k m", "n k"), MMA, "elements and elements"),
        ((32, 16, 64), ("m k", "k n"), "mfma.f32.32x32x8.f16", "words and elements"),
    ],
)
def test_lanes_load_the_most_that_lies_side_by_side(sizes, orders, unit, loads):
    made = products(UNITS[unit], *sizes, step=64, a=orders[0], b=orders[1])
    kernel = kernel_of(made, 64 if "mfma" in unit else 32, UNITS).kernel
    assert f"instructions of {loads}" in kernel_text(kernel)


def test_warpgroups_read_memory_from_where_the_rows_of_the_group_begin():
    kernel = kernel_of(of_warpgroups(WARPGROUPS[WGMMA], 128, 64, 128, step=64, tile=64), 32, WARPGROUPS).kernel
    assert "instructions of memory and memory" in kernel_text(kernel)


@pytest.mark.parametrize("change", [{"load": "columns"}, {"load": "words"}, {"at": Const(16)}, {"count": 1}])
def test_factors_that_are_read_otherwise_break_a_rule(change):
    kernel = kernel_of(products(UNITS[MMA], 64, 16, 64, step=64, b="n k"), 32, UNITS).kernel
    assert check_kernel(kernel, KnownRanges()) == ()
    (tile,) = tiles(kernel.body)
    left, right = tile.matrix.factors
    wrong = replace(tile, matrix=replace(tile.matrix, factors=(replace(left, **change), right)))
    (problem,) = check_kernel(with_tiles(kernel, [wrong]), KnownRanges())
    assert problem.endswith("its factors are read otherwise than they lie")


def test_descriptors_of_other_rows_break_a_rule():
    kernel = kernel_of(of_warpgroups(WARPGROUPS[WGMMA], 64, 64, 128, step=64, tile=64), 32, WARPGROUPS).kernel
    (tile,) = tiles(kernel.body)
    left, right = tile.matrix.factors
    moved = replace(left, index=(Binary("+", left.index[0], Const(8)), *left.index[1:]))
    wrong = replace(tile, matrix=replace(tile.matrix, factors=(moved, right)))
    assert check_kernel(with_tiles(kernel, [wrong]), KnownRanges())


def test_elements_of_swizzled_rows_at_places_that_data_tell_are_refused():
    sizes = {"m": 32, "n": 64}
    node = tensor("y[m, n] = x[i[m], n] + 1.0", sizes)
    held = buffer("x_s", "shared", "x[0:32, 0:64]", "f16", swizzle=128)
    result = buffer("y_r", "reg", "y[u : u + 1, 0:64]", "f16")
    tile = replace(compute(node, "y_r", "", m="u : u + 1"), operands=(("x", "x_s"), ("i", "i")))
    units = loop("u", 32, Allocate(result), tile, StoreTiles("y", "y_r"), scope="warp")
    parameters = (whole("x", (32, 64), ttype="f16"), whole("i", (32,), ttype="i64"), whole("y", (32, 64), ttype="f16"))
    body = loop("b", 1, *load(held), units, scope="block")
    with pytest.raises(UnsupportedError, match="data index x, whose rows at shared are swizzled"):
        kernel_of(program("gather", parameters, ("y",), (body,)), 32)


def test_codes_are_refused():
    coded = rows_program(["y[m, n] = x[m, n]"], {"m": 4, "n": 32}, {"x": "u4", "y": "f32"})
    with pytest.raises(UnsupportedError, match="no elements of type u4"):
        kernel_of(coded, 32)
