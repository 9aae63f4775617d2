"""Units of matrices: wgmma by width, from shared memory and from registers, with other work beside; mma.sync."""

from __future__ import annotations

from itertools import product
from typing import Any

from tests.on_gpu.probes.probe import SMS, Probe, noise

ROUNDS = 512

WIDTHS = (64, 128, 192, 256)

BESIDE = ("alone", "stores", "copies")

SHARED = 200 << 10


FORMS = tuple(product(WIDTHS, ("shared", "registers"), (0, 1)))
"""Width, where the first factor lies, groups of products that a step leaves in flight."""


def text() -> str:
    """The kernels."""
    return "\n".join([*map(_instructions, WIDTHS), *(_kernel(*form) for form in FORMS), _MMA])


def symbols() -> list[str]:
    """Their names."""
    return [*(_symbol(*form) for form in FORMS), "mma_sync"]


def _symbol(n: int, source: str, left: int) -> str:
    return f"wgmma_{n}_{source}_{left}"


def _instructions(n: int) -> str:
    sums = n // 2
    names = ", ".join(f"%{i}" for i in range(sums))
    operands = ", ".join(f'"+f"(c[{i}])' for i in range(sums))
    shape = f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.f16.f16"
    first = ", ".join(f"%{sums + i}" for i in range(4))
    true = "{ .reg .pred p; setp.eq.b32 p, 0, 0; "
    return f"""T_DEV void shared_{n}(float* c, u64 a, u64 b) {{
  asm volatile("{true}{shape} {{{names}}}, %{sums}, %{sums + 1}, p, 1, 1, 0, 1; }}" : {operands} : "l"(a), "l"(b));
}}
T_DEV void registers_{n}(float* c, const unsigned* a, u64 b) {{
  asm volatile("{true}{shape} {{{names}}}, {{{first}}}, %{sums + 4}, p, 1, 1, 1; }}"
    : {operands} : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}}"""


def _kernel(n: int, source: str, left: int) -> str:
    second = "t_descriptor(stage + 16384 + k * 2048, 128, 8192)"
    first = "a" if source == "registers" else "t_descriptor(stage + group * 8192 + k * 32, 128, 0)"
    return f"""T_KERNEL void T_BOUNDS(384, 1) {_symbol(n, source, left)}(
    u64* out, const uint4* data, int groups, int beside) {{
  SMEM(smem);
  for (int i = tid_; i < {SHARED // 16}; i += 384) ((uint4*)smem)[i] = data[i];
  t_publish();
  const int group = tid_ / 128;
  const unsigned base = t_shared(smem);
  float c[{n // 2}];
  unsigned a[4] = {{0x3c003c00u, 0x3d003c00u, 0x3c003e00u, 0xbc003c00u}};
  for (int i = 0; i < {n // 2}; ++i) c[i] = 0;
  BEGIN
  if (group < groups) {{
    #pragma unroll 1
    for (int r = 0; r < {ROUNDS}; ++r) {{
      const unsigned stage = base + r % 3 * 49152;
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      #pragma unroll
      for (int k = 0; k < 4; ++k) {source}_{n}(c, {first}, {second});
      t_commit_products();
      asm volatile("wgmma.wait_group.sync.aligned {left};" ::: "memory");
    }}
    t_wait_products(c);
  }} else if (group == 2 && beside) {{
    const int lane = tid_ - 256;
    const uint4 v = data[lane];
    for (int r = 0; r < {ROUNDS} * 4; ++r) {{
      unsigned char* to = smem + 147456 + r % 8 * 4096 + lane * 16;
      if (beside == 1)
        asm volatile("st.shared.v4.b32 [%0], {{%1, %2, %3, %4}};"
                     :: "r"(t_shared(to)), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w));
      else {{
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(t_shared(to)), "l"(data + r % 64 * 128 + lane));
        t_commit_copies();
        t_wait_copies<6>();
      }}
    }}
    t_wait_copies<0>();
  }}
  END
  float sum = 0;
  for (int i = 0; i < {n // 2}; ++i) sum += c[i];
  if (sum == 1.2345f) out[0] = 1;
}}"""


_MMA = f"""T_KERNEL void mma_sync(u64* out, const uint4* data) {{
  float c[8][4] = {{}};
  uint4 v = data[tid_];
  unsigned a[4] = {{v.x, v.y, v.z, v.w}}, b[2] = {{v.y, v.w}};
  BEGIN
  #pragma unroll 1
  for (int r = 0; r < {ROUNDS}; ++r)
    #pragma unroll
    for (int i = 0; i < 8; ++i) t_mma_m16n8k16_f16(c[i], a, b);
  END
  float sum = 0;
  for (int i = 0; i < 32; ++i) sum += c[i / 4][i % 4];
  if (sum == 1.2345f) out[0] = 1;
}}"""


def measure(probe: Probe) -> dict[str, Any]:
    """Cycles of a step of depth 64 by width: of one or two warpgroups, the first factor from shared memory or from
    registers, waited for or with a group in flight, alone or with a warpgroup that stores or copies 2 KB a quarter."""
    data = probe.words(noise(1 << 20))
    result: dict[str, Any] = {}
    for (n, source, left), groups in product(FORMS, (1, 2)):
        for beside, name in enumerate(BESIDE):
            if beside and (source != "shared" or n < 128):
                continue
            sizes = (groups, beside)
            cycles, clock = probe.blocks(_symbol(n, source, left), SMS, 384, [data], *sizes, shared=SHARED)
            words = f"n{n} x{groups} {source} left {left} {name}"
            result[words] = [round(cycles / ROUNDS, 1), round(clock)]
    for threads in (128, 256, 512, 1024):
        cycles, clock = probe.blocks("mma_sync", SMS, threads, [data])
        result[f"mma.sync m16n8k16, {threads // 32} warps, 8 each"] = [round(cycles / ROUNDS, 1), round(clock)]
    probe.driver.free(data)
    return result
