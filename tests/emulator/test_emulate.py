"""Kernels in the emulator: right in all orders, races and barriers told, requests counted from addresses."""

import numpy as np
import pytest

from tests.emulator.kernels import (
    MATMUL,
    PRODUCT,
    SOFTMAX,
    STAGED,
    TRANSPOSE,
    WARP_SUM,
    built,
    needs_compiler,
    poisoned,
    region,
)
from tilec.emulator import ORDERS, Order, Shape
from tilec.emulator.emulate import sample

pytestmark = needs_compiler


def matmul(kernel, m, n, k, order, blocks=None):
    """Outputs of integers, exact ones, and the emulation."""
    rng = np.random.default_rng(m * n + k)
    a, b = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    c = poisoned(m, n)
    shape = Shape(-(-m // 8) * -(-n // 8), 64, 256 + 8 * 9 * 4)
    found = kernel.launch(shape, [region(a), region(b), region(c, True), m, n, k], order, blocks)
    return c, a @ b, found


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.name)
def test_clean_kernels_are_right_and_raise_nothing_in_any_order(order):
    kernel = built(MATMUL, "matmul")
    for m, n, k in ((1, 1, 1), (17, 9, 21), (8, 24, 8)):
        actual, expected, found = matmul(kernel, m, n, k, order)
        np.testing.assert_array_equal(actual, expected)
        assert not found.findings
    assert [barrier.needed for barrier in matmul(kernel, 17, 9, 21, order)[2].barriers] == [True, True]
    x = np.random.default_rng(3).normal(size=(5, 37)).astype(np.float32)
    y, sums = poisoned(5, 37), poisoned(5)
    softmax = built(SOFTMAX, "softmax")
    told = softmax.launch(Shape(3, 64), [region(x), region(y, True), region(sums, True), 5, 37], order)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5)
    assert not told.findings


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.name)
@pytest.mark.parametrize(("site", "buffers"), [("loaded", {"left", "right"}), ("read", {"left", "right"})])
def test_a_dropped_barrier_is_reported_with_buffer_and_both_lines(order, site, buffers):
    text = MATMUL.replace(f"t_barrier();  // {site}", ";")
    _, _, found = matmul(built(text, "matmul"), 8, 8, 16, order)
    races = [each for each in found.findings if each.kind == "race"]
    assert {each.second.buffer for each in races} == buffers
    lines = text.splitlines()
    for race in races:
        for place in (race.first, race.second):
            assert place.buffer in lines[place.line - 1]
        assert "write" in race.first.access + race.second.access


def test_swapped_lanes_and_pads_off_by_one_are_seen():
    swapped = SOFTMAX.replace("t_shfl_xor(sum, d)", "t_shfl_xor(sum, d ^ 1)")
    x = np.random.default_rng(3).normal(size=(2, 40)).astype(np.float32)
    y, sums = poisoned(2, 40), poisoned(2)
    built(swapped, "softmax").launch(Shape(1, 64), [region(x), region(y, True), region(sums, True), 2, 40])
    e = np.exp(x)
    assert np.abs(y - e / e.sum(1, keepdims=True)).max() > 0.01
    all_lanes = SOFTMAX.replace("if (lane == 0) STG(sums", "STG(sums")
    told = built(all_lanes, "softmax").launch(Shape(1, 64), [region(x), region(y, True), region(sums, True), 2, 40])
    assert {(each.kind, each.second.buffer) for each in told.findings} == {("race", "sums")}
    pad = MATMUL.replace("LDS(right + q * 9 + j)", "LDS(right + q * 10 + j)")
    actual, expected, found = matmul(built(pad, "matmul"), 8, 8, 8, ORDERS[0])
    assert not np.array_equal(actual, expected)
    assert ("out of bounds", "right") in {(each.kind, each.first.buffer) for each in found.findings}


def test_outside_of_arguments_nothing_is_touched():
    text = MATMUL.replace("row < m && column < n) STG", "row <= m && column < n) STG")
    guard = np.zeros(64, np.float32)
    a, b, c = np.ones((7, 4), np.float32), np.ones((4, 8), np.float32), guard[:56]
    found = built(text, "matmul").launch(Shape(1, 64, 544), [region(a), region(b), region(c, True), 7, 8, 4])
    assert [(each.kind, each.first.buffer, each.count) for each in found.findings] == [("out of bounds", "c", 8)]
    np.testing.assert_array_equal(guard, [4.0] * 56 + [0.0] * 8)


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.name)
def test_copies_land_when_they_are_waited_for(order):
    def run(text):
        x, y = np.arange(768, dtype=np.float32), poisoned(64)
        found = built(text, "staged").launch(Shape(1, 64, 2048), [region(x), region(y, True), 3], order)
        return y, {each.kind for each in found.findings}, x.reshape(3, 256)[:, (np.arange(64) * 4 + 5) % 256].sum(0)

    actual, kinds, expected = run(STAGED)
    np.testing.assert_array_equal(actual, expected)
    assert not kinds
    assert "copy in flight" in run(STAGED.replace("t_wait_copies<1>", "t_wait_copies<2>"))[1]
    assert "race" in run(STAGED.replace("t_barrier();  // free", ""))[1]
    assert "copy never awaited" in run(STAGED.replace("t_wait_copies<1>();", ""))[1]


