"""Latencies in cycles: loads by where they hit, copies that are waited for, barriers, fences, shuffles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.on_gpu.probes.probe import Probe

STEPS = 2048

FOOTPRINTS = {
    "16 KiB": 16 << 10,
    "1 MiB": 1 << 20,
    "8 MiB": 8 << 20,
    "24 MiB": 24 << 20,
    "40 MiB": 40 << 20,
    "512 MiB": 512 << 20,
}
"""Bytes of a chain of loads, one in every 128."""

LINE = 128

_LOOPS = {
    "barrier": "__syncthreads();",
    "shuffle": 'asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 0x1f, 0xffffffff;" : "+r"(b));',
    "fence-async": 'asm volatile("fence.proxy.async.shared::cta;" ::: "memory");',
    "fence-block": "__threadfence_block();",
    "fence-device": "__threadfence();",
    "shared-load": 'asm volatile("ld.shared.u32 %0, [%1];" : "=r"(b) : "r"(base + b));',
    "ex2": 'asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));',
    "fma": 'asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(x) : "f"(y));',
    "ldmatrix": 'asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"'
    ' : "=r"(b), "=r"(d), "=r"(d), "=r"(d) : "r"(base + b));',
    "copy-and-wait": "t_copy(16, smem + tid_ * 16, data + tid_ * 4 + (n & 63) * 4096, true); t_commit_copies();"
    " t_wait_copies<0>();",
    "copy-wait-barrier": "t_copy(16, smem + tid_ * 16, data + tid_ * 4 + (n & 63) * 4096, true); t_commit_copies();"
    " t_wait_copies<0>(); __syncthreads();",
    "load-store-barrier": "{ const uint4 v = *(const volatile_uint4*)(data + tid_ * 4 + (n & 63) * 4096);"
    " *(uint4*)(smem + tid_ * 16) = v; __syncthreads(); }",
    "mbarrier": """{ asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory");
      unsigned done = 0;
      while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(bar), "r"(n & 1) : "memory"); }""",
    "publish-barrier": "t_publish(); __syncthreads();",
}
"""What a loop repeats."""

WARPS = (1, 4, 8, 16, 32)


def text() -> str:
    """The kernels."""
    return "\n".join([_CHASE, *(_loop(name, line) for name, line in _LOOPS.items())])


def symbols() -> list[str]:
    """Their names."""
    return ["chase", *map(_symbol, _LOOPS)]


def _symbol(name: str) -> str:
    return f"loop_{name.replace('-', '_')}"


_CHASE = f"""T_KERNEL void chase(u64* out, const unsigned* next, int warm) {{
  unsigned at = 0;
  for (int i = 0; i < warm; ++i) at = next[at];
  BEGIN
  #pragma unroll 8
  for (int i = 0; i < {STEPS}; ++i) at = next[at];
  if (at == 0xffffffffu) out[1] = 1;
  END
}}
typedef struct {{ unsigned x, y, z, w; }} volatile_words;"""


def _loop(name: str, line: str) -> str:
    load = "__ldcg((const uint4*)(data + tid_ * 4 + (n & 63) * 4096))"
    line = line.replace("*(const volatile_uint4*)(data + tid_ * 4 + (n & 63) * 4096)", load)
    return f"""T_KERNEL void {_symbol(name)}(u64* out, const float* data) {{
  SMEM(smem);
  __shared__ u64 place;
  for (int i = tid_; i < 16384 / 4; i += blockDim.x) ((unsigned*)smem)[i] = 0;
  __syncthreads();
  const unsigned base = t_shared(smem), bar = t_shared(&place);
  if (tid_ == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(blockDim.x));
  unsigned b = ((unsigned*)smem)[tid_ % 32], d = 0;
  float x = data[tid_], y = data[tid_ + 1];
  BEGIN
  #pragma unroll 32
  for (int n = 0; n < {STEPS}; ++n) {{
    {line}
  }}
  END
  if (b + d == 12345 || x == 1.2345f) out[0] = 1;
}}"""


def measure(probe: Probe) -> dict[str, Any]:
    """Cycles of one step of each loop, on one SM, by warps of the block."""
    result: dict[str, Any] = {}
    for name, size in FOOTPRINTS.items():
        table = probe.words(_chain(size))
        warm = size // LINE if size <= 40 << 20 else 0
        cycles, clock = probe.blocks("chase", 1, 1, [table], warm, launches=1)
        probe.driver.free(table)
        result[f"load, {name}"] = [round(cycles / STEPS, 1), round(clock)]
    data = probe.words(np.random.default_rng(0).random(1 << 19, np.float32))
    for name in _LOOPS:
        found = [probe.blocks(_symbol(name), 1, 32 * warps, [data], shared=16384)[0] / STEPS for warps in WARPS]
        result[name] = dict(zip((f"{warps} warps" for warps in WARPS), (round(each, 1) for each in found), strict=True))
    probe.driver.free(data)
    return result


def _chain(size: int) -> NDArray[np.uint32]:
    """A table through which a load leads to the next, every line once, in random order."""
    lines = size // LINE
    order = np.random.default_rng(0).permutation(lines).astype(np.uint32)
    table = np.zeros(size // 4, np.uint32)
    step = LINE // 4
    table[order * step] = np.roll(order, -1) * step
    return table
