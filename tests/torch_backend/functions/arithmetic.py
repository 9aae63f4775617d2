"""Arithmetic, comparisons, conversions of types, activations with arguments."""

from __future__ import annotations

import torch
from torch.nn import functional as F  # noqa: N812

from torch_backend.functions.function import (
    ANY,
    BITS,
    BROAD,
    MATRIX,
    NUMBER,
    PAIR,
    REAL,
    WHOLE,
    Function,
    special,
    tensors,
    within,
)

FUNCTIONS: dict[str, Function] = {
    "div": Function(torch.div, lambda n: (torch.randn(n, 6), torch.rand(n, 6) + 0.5), REAL),
    "div of integers": Function(lambda x: x / 4, MATRIX, WHOLE),
    "div floor": Function(
        lambda x, y: torch.div(x, y, rounding_mode="floor"),
        lambda n: (torch.randn(n, 6) * 9, torch.rand(n, 6) * 4 + 1),
        NUMBER,
    ),
    "div trunc": Function(
        lambda x, y: torch.div(x, y, rounding_mode="trunc"),
        lambda n: (torch.randn(n, 6) * 9, torch.rand(n, 6) * 4 + 1),
        NUMBER,
    ),
    "floor_divide by a number": Function(lambda x: x // -3, MATRIX, NUMBER),
    "remainder": Function(torch.remainder, lambda n: (torch.randn(n, 6) * 9, -torch.rand(n, 6) * 4 - 1), NUMBER),
    "remainder by a number": Function(lambda x: x % 3, MATRIX, NUMBER),
    "fmod": Function(torch.fmod, lambda n: (torch.randn(n, 6) * 9, -torch.rand(n, 6) * 4 - 1), NUMBER),
    "fmod by a number": Function(lambda x: torch.fmod(x, 3), MATRIX, NUMBER),
    "pow": Function(torch.pow, lambda n: (torch.rand(n, 6) + 0.5, torch.randn(n, 6)), REAL),
    "pow of a number": Function(lambda x: 2**x, MATRIX, REAL),
    "pow by integers": Function(lambda x: (x**2, x**3, x**5, x**0, x**1), MATRIX, NUMBER),
    "pow by fractions": Function(lambda x: (x**0.5, x**-0.5, x**1.7, x**-2), within(0.5, 3, "n", 6), REAL),
    "add with alpha": Function(lambda x, y: torch.add(x, y, alpha=3), PAIR, NUMBER),
    "sub with alpha": Function(lambda x, y: torch.sub(x, y, alpha=2), PAIR, NUMBER),
    "rsub": Function(lambda x: 3 - x, MATRIX, NUMBER),
    "add of a fraction": Function(lambda x: x + 0.5, MATRIX, ANY),
    "mul of a truth value": Function(lambda x: x * True, MATRIX, ANY),
    "addcmul": Function(lambda x, y, z: torch.addcmul(x, y, z, value=0.5), tensors(("n", 6), ("n", 6), (6,)), REAL),
    "addcdiv": Function(
        lambda x, y, z: torch.addcdiv(x, y, z.abs() + 1, value=0.5), tensors(("n", 6), ("n", 6), (6,)), REAL
    ),
    "lerp": Function(lambda x, y: torch.lerp(x, y, 0.3), PAIR, REAL),
    "lerp by a tensor": Function(torch.lerp, tensors(("n", 6), ("n", 6), ("n", 6)), REAL),
    "clamp": Function(lambda x: torch.clamp(x, -0.5, 0.7), MATRIX, REAL),
    "clamp of integers": Function(lambda x: torch.clamp(x, min=-2, max=3), MATRIX, WHOLE),
    "clamp of integers by fractions": Function(lambda x: torch.clamp(x, min=-1.5), MATRIX, WHOLE),
    "clamp by tensors": Function(lambda x, y: torch.clamp(x, y, y + 1), PAIR, NUMBER),
    "clamp of special numbers": Function(lambda x: x.clamp(-1, 1), special),
    "maximum of special numbers": Function(lambda x: torch.maximum(x, x.flip(0)), special),
    "fmax of special numbers": Function(lambda x: torch.fmax(x, x.flip(0)), special),
    "round to decimals": Function(lambda x: torch.round(x * 30, decimals=1), MATRIX),
    "bitwise_not": Function(torch.bitwise_not, MATRIX, BITS),
    "shifts": Function(lambda x: (x.abs() << 2, x.abs() >> 1), MATRIX, WHOLE),
    "shifts of negative numbers": Function(
        lambda x: (-x.abs() >> 1, -x.abs() << 3), MATRIX, (torch.int64, torch.int32)
    ),
    "logical_not": Function(torch.logical_not, MATRIX, ANY),
    "where": Function(lambda x, y: torch.where(x > y, x, y), BROAD, ANY),
    "where with a number": Function(lambda x: torch.where(x > 0, x, 0), MATRIX, NUMBER),
    "where of two types": Function(lambda x: torch.where(x > 0, x, torch.ones((), dtype=torch.float64)), MATRIX),
    "masked_fill": Function(lambda x: x.masked_fill(x > 0, -1), MATRIX, NUMBER),
    "masked_fill by a tensor": Function(lambda x: x.masked_fill(x > 0, x.sum()), MATRIX, REAL),
    "isclose": Function(lambda x, y: torch.isclose(x, y, atol=0.5), PAIR),
    "heaviside": Function(torch.heaviside, PAIR),
    "threshold": Function(lambda x: F.threshold(x, 0.1, -2), MATRIX, REAL),
    "prelu": Function(F.prelu, tensors((2, 4, "n"), (4,)), REAL),
    "rrelu": Function(F.rrelu, MATRIX),
    "glu": Function(lambda x: F.glu(x, 1), MATRIX, REAL),
    "gelu tanh": Function(lambda x: F.gelu(x, approximate="tanh"), MATRIX, REAL),
    "softplus beta": Function(lambda x: F.softplus(x, 2, 5), within(-9, 9, "n", 6), REAL),
    "elu alpha": Function(lambda x: F.elu(x, 0.3), MATRIX, REAL),
    "special functions": Function(
        lambda x: (torch.special.ndtr(x), torch.special.entr(x.abs()), torch.special.log_ndtr(x)), MATRIX
    ),
    "bessel functions": Function(
        lambda x: (torch.special.i0e(x), torch.special.i1(x), torch.special.bessel_j0(x)), MATRIX
    ),
    "polygamma": Function(lambda x: torch.polygamma(2, x), within(0.5, 4, "n")),
    "number of two types": Function(lambda x: x + torch.arange(6) + torch.ones(6, dtype=torch.float16), MATRIX, ANY),
    "type conversions": Function(
        lambda x: (
            x.int(),
            x.double(),
            x.bool(),
            x.half(),
            x.to(torch.uint8) if x.dtype != torch.float32 else x.long(),
        ),
        within(0, 200, "n", 6),
        (torch.float32, torch.int64),
    ),
    "conversion of large numbers": Function(lambda x: (x * 100).to(torch.int64).to(torch.int32), MATRIX),
    "sum of truth values": Function(lambda x: (x > 0).sum(-1), MATRIX),
    "mean of a type": Function(lambda x: (x > 0).float().mean(0, dtype=torch.float64), MATRIX),
}
