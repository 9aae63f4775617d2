"""Functions that are called by their names alone: of one tensor, of two, over dimensions."""

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
    ROWS,
    Function,
    special,
    within,
)


def _words(text: str) -> list[str]:
    return text.split()


_UNARY_REAL = _words(
    "acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac i0 "
    "lgamma log log10 log1p log2 logit nan_to_num neg rad2deg reciprocal round rsqrt sigmoid sign sin sinc sinh "
    "sqrt square tan tanh trunc isnan isinf isfinite isposinf isneginf signbit sgn abs positive"
)
_UNARY_NEURAL = _words(
    "celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu relu6 selu silu "
    "softplus softshrink softsign tanhshrink"
)
_BOUNDS = {"acos": (-0.9, 0.9), "asin": (-0.9, 0.9), "atanh": (-0.9, 0.9), "erfinv": (-0.9, 0.9), "logit": (0.1, 0.9)}
_POSITIVE = {"acosh": (1.1, 4), "digamma": (0.5, 4), "lgamma": (0.5, 4), "log": (0.1, 4), "log10": (0.1, 4)}
_POSITIVE |= {"log2": (0.1, 4), "log1p": (-0.9, 4), "rsqrt": (0.1, 4), "sqrt": (0, 4), "reciprocal": (0.2, 4)}
_WITH_INTEGERS = {"neg", "abs", "sign", "square", "sgn", "isnan", "isfinite", "relu", "sqrt", "exp", "cos", "ceil"}
_BINARY_REAL = _words("atan2 copysign fmax fmin hypot logaddexp logaddexp2 xlogy nextafter ldexp float_power")
_BINARY_NUMBER = _words("add sub mul maximum minimum eq ne lt le gt ge")
_REDUCED = _words("sum mean amax amin prod logsumexp var std norm nansum nanmean argmax argmin all any count_nonzero")


def _named() -> dict[str, Function]:
    made: dict[str, Function] = {}
    for name in _UNARY_REAL:
        low, high = {**_BOUNDS, **_POSITIVE}.get(name, (-3, 3))
        types = NUMBER if name in _WITH_INTEGERS else REAL
        made[name] = Function(getattr(torch, name), within(low, high, "n", 6), types)
    for name in _UNARY_NEURAL:
        made[name] = Function(getattr(F, name), within(-6, 6, "n", 6), REAL)
    for name in (
        "exp",
        "log",
        "sqrt",
        "tanh",
        "floor",
        "sign",
        "isnan",
        "relu",
        "sigmoid",
        "nan_to_num",
        "abs",
        "round",
    ):
        made[f"{name} of special numbers"] = Function(getattr(torch, name), special)
    for name in _BINARY_REAL:
        made[name] = Function(getattr(torch, name), lambda n: (torch.rand(n, 6) + 0.5, torch.rand(n, 6) + 0.5))
    for name in _BINARY_NUMBER:
        made[name] = Function(getattr(torch, name), BROAD, NUMBER)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        made[name] = Function(getattr(torch, name), PAIR, BITS)
    for name in ("logical_and", "logical_or", "logical_xor"):
        made[name] = Function(getattr(torch, name), PAIR, ANY)
    for name in _REDUCED:
        function = getattr(torch, name)
        types = NUMBER if name in ("sum", "amax", "amin", "prod", "argmax", "all", "any", "count_nonzero") else REAL
        if name == "prod":
            made["prod over a dimension"] = Function(lambda x: torch.prod(x, 1), within(0.5, 1.5, "n", 6), types)
            continue
        made[f"{name} over a dimension"] = Function(lambda x, f=function: f(x, dim=1), ROWS, types)
        if name not in ("logsumexp", "amax", "amin"):
            made[f"{name} over all"] = Function(lambda x, f=function: f(x), MATRIX)
    return made


FUNCTIONS = _named()
