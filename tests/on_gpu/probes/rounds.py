"""What a round of a loop costs: copies into shared memory, waiting, a barrier, reads and multiply-adds, a barrier."""

from __future__ import annotations

from typing import Any

from tests.on_gpu.probes.probe import SMS, Probe, noise

THREADS = (128, 256, 512)

PIECES = (1, 4, 8)
"""16-byte pieces that a thread copies in a round."""

AHEAD = (0, 1, 2)

ADDS = (0, 64, 256)
"""Multiply-adds of a thread in a round."""

ROUNDS = (1, 2, 4, 16, 64)


def text() -> str:
    """The kernels."""
    return "\n".join(_kernel(ahead, pieces) for ahead in AHEAD for pieces in PIECES)


def symbols() -> list[str]:
    """Their names."""
    return [f"rounds_{ahead}_{pieces}" for ahead in AHEAD for pieces in PIECES]


def _kernel(ahead: int, pieces: int) -> str:
    stages = ahead + 1
    return f"""T_KERNEL void rounds_{ahead}_{pieces}(u64* out, const uint4* data, int rounds, int adds, int mask) {{
  SMEM(smem);
  uint4* const tile = (uint4*)smem;
  const int size = blockDim.x * {pieces};
  float a[4] = {{1, 2, 3, 4}};
  BEGIN
  for (int n = 0; n < {ahead}; ++n) {{
    #pragma unroll
    for (int p = 0; p < {pieces}; ++p)
      t_copy(16, tile + n * size + p * blockDim.x + tid_,
             data + (((bid_ * rounds + n) * size + p * blockDim.x + tid_) & mask), n < rounds);
    t_commit_copies();
  }}
  #pragma unroll 1
  for (int n = 0; n < rounds; ++n) {{
    const int next = n + {ahead};
    #pragma unroll
    for (int p = 0; p < {pieces}; ++p)
      t_copy(16, tile + next % {stages} * size + p * blockDim.x + tid_,
             data + (((bid_ * rounds + next) * size + p * blockDim.x + tid_) & mask), next < rounds);
    t_commit_copies();
    t_wait_copies<{ahead}>();
    t_barrier();
    const uint4 v = tile[n % {stages} * size + (tid_ * 5 + 1) % size];
    const float x = __uint_as_float(v.x), y = __uint_as_float(v.y);
    #pragma unroll 16
    for (int i = 0; i < adds / 4; ++i) {{
      a[0] += a[0] * x; a[1] += a[1] * y; a[2] += a[2] * x; a[3] += a[3] * y;
    }}
    t_barrier();
  }}
  END
  if (a[0] + a[1] + a[2] + a[3] == 1.2345f) out[0] = 1;
}}"""


def measure(probe: Probe) -> dict[str, Any]:
    """Cycles of 1 to 64 rounds of a block an SM, by threads, pieces of a thread, rounds that copies run ahead, and
    multiply-adds of a thread; data lie in the second cache."""
    data, mask = probe.words(noise(16 << 20)), (16 << 20) // 16 - 1
    result: dict[str, Any] = {"rounds": list(ROUNDS)}
    for threads in THREADS:
        for pieces in PIECES:
            for ahead in AHEAD:
                shared = threads * pieces * 16 * (ahead + 1)
                for adds in ADDS:
                    found = [
                        probe.blocks(f"rounds_{ahead}_{pieces}", SMS, threads, [data], n, adds, mask, shared=shared)[0]
                        for n in ROUNDS
                    ]
                    result[f"{threads} threads, {pieces} pieces, {ahead} ahead, {adds} adds"] = found
    probe.driver.free(data)
    return result
