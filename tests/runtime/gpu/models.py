"""A small model of two hand-written GPU kernels, its manifest on disk, and what it computes.

y = the row sums of x * w, z = x * w + 1: an input, a constant, an arena and two outputs.
"""

import numpy as np

from tests.emulator.kernels import HEADER
from tilec.abi.gpu_code import CodeFile, GpuArgument, GpuCode, GpuKernel, GpuLaunch
from tilec.abi.job_layout import ABI
from tilec.abi.manifest import Constant, Manifest, Segment, TensorSpec, WeightsFile
from tilec.artifact import Artifact, digest_bytes, encode

ROWS, WIDTH = 5, 37
BYTES = 4 * ROWS * WIDTH

TEXT = """#include "tile.h"
T_KERNEL void scaled(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ p,
                                  float* __restrict__ z) {
  const int i = bid_ * 64 + tid_;
  if (i >= 185) return;
  const float v = LDG(x + i) * LDG(w + i % 37);
  STG(p + i, v);
  STG(z + i, v + 1.f);
}
T_KERNEL void rows(const float* __restrict__ p, float* __restrict__ y) {
  SMEM(smem_);
  float* const part = (float*)(smem_ + 0);
  const int tid = tid_;
  float sum = 0.f;
  for (int i = tid; i < 37; i += 32) sum += LDG(p + bid_ * 37 + i);
  STS(part + tid, sum);
  t_barrier();
  if (tid > 0) return;
  for (int i = 1; i < 32; ++i) sum += LDS(part + i);
  STG(y + bid_, sum);
}
"""


def argument(space, size, writes=False, index=0):
    return GpuArgument(space, index, 0, size, writes)


def write_gpu_model(folder, text=TEXT, binary=None, processor="sm_80"):
    """Write a model of these kernels; returns its manifest and the weights."""
    weights = np.random.default_rng(5).integers(-4, 5, WIDTH).astype(np.float32)
    files = {"w.bin": bytes(64) + weights.tobytes(), "kernels.cu": text.encode(), "tile.h": HEADER.encode()}
    if binary is not None:
        files["kernels.cubin"] = binary
    for name, data in files.items():
        (folder / name).write_bytes(data)
    there = {name: CodeFile(name, digest_bytes(data)) for name, data in files.items()}
    places = [argument("input", BYTES), argument("constant", 148), argument("arena", BYTES, True)]
    operands = (*places, argument("output", BYTES, True, 1))
    sums = (argument("arena", BYTES), argument("output", 4 * ROWS, True))
    code = GpuCode(
        processor=processor,
        text=there["kernels.cu"],
        headers=(there["tile.h"],),
        binary=there.get("kernels.cubin"),
        kernels=(GpuKernel("scaled", "scaled", 3, 64), GpuKernel("rows", "rows", ROWS, 32, 128)),
        launches=(GpuLaunch("scaled", operands, 0, "a"), GpuLaunch("rows", sums, 0, "b")),
    )
    manifest = Manifest(
        abi=ABI,
        library=None,
        inputs=(TensorSpec("x", "f32", (ROWS, WIDTH)),),
        outputs=(TensorSpec("y", "f32", (ROWS,)), TensorSpec("z", "f32", (ROWS, WIDTH))),
        arena_bytes=BYTES,
        segments=(Segment(("a", "b"), 1),),
        weights=(WeightsFile("w.bin", 64 + 4 * WIDTH, there["w.bin"].sha256),),
        constants=(Constant(0, 64, 4 * WIDTH),),
        loader="tilec.runtime.gpu.executor:load",
        gpu=code,
    )
    Artifact("kernels", {}, {"runtime": encode(manifest)}).write(folder / "3-kernels.json")
    return manifest, weights


def feeds(seed=0):
    """An input of small integers, on which floats are exact."""
    return np.random.default_rng(seed).integers(-8, 9, (ROWS, WIDTH)).astype(np.float32)


def check(outputs, x, weights):
    """Compare with NumPy, exactly."""
    np.testing.assert_array_equal(outputs["z"], x * weights + 1)
    np.testing.assert_array_equal(outputs["y"], (x * weights).sum(1))