def test_needless_and_unmet_barriers_are_told():
    twice = MATMUL.replace("t_barrier();  // read", "t_barrier();  // read\n    t_barrier();")
    _, _, found = matmul(built(twice, "matmul"), 8, 8, 16, ORDERS[0])
    assert not found.findings
    assert len(found.needless) == 2  # either of the two in a row may go, not both
    divergent = MATMUL.replace("t_barrier();  // read", "if (tid < 40) t_barrier();")
    _, _, found = matmul(built(divergent, "matmul"), 8, 8, 8, Order("random", 3))
    assert [(each.kind, each.count) for each in found.findings if each.kind == "never met"] == [("never met", 40)]


def aligned(*shape):
    """An array that begins at a sector."""
    count = int(np.prod(shape))
    block = np.empty(count + 8, np.float32)
    start = -block.ctypes.data % 32 // 4
    return block[start : start + count].reshape(shape)


def test_sectors_and_wavefronts_come_from_addresses():
    x, y = aligned(32, 32), aligned(32, 32)
    x[...] = np.arange(1024).reshape(32, 32)
    for pitch, conflicts in ((33, 1), (32, 32), (34, 2)):
        told = built(TRANSPOSE, "transpose").launch(
            Shape(1, 64, 32 * pitch * 4), [region(x), region(y, True), 32, pitch]
        )
        np.testing.assert_array_equal(y, x.T)
        read = told.total("shared read")
        assert (read.requests, read.ideal, read.units) == (32, 32, 32 * conflicts)
        assert [(t.units, t.ideal, t.bytes) for t in map(told.total, ("global read", "global write"))] == [
            (128, 128, 4096)
        ] * 2


def test_blocks_may_store_the_same_but_read_nothing_of_each_other():
    overlapping = """#include "tile.h"
T_KERNEL void overlapping(float* __restrict__ y, const float* __restrict__ x) {
  STG(y + bid_ * 24 + tid_, VALUE);
}
"""
    x = np.arange(56, dtype=np.float32)
    for value, kinds in (
        ("LDG(x + bid_ * 24 + tid_)", []),
        ("bid_ + 1.f", [("race of blocks", (0, 1), 8)]),
        ("bid_ > 0 ? LDG(y + tid_ % 24) : LDG(x)", [("race of blocks", (0, 1), 32)]),
    ):
        text = overlapping.replace("VALUE", value)
        found = built(text, "overlapping").launch(Shape(2, 32), [region(poisoned(56), True), region(x)]).findings
        assert [(each.kind, each.threads, each.count) for each in found] == kinds
    assert str(found[0]) == "race of blocks 0 and 1: the global read in line 3 of y, 32 times"


def test_a_sample_of_blocks_runs_alone():
    assert sample(5, 8) == [0, 1, 2, 3, 4]
    assert sample(1000, 3) == [0, 500, 999]
    actual, expected, found = matmul(built(MATMUL, "matmul"), 16, 24, 8, ORDERS[0], blocks=[0, 5])
    written = ~np.isnan(actual)
    assert (found.blocks, found.grid, int(written.sum())) == (2, 6, 128)
    np.testing.assert_array_equal(actual[written], expected[written])


def test_matrix_fragments_multiply_and_need_the_warp_to_meet():
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-8, 9, (16, 16)).astype(np.float16) for _ in range(2))
    c = poisoned(16, 8)
    arguments = [region(a), region(b), region(c, True)]
    assert not built(PRODUCT, "product").launch(Shape(1, 32, 1024), arguments).findings
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b[:, :8].astype(np.float32))
    unmet = PRODUCT.replace("t_warp_barrier();", "")
    told = built(unmet, "product").launch(Shape(1, 32, 1024), arguments)
    assert {(each.kind, each.second.buffer) for each in told.findings} >= {("race", "left"), ("race", "right")}


@pytest.mark.parametrize("lanes", [32, 64])
def test_warps_have_the_lanes_of_the_processor(lanes):
    x, y = np.arange(128, dtype=np.int32), np.zeros(128, np.int32)
    told = built(WARP_SUM, "warp_sum", lanes).launch(Shape(1, 128), [region(x), region(y, True)])
    np.testing.assert_array_equal(y, np.repeat(2 * x.reshape(-1, lanes).sum(1), lanes))
    assert told.total("global read").requests == 128 // lanes


def test_registers_begin_with_a_pattern_and_shared_memory_as_nan():
    text = """#include "tile.h"
T_KERNEL void unset(float* __restrict__ y) {
  SMEM(smem_);
  float held[2];
  STG(y + tid_, held[tid_ % 2]);
  STG(y + 32 + tid_, LDS((float*)smem_ + tid_));
}
"""
    y = np.zeros(64, np.float32)
    built(text, "unset").launch(Shape(1, 32, 128), [region(y, True)])
    assert np.isnan(y[32:]).all()
    assert (~(np.abs(y[:32]) < 1e30)).all()


def test_swizzled_places_may_lie_before_whole_periods():
    """A constant part of an address may be taken in front of what is swizzled, which is negative then."""
    text = """#include "tile.h"
T_KERNEL void turned(const f16* __restrict__ x, f16* __restrict__ y) {
  SMEM(smem_);
  f16* const tile = (f16*)(smem_ + 0);
  const int tid = tid_;
  for (int e = tid; e < 1024; e += 64) STS(tile + 1024 + t_swizzled(e - 1024, 128, 2), LDG(x + e));
  t_barrier();
  for (int e = tid; e < 1024; e += 64) STG(y + e, LDS(tile + t_swizzled(e, 128, 2)));
}
"""
    x, y = np.arange(1024, dtype=np.float16), np.zeros(1024, np.float16)
    assert not built(text, "turned").launch(Shape(1, 64, 2048), [region(x), region(y, True)], ORDERS[0]).findings
    np.testing.assert_array_equal(y, x)
