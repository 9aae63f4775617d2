"""Tensors whose names are words of C++, macros or functions of tile.h compile under names of their own."""

import numpy as np

from tests.codegen.gpu.kernels import emulated, rows_program
from tests.emulator.kernels import needs_compiler

NAMES = [
    "NULL",
    "NAN",
    "T_INF",
    "M_PI",
    "t_exp",
    "t_max",
    "tid_",
    "nullptr",
    "compl",
    "static_cast",
    "bitand",
    "__restrict__",
    "main",
    "LDG",
]


@needs_compiler
def test_names_that_have_a_meaning_in_c_plus_plus():
    texts = [f"{name}[m, n] = maximum(exp(x[m, n]), inf)" for name in NAMES]
    types = {"x": "f32", **dict.fromkeys(NAMES, "f32")}
    found, _ = emulated(rows_program(texts, {"m": 1, "n": 2}, types), {"x": np.zeros((1, 2), np.float32)}, 1)
    assert all(np.isposinf(found[name]).all() for name in NAMES)
