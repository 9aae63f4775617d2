"""Blocks have the threads that leave fewest units idle, and copies move vectors where guards allow it."""

import numpy as np
import pytest

from tests.codegen.gpu.kernels import emulated, kernel_of, program, rows_program
from tests.emulator.kernels import needs_compiler
from tests.programs import buffer, compute, intervals, load, loop, tensor, whole
from tilec.codegen.gpu.kernel_context import KernelContext
from tilec.codegen.gpu.lane_registers import FREE
from tilec.codegen.gpu.passes.choose_launch import resident_blocks
from tilec.codegen.gpu.passes.lower_program import lower_program
from tilec.codegen.gpu.pipeline import lower_kernel
from tilec.ir.expr import Const
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.program import Allocate, StoreTiles
from tilec.spec.machine_costs import GpuCosts

LANES = 32


def nests(*counts, together=False, grid=1):
    """A block that squares rows, a nest of warps for each count of rows."""
    body, names = [], [f"y{n}" for n in range(len(counts))]
    x = buffer("x_s", "shared", "x[0:1, 0:32]")
    for name, count in zip(names, counts, strict=True):
        node = tensor(f"{name}[m, n] = x[0, n] * x[0, n]", {"m": count, "n": LANES})
        held = buffer(f"{name}_r", "reg", f"{name}[u:u + 1, 0:{LANES}]")
        inner = [Allocate(held), compute(node, held.name, "_s", m="u:u + 1"), StoreTiles(name, held.name)]
        body.append(loop("u", count, *(load(x) if together else ()), *inner, scope="warp"))
    outputs = tuple(names)
    parameters = (whole("x", (1, LANES)), *(whole(n, (c, LANES)) for n, c in zip(names, counts, strict=True)))
    inside = body if together else [*load(x), *body]
    return program("nests", parameters, outputs, (loop("b", grid, *inside, scope="block"),))


def registers_of(made):
    """Bytes that a lane of a program's kernel is expected to need."""
    return lower_kernel(KernelContext(made, LANES, KnownRanges())).launched.registers


