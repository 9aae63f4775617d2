"""Functions of scalars by how a CPU computes them."""

from __future__ import annotations

LIBM = ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh")
"""Functions that are calls of the C library."""

FITTED = ("exp", "log", "tanh", "erf")
"""Functions that are polynomials, in f32."""

HEAVY = frozenset({*LIBM, *FITTED, "sigmoid", "pow"})
"""Functions that take many instructions."""
