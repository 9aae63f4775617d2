"""Literals of every type: ends of ranges, signs of zero, what is no number, what lies half-way between two numbers."""

import math

import numpy as np

from tilec.ir.types import TTYPES, numpy_dtype

REALS = [0.0, -0.0, math.inf, -math.inf, math.nan, 0.1, -1 / 3, 1e16, 65520.0, 1e-45, -1e-45, 5e-324, 2.0**-126]
REALS += [float(np.finfo(np.float32).max), -float(np.finfo(np.float64).max), 2**53 + 1, 2**63, -(2**63), 0, -1]
REALS += [1 + odd * 2.0**-bits for bits in (8, 11, 24) for odd in (1, 3)]  # half-way between two of bf16, f16, f32
TRUTHS = [True, False, 0, 2, 0.0, -0.0, 1.5]


def values_of(ttype):
    """Literals that bodies of a type have."""
    if TTYPES[ttype].kind == "float":
        return REALS
    if ttype == "bool":
        return TRUTHS
    limits = np.iinfo(numpy_dtype(ttype))
    low, high = int(limits.min), int(limits.max)
    return [0, 1, low, low + 1, high, high - 1, high // 3, 1.0, True, False, *([-1] if low < 0 else [])]


NUMBERS = ["f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8", "bool"]