def taken(counts, units):
    """Turns of all nests, of which every unit takes part in each."""
    return sum(-(-n // units) * units for n in counts)


@pytest.mark.feature("W26")
@pytest.mark.parametrize(
    ("counts", "threads"),
    [((1,), 128), ((8, 8, 48), 8 * LANES), ((11,), 11 * LANES), ((22, 44), 22 * LANES), ((31, 31), 31 * LANES)],
)
def test_no_units_are_idle_where_a_number_of_them_takes_all_nests(counts, threads):
    printed = kernel_of(nests(*counts), LANES)
    units = printed.launch.threads // LANES
    assert sum(-(-n // units) * units for n in counts) <= sum(
        -(-n // (threads // LANES)) * (threads // LANES) for n in counts
    )
    assert printed.launch.threads <= threads


def test_units_that_act_together_are_all_there():
    assert kernel_of(nests(12, 2, together=True), LANES).launch.threads == 12 * LANES


@pytest.mark.parametrize("together", [False, True])
def test_units_take_turns_where_registers_do_not_suffice_for_all(together):
    made = nests(16, 32, together=together)
    registers = 128 * registers_of(made)
    assert kernel_of(made, LANES).launch.threads >= 16 * LANES
    least = 32 * LANES if together else 128
    assert kernel_of(made, LANES, registers=registers).launch.threads == least


@pytest.mark.parametrize(
    ("shared", "grid", "blocks"), [(1024, 40, 10), (24 << 10, 40, 2), (1024, 8, 2), (1024, 1, 1), (48 << 10, 40, 1)]
)
def test_blocks_share_a_core_as_its_memory_and_the_grid_allow(shared, grid, blocks):
    """Four cores of 48 KiB."""
    assert resident_blocks(lower_program(nests(4)), Const(shared), Const(grid), KnownRanges()) == blocks


@pytest.mark.parametrize(("registers", "blocks"), [(8 * 128 * FREE, 2), (128 * FREE, 1), (None, 2)])
def test_kernels_take_the_registers_that_the_blocks_of_a_core_leave(registers, blocks):
    """Eight warps of a core are two blocks of 128 threads."""
    made = nests(4, grid=40)
    text = kernel_of(made, LANES, registers=registers).text
    assert f"T_BOUNDS(128, {blocks})" in text


def test_registers_of_a_tile_are_its_points_or_its_operands_and_some_beside():
    costs, made = GpuCosts(), nests(4)
    assert registers_of(made) == 4 * (1 + costs.beside_points)
    both = rows_program(
        ["z[m, n] = x[m, n] * 2.0", "y[m, n] = x[m, n] + x[m, n] * z[m, n]"],
        {"m": 4, "n": 96},
        {"x": "f32", "z": "f32", "y": "f32"},
    )
    assert registers_of(both) == 4 * (2 * 3 + costs.beside_points)
    sums = rows_program(["y[m] = sum(n, x[m, n])"], {"m": 4, "n": 96}, {"x": "f32", "y": "f32"})
    assert registers_of(sums) == 4 * (1 + costs.beside_sums)


@pytest.mark.slow_cases("10-f32-4")
@needs_compiler
@pytest.mark.parametrize(("rows", "ttype", "vector"), [(10, "f32", 4), (10, "f16", 8), (7, "f32", 4)])
def test_tiles_that_overlap_are_stored_in_vectors(rows, ttype, vector):
    tile = 4
    at = f"minimum(m1*{tile}, {rows - tile})"
    node = tensor("y[m, n] = x[m, n] * 2.0", {"m": rows, "n": 64})
    x = buffer("x_s", "shared", f"x[{at}:{at} + {tile}, 0:64]", ttype)
    y = buffer("y_s", "shared", f"y[{at}:{at} + {tile}, 0:64]", ttype)
    held = buffer("y_r", "reg", f"y[{at} + u:{at} + u + 1, 0:64]", ttype)
    inner = [Allocate(held), compute(node, "y_r", "_s", m=f"{at} + u:{at} + u + 1"), StoreTiles("y_s", "y_r")]
    (lo, hi), all_of = intervals(f"m1*{tile}:{at} + {tile}")[0], intervals("0:64")[0]
    store = StoreTiles("y", "y_s", (lo, all_of[0]), (hi, all_of[1]))
    body = [Allocate(y), *load(x), loop("u", tile, *inner, scope="warp"), store]
    parameters = (whole("x", (rows, 64), ttype=ttype), whole("y", (rows, 64), ttype=ttype))
    blocks = loop("m1", -(-rows // tile), *body, scope="block")
    values = np.arange(rows * 64).reshape(rows, 64).astype("f4" if ttype == "f32" else "f2")
    found, text = emulated(program("rows", parameters, ("y",), (blocks,)), {"x": values}, LANES)
    np.testing.assert_array_equal(found["y"], values * 2)
    assert f"STG{vector}(" in text
    assert "STG(" not in text


@needs_compiler
@pytest.mark.parametrize(("fill", "units"), [(0.0, ""), (1.0, ""), (0.0, ", 0:1, 0:1")])
def test_rows_of_a_halo_are_loaded_in_vectors(fill, units):
    """Guards are about rows as a whole; dimensions of extent 1 behind a row do not part its elements."""
    shape = (6, 32, *(1 for _ in units.split(",")[1:]))
    indices = "n" + ", 0" * (len(shape) - 2)
    node = tensor(f"y[i, n] = sum(r, x[i + r - 1, {indices}])", {"i": 6, "n": 32, "r": 3})
    x = buffer("x_s", "shared", f"x[i1*2 - 1 : i1*2 + 3, 0:32{units}]", "f16", shape=(4, *shape[1:]))
    y = buffer("y_r", "reg", "y[i1*2 + u : i1*2 + u + 1, 0:32]", "f32")
    rows = "i1*2 + u : i1*2 + u + 1"
    unit = loop("u", 2, Allocate(y), compute(node, "y_r", "_s", i=rows), StoreTiles("y", "y_r"), scope="warp")
    parameters = (whole("x", shape, ttype="f16"), whole("y", (6, 32)))
    body = (loop("i1", 3, *load(x, fill=fill), unit, scope="block"),)
    values = np.random.default_rng(3).integers(-4, 5, shape).astype(np.float16)
    found, text = emulated(program("halo", parameters, ("y",), body), {"x": values}, LANES)
    padded = np.pad(values.reshape(6, 32).astype(np.float32), ((1, 1), (0, 0)), constant_values=fill)
    np.testing.assert_array_equal(found["y"], padded[:-2] + padded[1:-1] + padded[2:])
    assert ("LDG8(" if fill else "t_copy(16, ") in text, "what is zero where there is nothing arrives by itself"
    assert ("t_wait_copies<0>();\n  t_barrier();" in text) == (not fill)
    assert "LDG(" not in text
