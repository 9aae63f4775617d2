"""Tile programs of three levels as GPU kernels that the emulator runs."""

from dataclasses import replace

import numpy as np

from tests.emulator.kernels import built, region
from tests.programs import DRAM, buffer, compute, load, loop, tensor, whole
from tilec.codegen.gpu.kernel_context import KernelContext
from tilec.codegen.gpu.pipeline import lower_kernel
from tilec.codegen.gpu.print.kernel import print_kernel
from tilec.emulator import ORDERS, Shape
from tilec.ir.expr import constant_value
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.plan import PlanLevel
from tilec.ir.program import Allocate, Program, StoreTiles
from tilec.ir.types import numpy_dtype
from tilec.lower.places import with_places_and_barriers

SHARED = PlanLevel("shared", 48 << 10, 4, scope="block", alignment=16)
REG = PlanLevel("reg", 1 << 16, 8, scope="warp")
HEAD = '#include "tile.h"\n'


def program(name, parameters, outputs, body, capacity=SHARED.capacity):
    """A program with places and barriers, in blocks of so many bytes of shared memory."""
    levels = (DRAM, replace(SHARED, capacity=capacity), REG)
    return Program(name, levels, (), parameters, outputs, with_places_and_barriers(body, parameters, levels))


def kernel_of(tile_program, lanes, units=None, registers=None):
    """The kernel of a program whose units have so many lanes, as the rules decide."""
    context = KernelContext(tile_program, lanes, KnownRanges(), units or {}, registers)
    return print_kernel(lower_kernel(context), "kernel", KnownRanges())


def shape_of(printed):
    """How a kernel is started."""
    launch = printed.launch
    return Shape(constant_value(launch.grid), launch.threads, constant_value(launch.shared_bytes))


def emulated(tile_program, arrays, lanes, units=None, counts=None):
    """Run a program, whose `units` multiply matrices, in all orders of threads; returns its outputs and its text, and
    adds what the emulator tells to `counts`."""
    printed = kernel_of(tile_program, lanes, units)
    kernel = built(HEAD + "".join(printed.functions.values()) + printed.text, "kernel", max(32, lanes))
    shape = shape_of(printed)
    results = []
    for order in ORDERS:
        memory = {
            p.name: np.array(arrays[p.tensor]) if p.tensor in arrays else _empty(p) for p in tile_program.parameters
        }
        regions = [region(memory[p.name], p.name in tile_program.outputs) for p in tile_program.parameters]
        told = kernel.launch(shape, regions, order)
        assert not told.findings, order.name
        if counts is not None:
            counts.append(told)
        results.append({name: memory[name] for name in tile_program.outputs})
    for other in results[1:]:
        for name, value in results[0].items():
            np.testing.assert_array_equal(other[name].view(np.uint8), value.view(np.uint8))
    return results[0], printed.text


def _empty(parameter):
    shape = tuple(constant_value(n) for n in parameter.shape)
    return np.full(int(np.prod(shape)), 93, np.uint8).repeat(numpy_dtype(parameter.ttype).itemsize).view(
        numpy_dtype(parameter.ttype)
    ).reshape(shape)  # fmt: skip


def rows_program(texts, sizes, ttypes, tile=2):
    """Rows of `m`, `tile` a block and one a unit; every text is a node, all of them in registers; `x` is the input."""
    m = sizes["m"]
    nodes = [tensor(text, sizes) for text in texts]
    rows = f"minimum(m1*{tile}, {max(0, m - tile)}) + u : minimum(m1*{tile}, {max(0, m - tile)}) + u + 1"
    tile = min(tile, m)

    def window(node):
        return ", ".join(rows if i == "m" else f"0:{sizes[i]}" for i in node.spatial)

    x = buffer("x_r", "reg", f"x[{rows}, 0:{sizes['n']}]", ttypes["x"])
    body = [*load(x)]
    for node in nodes:
        held = buffer(f"{node.tensor}_r", "reg", f"{node.tensor}[{window(node)}]", ttypes[node.tensor])
        body += [Allocate(held), compute(node, held.name, "_r", m=rows), StoreTiles(node.tensor, held.name)]
    outputs = tuple(node.tensor for node in nodes)
    parameters = (
        whole("x", (m, sizes["n"]), ttype=ttypes["x"]),
        *(whole(n.tensor, tuple(sizes[i] for i in n.spatial), ttype=ttypes[n.tensor]) for n in nodes),
    )
    blocks = loop("m1", -(-m // tile), loop("u", tile, *body, scope="warp"), scope="block")
    return program("rows", parameters, outputs, (blocks,))
