"""Instructions of processors that add up the products of the elements of words (L21): one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class DotInstruction:
    """LLVM's names of an instruction by the number of words that a register holds.

    `operand` is LLVM's type of an element of its factors, `adds` says that it takes the sum so far (else that is added
    to its result), `features` what a processor has that knows it, in LLVM's words, by the bytes of its vectors.
    """

    intrinsics: Mapping[int, str]
    operand: str
    adds: bool
    features: Mapping[int, str] = field(default_factory=dict)


INSTRUCTIONS: Mapping[tuple[str, str], DotInstruction] = {
    ("x86_64", "dot_u8_i8"): DotInstruction(
        {lanes: f"llvm.x86.avx512.vpdpbusd.{32 * lanes}" for lanes in (4, 8, 16)},
        "i8",
        adds=True,
        features={16: "avxvnni", 32: "avxvnni", 64: "avx512vnni"},
    ),
    ("x86_64", "dot_i16_i16"): DotInstruction(
        {4: "llvm.x86.sse2.pmadd.wd", 8: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.avx512.pmaddw.d.512"},
        "i16",
        adds=False,
    ),
    ("x86_64", "dot_bf16_bf16"): DotInstruction(
        {lanes: f"llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}" for lanes in (4, 8, 16)},
        "bfloat",
        adds=True,
        features=dict.fromkeys((16, 32, 64), "avx512bf16"),
    ),
    ("aarch64", "dot_i8_i8"): DotInstruction(
        {2: "llvm.aarch64.neon.sdot.v2i32.v8i8", 4: "llvm.aarch64.neon.sdot.v4i32.v16i8"},
        "i8",
        adds=True,
        features={16: "dotprod"},
    ),
}
"""Architecture and dot function -> the instruction. Without one the elements are taken out, multiplied and added."""
