"""Objects in which LLVM 22 may have taken a mask of signs from the wrong register.

AVX-512 code takes the signs of a short vector into a mask register and from there into a general one.  LLVM 22 joins
the two into one instruction of AVX, which reaches only the registers 0 to 15: of a higher number the top bit is lost,
and another vector is read (llvm-project issues 191304 and 198197).  Little else makes that instruction where there is
AVX-512VL, and without AVX-512VL nothing is joined.
"""

from __future__ import annotations

import re
from typing import Any

import tvm

JOINED_FOR = "avx512vl"
"""The feature of processors for which LLVM joins the instructions."""

# vmovmskps, vmovmskpd, vpmovmskb: VEX prefix of two or three bytes without a second operand, opcode, two registers.
_MOVES = re.compile(
    rb"(?:\xc5|\xc4[\x01\x21\x41\x61\x81\xa1\xc1\xe1])[\x78-\x7f\xf8-\xff][\x50\xd7][\xc0-\xff]", re.DOTALL
)


def may_be_wrong(code: bytes, target: Any) -> bool:
    """Whether an object compiled for TVM's `target` may hold joined instructions: seldom so where it does not."""
    has_feature = tvm.get_global_func("target.target_has_feature")
    return bool(has_feature(JOINED_FOR, target)) and _MOVES.search(code) is not None
