"""Kernels in the words of the tile primitives, to run in the emulator, and what they compute."""

import shutil

import numpy as np
import pytest

from tilec.emulator import EmulatedKernel, Region, build_kernels

needs_compiler = pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="no C++ compiler")

MATMUL = """#include "emu.h"
// 8 x 8 outputs a block, k in steps of 8: rows of B lie 9 words apart
extern "C" __global__ void __launch_bounds__(64) matmul(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
  SMEM(smem_);
  const int tid = threadIdx.x;
  float* const left = (float*)(smem_ + 0);
  float* const right = (float*)(smem_ + 256);
  const int columns = (n + 7) / 8, i = tid / 8, j = tid % 8;
  const int row = blockIdx.x / columns * 8 + i, column = blockIdx.x % columns * 8 + j;
  float sum = 0.f;
  for (int at = 0; at < k; at += 8) {
    STS(left + i * 8 + j, row < m && at + j < k ? LDG(a + row * k + at + j) : 0.f);
    STS(right + i * 9 + j, column < n && at + i < k ? LDG(b + (at + i) * n + column) : 0.f);
    __syncthreads();  // loaded
    for (int q = 0; q < 8; ++q) sum += LDS(left + i * 8 + q) * LDS(right + q * 9 + j);
    __syncthreads();  // read
  }
  if (row < m && column < n) STG(c + row * n + column, sum);
}
"""

SOFTMAX = """#include "emu.h"
// a row a warp: what all lanes hold is stored by one of them
extern "C" __global__ void softmax(
    const float* __restrict__ x, float* __restrict__ y, float* __restrict__ sums, int rows, int n) {
  const int lane = threadIdx.x % 32, row = blockIdx.x * 2 + threadIdx.x / 32;
  if (row >= rows) return;
  float most = -CUDART_INF_F, sum = 0.f;
  for (int i = lane; i < n; i += 32) most = t_max(most, LDG(x + row * n + i));
  for (int d = 16; d > 0; d /= 2) most = t_max(most, t_shfl_xor(most, d));
  for (int i = lane; i < n; i += 32) sum += t_exp(LDG(x + row * n + i) - most);
  for (int d = 16; d > 0; d /= 2) sum += t_shfl_xor(sum, d);
  for (int i = lane; i < n; i += 32) STG(y + row * n + i, t_exp(LDG(x + row * n + i) - most) / sum);
  if (lane == 0) STG(sums + row, sum);
}
"""

STAGED = """#include "emu.h"
// copies of 16 bytes, one stage ahead; a thread reads what another one copied
extern "C" __global__ void staged(const float* __restrict__ x, float* __restrict__ y, int steps) {
  SMEM(smem_);
  float* const tile = (float*)(smem_ + 0);
  const int tid = threadIdx.x;
  cp_async16(tile + tid * 4, x + tid * 4);
  cp_async_commit();
  float sum = 0.f;
  for (int s = 0; s < steps; ++s) {
    if (s + 1 < steps) cp_async16(tile + (s + 1) % 2 * 256 + tid * 4, x + (s + 1) * 256 + tid * 4);
    cp_async_commit();
    cp_async_wait<1>();
    __syncthreads();  // landed
    sum += LDS(tile + s % 2 * 256 + (tid * 4 + 5) % 256);
    __syncthreads();  // free
  }
  STG(y + tid, sum);
}
"""

TRANSPOSE = """#include "emu.h"
extern "C" __global__ void transpose(
    const float* __restrict__ x, float* __restrict__ y, int n, int pitch) {
  SMEM(smem_);
  float* const tile = (float*)(smem_ + 0);
  const int tid = threadIdx.x, r = tid / 32, c = tid % 32;
  for (int i = r; i < 32; i += 2) STS(tile + i * pitch + c, LDG(x + i * n + c));
  __syncthreads();
  for (int i = r; i < 32; i += 2) STG(y + i * n + c, LDS(tile + c * pitch + i));
}
"""


def built(text, name, folder):
    """A kernel of a text."""
    return EmulatedKernel(build_kernels(text, [name], {}, folder), name, text)


def region(array, writable=False):
    """The memory of an array."""
    return Region(array.ctypes.data, array.nbytes, array.itemsize, writable)


def poisoned(*shape):
    """An array that nobody has written."""
    return np.full(shape, np.nan, np.float32)
