"""Kernels in the words of the tile primitives, to run in the emulator, and what they compute."""

import shutil
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tilec.codegen import gpu
from tilec.emulator import EmulatedKernel, Region, build_kernels
from tilec.verify import on_emulator

needs_compiler = pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="no C++ compiler")

MATMUL = """#include "tile.h"
// 8 x 8 outputs a block, k in steps of 8: rows of B lie 9 words apart
T_KERNEL void T_BOUNDS(64, 1) matmul(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
  SMEM(smem_);
  const int tid = tid_;
  float* const left = (float*)(smem_ + 0);
  float* const right = (float*)(smem_ + 256);
  const int columns = (n + 7) / 8, i = tid / 8, j = tid % 8;
  const int row = bid_ / columns * 8 + i, column = bid_ % columns * 8 + j;
  float sum = 0.f;
  for (int at = 0; at < k; at += 8) {
    STS(left + i * 8 + j, row < m && at + j < k ? LDG(a + row * k + at + j) : 0.f);
    STS(right + i * 9 + j, column < n && at + i < k ? LDG(b + (at + i) * n + column) : 0.f);
    t_barrier();  // loaded
    for (int q = 0; q < 8; ++q) sum += LDS(left + i * 8 + q) * LDS(right + q * 9 + j);
    t_barrier();  // read
  }
  if (row < m && column < n) STG(c + row * n + column, sum);
}
"""

SOFTMAX = """#include "tile.h"
// a row a warp: what all lanes hold is stored by one of them
T_KERNEL void softmax(
    const float* __restrict__ x, float* __restrict__ y, float* __restrict__ sums, int rows, int n) {
  const int lane = tid_ % 32, row = bid_ * 2 + tid_ / 32;
  if (row >= rows) return;
  float most = -T_INF, sum = 0.f;
  for (int i = lane; i < n; i += 32) most = t_max(most, LDG(x + row * n + i));
  for (int d = 16; d > 0; d /= 2) most = t_max(most, t_shfl_xor(most, d));
  for (int i = lane; i < n; i += 32) sum += t_exp(LDG(x + row * n + i) - most);
  for (int d = 16; d > 0; d /= 2) sum += t_shfl_xor(sum, d);
  for (int i = lane; i < n; i += 32) STG(y + row * n + i, t_exp(LDG(x + row * n + i) - most) / sum);
  if (lane == 0) STG(sums + row, sum);
}
"""

STAGED = """#include "tile.h"
// copies of 16 bytes, one stage ahead; a thread reads what another one copied
T_KERNEL void staged(const float* __restrict__ x, float* __restrict__ y, int steps) {
  SMEM(smem_);
  float* const tile = (float*)(smem_ + 0);
  const int tid = tid_;
  t_copy(16, tile + tid * 4, x + tid * 4, true);
  t_commit_copies();
  float sum = 0.f;
  for (int s = 0; s < steps; ++s) {
    if (s + 1 < steps) t_copy(16, tile + (s + 1) % 2 * 256 + tid * 4, x + (s + 1) * 256 + tid * 4, true);
    t_commit_copies();
    t_wait_copies<1>();
    t_barrier();  // landed
    sum += LDS(tile + s % 2 * 256 + (tid * 4 + 5) % 256);
    t_barrier();  // free
  }
  STG(y + tid, sum);
}
"""

PRODUCT = """#include "tile.h"
// 16 x 8 sums of 16 products of halves, on the fragments of one warp
T_KERNEL void product(const f16* __restrict__ a, const f16* __restrict__ b, float* __restrict__ c) {
  SMEM(smem_);
  f16* const left = (f16*)(smem_ + 0);
  f16* const right = (f16*)(smem_ + 512);
  STS8(left + tid_ * 8, LDG8(a + tid_ * 8));
  STS8(right + tid_ * 8, LDG8(b + tid_ * 8));
  t_warp_barrier();
  unsigned fa[4], fb[4];
  ldmatrix4(fa, left + tid_ % 16 * 16 + tid_ / 16 * 8);
  ldmatrix4t(fb, right + tid_ % 16 * 16 + tid_ / 16 * 8);
  float s[4] = {0.f, 0.f, 0.f, 0.f};
  t_mma_m16n8k16_f16(s, fa, fb);
  for (int i = 0; i < 4; ++i) STG(c + (tid_ / 4 + i / 2 * 8) * 8 + tid_ % 4 * 2 + i % 2, s[i]);
}
"""

WARP_SUM = """#include "tile.h"
T_KERNEL void warp_sum(const int* __restrict__ x, int* __restrict__ y) {
  int sum = LDG(x + tid_);
  for (int d = EMU_LANES / 2; d > 0; d /= 2) sum += t_shfl_xor(sum, d);
  STG(y + tid_, sum + t_shfl(sum, 0));
}
"""

TRANSPOSE = """#include "tile.h"
T_KERNEL void transpose(
    const float* __restrict__ x, float* __restrict__ y, int n, int pitch) {
  SMEM(smem_);
  float* const tile = (float*)(smem_ + 0);
  const int tid = tid_, r = tid / 32, c = tid % 32;
  for (int i = r; i < 32; i += 2) STS(tile + i * pitch + c, LDG(x + i * n + c));
  t_barrier();
  for (int i = r; i < 32; i += 2) STG(y + i * n + c, LDS(tile + c * pitch + i));
}
"""


KEPT = 7 * 24 * 3600
"""Seconds that a library of a kernel is kept."""

HEADER = (Path(gpu.__file__).parent / "tile.h").read_text()


@cache
def emulator_cache():
    """The folder of what all processes build, `verify` too, by content: the emulator itself once. Old files go."""
    folder = on_emulator.emulator_cache()
    for path in folder.glob("*.[os]*"):
        if path.stat().st_mtime < time.time() - KEPT:
            path.unlink(missing_ok=True)
    return folder


def built(text, name, lanes=32):
    """A kernel of a text."""
    library = build_kernels(text, [name], {"tile.h": HEADER}, emulator_cache(), lanes)
    return EmulatedKernel(library, name, text)


def region(array, writable=False):
    """The memory of an array."""
    return Region(array.ctypes.data, array.nbytes, array.itemsize, writable)


def poisoned(*shape):
    """An array that nobody has written."""
    return np.full(shape, np.nan, np.float32)
