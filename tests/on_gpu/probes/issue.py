"""Issue slots: 16 multiply-adds of a warp with other instructions beside them, cycles of a scheduler.

What the others compute is read by the multiply-adds of the next round: nothing is left out, and nobody waits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.on_gpu.probes.probe import SMS, Probe

ADDS, ROUNDS, THREADS = 16, 512, 512

SHARED = THREADS * 16 + 4096
"""Bytes of a block: a row of 16 for each thread, and what `ldmatrix` reads behind the last."""


@dataclass(frozen=True)
class Beside:
    """Lines of a kernel in which `{a}` to `{d}` are the words that they write, as often as `counts` says in a round."""

    line: str
    words: int = 1
    counts: tuple[int, ...] = (4, 8, 16)


def _float(operation: str) -> Beside:
    """A word is changed in place, so that none is computed once for all rounds."""
    return Beside(f'asm volatile("{operation}" : "+f"({{a}}) : "f"(x));')


def _word(operation: str) -> Beside:
    line = f'asm volatile("{operation}" : "+r"(w) : "r"(u));'
    return Beside(f"{{{{ unsigned w = __float_as_uint({{a}}); {line} {{a}} = __uint_as_float(w); }}}}")


def _shared(operation: str, place: str) -> Beside:
    outputs = ", ".join(f'"=f"({{{each}}})' for each in "abcd")
    line = f'asm volatile("{operation} {{{{%0, %1, %2, %3}}}}, [%4];" : {outputs} : "r"({place}));'
    return Beside(line, 4, (2, 4, 8))


BESIDE = {
    "imad": _word("mad.lo.s32 %0, %0, %1, %1;"),
    "lop3": _word("lop3.b32 %0, %0, %1, %1, 0x96;"),
    "prmt": _word("prmt.b32 %0, %0, %1, 0x2103;"),
    "hfma2": _word("fma.rn.f16x2 %0, %0, %1, %1;"),
    "fmax": _float("max.f32 %0, %0, %1;"),
    "fadd": _float("add.f32 %0, %0, %1;"),
    "shfl": _word("shfl.sync.bfly.b32 %0, %0, 1, 0x1f, 0xffffffff;"),
    "f32-of-f16": _float("{{ .reg .b16 l, h; mov.b32 {{l, h}}, %0; cvt.f32.f16 %0, l; }}"),
    "f16x2-of-f32": _float("{{ .reg .b32 w; cvt.rn.f16x2.f32 w, %0, %1; mov.b32 %0, w; }}"),
    "f32-of-i32": _float("{{ .reg .b32 w; mov.b32 w, %0; cvt.rn.f32.s32 %0, w; }}"),
    "f32-of-i8": _float("{{ .reg .b32 w; mov.b32 w, %0; cvt.rn.f32.s8 %0, w; }}"),
    "ex2": _float("ex2.approx.ftz.f32 %0, %0;"),
    "lds32": Beside('asm volatile("ld.volatile.shared.f32 %0, [%1];" : "=f"({a}) : "r"(own));'),
    "lds128-broadcast": _shared("ld.volatile.shared.v4.f32", "one"),
    "lds128-distinct": _shared("ld.volatile.shared.v4.f32", "own"),
    "ldmatrix": _shared("ldmatrix.sync.aligned.m8n8.x4.shared.b16", "place + {each} * 16"),
    "sts128": Beside(
        'asm volatile("st.shared.v4.f32 [%0], {{%1, %1, %2, %2}};" :: "r"(own), "f"(x), "f"(y));', 0, (2, 4, 8)
    ),
    "cp-async": Beside(
        'asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(own), "l"(from));', 0, (1, 2, 4)
    ),
}


def text() -> str:
    """The kernels."""
    kernels = [_kernel("issue_0", Beside(""), 0)]
    return "\n".join([*kernels, *(_kernel(_symbol(name, count), each, count) for name, each, count in _all())])


def symbols() -> list[str]:
    """Their names."""
    return ["issue_0", *(_symbol(name, count) for name, _, count in _all())]


def _all() -> Iterator[tuple[str, Beside, int]]:
    return ((name, each, count) for name, each in BESIDE.items() for count in each.counts)


def _symbol(name: str, count: int) -> str:
    return f"issue_{name.replace('-', '_')}_{count}"


def _kernel(name: str, beside: Beside, count: int) -> str:
    """Every word is read once in a round, by the two factors of its multiply-adds."""
    body, words = [], max(1, beside.words * count)
    for add in range(ADDS):
        factors = f'"f"(c[{2 * add % words}]), "f"(c[{(2 * add + 1) % words}])' if beside.words else '"f"(x), "f"(y)'
        body.append(f'asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(a[{add}]) : {factors});')
        for each in range(add * count // ADDS, (add + 1) * count // ADDS):
            written = (f"c[{(each * beside.words + word) % words}]" for word in range(4))
            body.append(beside.line.format(each=each, **dict(zip("abcd", written, strict=True))))
    if "ldmatrix" in beside.line:
        body.append("place = own + n % 2 * 2048;")
    if "cp.async" in beside.line:
        body.append("t_commit_copies(); t_wait_copies<4>();")
    return f"""T_KERNEL void {name}(u64* out, const float* data) {{
  SMEM(smem);
  float a[{ADDS}], c[{max(words, 32)}], x = data[tid_], y = data[tid_ + 1];
  const unsigned u = __float_as_uint(x), own = t_shared(smem) + tid_ * 16, one = t_shared(smem);
  unsigned place = own;
  const unsigned short h = (unsigned short)u;
  const float* from = data + tid_ * 4;
  for (int i = 0; i < {max(words, 32)}; ++i) c[i] = x + i;
  for (int i = 0; i < {ADDS}; ++i) a[i] = x + i;
  ((float4*)smem)[tid_] = make_float4(x, y, x, y);
  BEGIN
  #pragma unroll 2
  for (int n = 0; n < {ROUNDS}; ++n) {{
    {chr(10).join(body)}
  }}
  END
  t_wait_copies<0>();
  float sum = 0;
  for (int i = 0; i < {ADDS}; ++i) sum += a[i];
  for (int i = 0; i < {words}; ++i) sum += c[i];
  if (sum == 1.2345f) out[0] = u + h + own + one + (u64)from;
}}"""


def measure(probe: Probe) -> dict[str, Any]:
    """Cycles of a round of 16 multiply-adds and some others, for each of the four warps of a scheduler; how many."""
    data = probe.words(np.random.default_rng(0).random(1 << 14, np.float32))
    result: dict[str, Any] = {"multiply-adds alone": _cycles(probe, "issue_0", data)}
    for name, each in BESIDE.items():
        result[name] = {count: _cycles(probe, _symbol(name, count), data)[0] for count in each.counts}
    probe.driver.free(data)
    return result


def _cycles(probe: Probe, symbol: str, data: int) -> list[float]:
    cycles, clock = probe.blocks(symbol, SMS, THREADS, [data], shared=SHARED)
    return [round(cycles / ROUNDS / (THREADS / 128), 2), round(clock)]
