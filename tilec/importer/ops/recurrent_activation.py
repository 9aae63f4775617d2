"""Activations of recurrent cells: lists of names for each direction, with parameters in lists of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.ir.expr import Expr

FORMULAS: dict[str, tuple[str, dict[str, float]]] = {
    "affine": ("alpha * x + beta", {"alpha": 0.0, "beta": 0.0}),
    "elu": ("where(x < 0.0, alpha * (exp(x) - 1.0), x)", {"alpha": 1.0}),
    "hardsigmoid": ("maximum(minimum(alpha * x + beta, 1.0), 0.0)", {"alpha": 0.2, "beta": 0.5}),
    "leakyrelu": ("where(x < 0.0, alpha * x, x)", {"alpha": 0.01}),
    "relu": ("maximum(x, 0.0)", {}),
    "scaledtanh": ("alpha * tanh(beta * x)", {"alpha": 0.0, "beta": 0.0}),
    "sigmoid": ("sigmoid(x)", {}),
    "softplus": ("maximum(x, 0.0) + log(exp(-abs(x)) + 1.0)", {}),
    "softsign": ("x / (abs(x) + 1.0)", {}),
    "tanh": ("tanh(x)", {}),
    "thresholdedrelu": ("where(x >= alpha, x, 0.0)", {"alpha": 0.0}),
}
"""Name in lower case -> formula in x and its parameters, with the reference's defaults."""


@dataclass(frozen=True, slots=True)
class Activation:
    """A formula in x with its parameters."""

    text: str
    parameters: tuple[tuple[str, float], ...]

    def of(self, x: Expr) -> Expr:
        """The activation of a scalar."""
        return formula(self.text, x=x, **dict(self.parameters))


@dataclass(frozen=True, slots=True)
class Activations:
    """The activations of a cell for every direction, and the limit to which their arguments are clipped (None:
    none)."""

    rows: tuple[tuple[Activation, ...], ...]
    clip: float | None

    def apply(self, number: int, x: Expr, direction: Expr, clipped: bool = True) -> Expr:
        """Activation `number` of a direction."""
        if clipped and self.clip is not None:
            x = formula("maximum(minimum(x, c), -c)", x=x, c=self.clip)
        first, last = self.rows[0][number], self.rows[-1][number]
        if first == last:
            return first.of(x)
        return formula("where(d == 0, x, y)", d=direction, x=first.of(x), y=last.of(x))


def activations(op: Op, defaults: Sequence[str], directions: int) -> Activations:
    """The activations of an operator: `defaults` names those of one direction where the attribute is absent.

    Parameters are taken from their lists in order, each activation taking those of its formula.
    """
    given = [
        name.decode(errors="replace") if isinstance(name, bytes) else str(name)
        for name in op.attributes.get("activations", ())
    ]
    names = given or [*defaults] * directions
    if len(names) != len(defaults) * directions:
        raise op.invalid(f"{len(names)} activations, the operator has {len(defaults) * directions}")
    left = {p: [float(np.float32(v)) for v in op.attributes.get(f"activation_{p}", ())] for p in ("alpha", "beta")}
    result: list[Activation] = []
    for name in names:
        if name.lower() not in FORMULAS:
            raise op.invalid(f"unknown activation {name!r}", f"Known are {', '.join(FORMULAS)}.")
        text, parameters = FORMULAS[name.lower()]
        taken = tuple((p, left[p].pop(0) if left[p] else default) for p, default in parameters.items())
        result.append(Activation(text, taken))
    size = len(defaults)
    rows = tuple(tuple(result[start : start + size]) for start in range(0, len(result), size))
    return Activations(rows, op.number("clip") if "clip" in op.attributes else None)
