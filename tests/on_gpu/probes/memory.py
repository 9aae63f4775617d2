"""Bandwidths by footprint and bytes in flight: loads, asynchronous copies, bulk copies, stores."""

from __future__ import annotations

from typing import Any

from tests.on_gpu.probes.probe import SMS, Probe, noise

FOOTPRINTS = (4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 64, 96, 128, 256)
"""MiB."""

IN_FLIGHT = ((128, 1), (256, 1), (256, 2), (512, 2), (512, 4), (1024, 4), (1024, 8))
"""(threads of a block, 16-byte pieces of a thread), one block an SM: 2 to 128 KB of loads."""

BULK = ((2, 1), (4, 1), (8, 1), (8, 2), (16, 2), (16, 4), (32, 4))
"""(KB of a bulk copy, copies in flight)."""

MOVED = 512
"""MiB that a launch moves at least."""


def text() -> str:
    """The kernels."""
    parts = sorted({pieces for _, pieces in IN_FLIGHT})
    return "\n".join([*map(_loads, parts), *map(_copies, parts), _BULK, _STORES, _COPY])


def symbols() -> list[str]:
    """Their names."""
    parts = sorted({pieces for _, pieces in IN_FLIGHT})
    return [*(f"loads_{p}" for p in parts), *(f"copies_{p}" for p in parts), "bulk", "stores", "copy"]


def _loads(pieces: int) -> str:
    return f"""T_KERNEL void loads_{pieces}(const uint4* x, u64* out, int each, int passes) {{
  unsigned sum = 0;
  for (int pass = 0; pass < passes; ++pass)
    #pragma unroll 1
    for (int i = bid_ * blockDim.x + tid_; i < each; i += gridDim.x * blockDim.x * {pieces}) {{
      uint4 v[{pieces}];
      #pragma unroll
      for (int p = 0; p < {pieces}; ++p) {{
        const int at = i + p * gridDim.x * blockDim.x;
        asm volatile("ld.global.cg.v4.u32 {{%0, %1, %2, %3}}, [%4];"
                     : "=r"(v[p].x), "=r"(v[p].y), "=r"(v[p].z), "=r"(v[p].w) : "l"(x + (at < each ? at : i)));
      }}
      #pragma unroll
      for (int p = 0; p < {pieces}; ++p) sum += v[p].x ^ v[p].y ^ v[p].z ^ v[p].w;
    }}
  if (sum == 12345) out[0] = sum;
}}"""


def _copies(pieces: int) -> str:
    return f"""T_KERNEL void copies_{pieces}(const uint4* x, u64* out, int each, int passes) {{
  SMEM(smem);
  for (int pass = 0; pass < passes; ++pass)
    #pragma unroll 1
    for (int i = bid_ * blockDim.x + tid_; i < each; i += gridDim.x * blockDim.x * {pieces}) {{
      #pragma unroll
      for (int p = 0; p < {pieces}; ++p) {{
        const int at = i + p * gridDim.x * blockDim.x;
        t_copy(16, smem + (p * blockDim.x + tid_) * 16, x + (at < each ? at : i), true);
        t_commit_copies();
      }}
      t_wait_copies<{pieces - 1}>();
    }}
  t_wait_copies<0>();
  if (smem[tid_] == 1 && smem[tid_ + 1] == 77 && smem[tid_ + 2] == 78) out[0] = 1;
}}"""


_BULK = """T_KERNEL void bulk(const unsigned char* x, u64* out, int pieces, int passes, int bytes, int flight) {
  SMEM(smem);
  __shared__ u64 full[8];
  if (tid_ == 0) {
    for (int i = 0; i < flight; ++i)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(t_shared(full + i)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    const int mine = (pieces - bid_ + gridDim.x - 1) / gridDim.x, total = mine * passes;
    for (int n = 0; n < total + flight; ++n) {
      const unsigned barrier = t_shared(full + n % flight);
      if (n >= flight) {
        const unsigned parity = (n / flight - 1) & 1;
        unsigned done = 0;
        while (!done)
          asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                       : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
      }
      if (n < total) {
        const unsigned char* from = x + (size_t)(bid_ + n % mine * gridDim.x) * bytes;
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                     :: "r"(t_shared(smem) + n % flight * bytes), "l"(from), "r"(bytes), "r"(barrier) : "memory");
      }
    }
    if (smem[0] == 1 && smem[1] == 77 && smem[2] == 78) out[0] = 1;
  }
}"""

_STORES = """T_KERNEL void stores(uint4* x, u64* out, int each, int passes) {
  for (int pass = 0; pass < passes; ++pass)
    for (int i = bid_ * blockDim.x + tid_; i < each; i += gridDim.x * blockDim.x) x[i] = make_uint4(i, pass, i, pass);
}"""

_COPY = """T_KERNEL void copy(const uint4* x, u64* out, uint4* y, int each) {
  for (int i = bid_ * blockDim.x + tid_; i < each; i += gridDim.x * blockDim.x * 4) {
    uint4 v[4];
    #pragma unroll
    for (int p = 0; p < 4; ++p) {
      const int at = i + p * gridDim.x * blockDim.x;
      v[p] = x[at < each ? at : i];
    }
    #pragma unroll
    for (int p = 0; p < 4; ++p) {
      const int at = i + p * gridDim.x * blockDim.x;
      if (at < each) y[at] = v[p];
    }
  }
}"""


def measure(probe: Probe) -> dict[str, Any]:
    """GB/s of every kernel, by footprint, for each number of bytes in flight of an SM; of a copy both ways count."""
    largest = FOOTPRINTS[-1] << 20
    driver, x = probe.driver, probe.words(noise(largest))
    out, y = driver.allocate(256), driver.allocate(largest)
    result: dict[str, Any] = {"loads and copies: KB in flight": [t * p * 16 / 1024 for t, p in IN_FLIGHT]}
    result["bulk: KB in flight"] = [size * flight for size, flight in BULK]
    for mebibytes in FOOTPRINTS:
        size, passes = mebibytes << 20, max(1, MOVED // mebibytes)

        def rate(symbol: str, grid: int, block: int, *sizes: int, shared: int = 0, moved: int = size * passes) -> float:
            return round(moved / probe.seconds(symbol, grid, block, [x, out], *sizes, shared=shared) / 1e9)

        row: dict[str, Any] = {}
        row["loads"] = [rate(f"loads_{p}", SMS, t, size // 16, passes) for t, p in IN_FLIGHT]
        row["loads, 2 blocks of 1024, 4 each"] = rate("loads_4", 2 * SMS, 1024, size // 16, passes)
        row["copies"] = [rate(f"copies_{p}", SMS, t, size // 16, passes, shared=t * p * 16) for t, p in IN_FLIGHT]
        row["bulk"] = [
            rate("bulk", SMS, 32, size // (kb << 10), passes, kb << 10, flight, shared=(kb << 10) * flight)
            for kb, flight in BULK
        ]
        row["stores"] = rate("stores", 2 * SMS, 1024, size // 16, passes)
        if mebibytes <= FOOTPRINTS[-1] // 2:
            seconds = probe.seconds("copy", 2 * SMS, 1024, [x, out, y], size // 16)
            row["copy"] = round(2 * size / seconds / 1e9)
        result[f"{mebibytes} MiB"] = row
    for place in (x, out, y):
        driver.free(place)
    return result
