"""Variables of kernel IR that no tile program has."""

from __future__ import annotations

from tilec.ir.expr import Var

LANE, UNIT, THREAD = Var("#lane"), Var("#unit"), Var("#tid")
"""The lane within its unit, the unit and the thread within the block."""

TURN = Var("#u")
"""The iteration of a nest that a unit takes where it takes several."""

FRAGMENT = Var("#i")
"""The number of an instruction, or of a load of fragments, along rows (or columns) of a product."""


def step_along(depth: str) -> Var:
    """The step of a product along an iterator."""
    return Var(f"#{depth}_s")
