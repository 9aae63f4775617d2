"""Single functions of torch, torch.nn.functional and tensors, each with inputs for a size.

The size is the extent of one dimension or more; inputs of float32 stand for those of the other types in `types`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

FLOAT = (torch.float32,)
REAL = (torch.float32, torch.float16, torch.bfloat16)
NUMBER = (*REAL, torch.int64)
ANY = (*NUMBER, torch.bool)
WHOLE = (torch.int64, torch.int32, torch.uint8)
BITS = (torch.int64, torch.int32, torch.bool)


@dataclass(frozen=True)
class Function:
    """A function and its inputs at a size; `types` that float32 is replaced by; `fixed`: the size does not vary."""

    call: Callable[..., Any]
    inputs: Callable[[int], tuple[Any, ...]]
    types: tuple[torch.dtype, ...] = FLOAT
    fixed: bool = False


def normal(*shape: int | str) -> Callable[[int], tuple[Tensor, ...]]:
    """One normal tensor; the extent "n" is the size."""
    return lambda n: (_normal(n, shape),)


def _normal(n: int, shape: tuple[int | str, ...]) -> Tensor:
    return torch.randn([n if extent == "n" else int(extent) for extent in shape])


def tensors(*shapes: tuple[int | str, ...]) -> Callable[[int], tuple[Tensor, ...]]:
    """Normal tensors of these shapes."""
    return lambda n: tuple(_normal(n, shape) for shape in shapes)


def within(low: float, high: float, *shape: int | str) -> Callable[[int], tuple[Tensor, ...]]:
    """One tensor of numbers between two bounds."""
    return lambda n: (torch.rand_like(_normal(n, shape)) * (high - low) + low,)


def special(n: int) -> tuple[Tensor, ...]:
    """Infinities, NaN and zeros of both signs beside other numbers."""
    odd = torch.tensor([math.inf, -math.inf, math.nan, 0.0, -0.0, 1.0, -2.5, 1e-30])
    return (torch.cat([odd, torch.randn(n)]),)


def places(limit: int, *shape: int | str) -> Callable[[int], Tensor]:
    """Indices below a limit."""
    return lambda n: torch.randint(limit, [n if extent == "n" else int(extent) for extent in shape])


MATRIX = normal("n", 6)
ROWS = normal(3, "n", 5)
IMAGES = normal(2, 4, "n", 9)
PAIR = tensors(("n", 6), ("n", 6))
BROAD = tensors(("n", 6), (1, 6))
VECTOR = normal("n")


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


FUNCTIONS: dict[str, Function] = {
    **_named(),
    # arithmetic
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
    # reductions
    "max with indices": Function(lambda x: torch.max(x, 1), MATRIX, NUMBER),
    "min with indices": Function(lambda x: torch.min(x, 0, keepdim=True), MATRIX, NUMBER),
    "max over all": Function(torch.max, MATRIX, NUMBER),
    "aminmax": Function(lambda x: torch.aminmax(x, dim=0), MATRIX),
    "argmax over all": Function(torch.argmax, MATRIX),
    "argmax of equal numbers": Function(lambda x: (x > 0).int().argmax(1), MATRIX),
    "sum over several dimensions": Function(lambda x: x.sum((0, 2), keepdim=True), ROWS, NUMBER),
    "mean over negative dimensions": Function(lambda x: x.mean((-1, -2)), ROWS, REAL),
    "var with correction": Function(lambda x: torch.var(x, (0, 2), correction=0), ROWS, REAL),
    "var_mean": Function(lambda x: torch.var_mean(x, -1), MATRIX, REAL),
    "std_mean": Function(lambda x: torch.std_mean(x, 1, keepdim=True), ROWS),
    "norms": Function(
        lambda x: tuple(torch.linalg.vector_norm(x, p, 1) for p in (0, 1, 2, 3, 0.5, math.inf, -math.inf)), ROWS
    ),
    "norm of a type": Function(lambda x: torch.linalg.vector_norm(x, 2, 1), ROWS, REAL),
    "matrix norms": Function(
        lambda x: (torch.linalg.matrix_norm(x), torch.linalg.matrix_norm(x, 1), torch.linalg.matrix_norm(x, math.inf)),
        ROWS,
    ),
    "normalize": Function(lambda x: F.normalize(x, dim=1), ROWS, REAL),
    "median": Function(lambda x: torch.median(x, 1), normal(4, "n")),
    "nanmedian": Function(lambda x: torch.nanmedian(x), normal("n")),
    "quantile": Function(lambda x: torch.quantile(x, 0.3, dim=1), ROWS),
    "mode": Function(lambda x: torch.mode((x * 2).round(), 1)[0], MATRIX),
    "kthvalue": Function(lambda x: torch.kthvalue(x, 2, 1), MATRIX),
    "cumsum": Function(lambda x: x.cumsum(1), ROWS, NUMBER),
    "cumsum of truth values": Function(lambda x: (x > 0).cumsum(0), MATRIX),
    "cumprod": Function(lambda x: x.cumprod(1), within(0.5, 1.5, "n", 6), REAL),
    "cummax": Function(lambda x: x.cummax(0), MATRIX),
    "cummin": Function(lambda x: x.cummin(1), MATRIX),
    "logcumsumexp": Function(lambda x: x.logcumsumexp(1), MATRIX),
    "diff": Function(lambda x: torch.diff(x, dim=1), ROWS, NUMBER),
    "trapezoid": Function(lambda x: torch.trapezoid(x, dim=1), ROWS),
    "dist": Function(torch.dist, PAIR),
    "cdist": Function(torch.cdist, tensors((2, "n", 6), (2, 4, 6))),
    "pdist": Function(F.pdist, normal(5, 6), fixed=True),
    "pairwise_distance": Function(F.pairwise_distance, PAIR),
    "cosine_similarity": Function(lambda x, y: F.cosine_similarity(x, y, dim=-1), PAIR, REAL),
    "histc": Function(lambda x: torch.histc(x, 5, -2, 2), MATRIX),
    "bincount": Function(lambda i: torch.bincount(i, minlength=8), lambda n: (torch.randint(8, (n,)),)),
    "softmax": Function(lambda x: x.softmax(1), ROWS, REAL),
    "softmax into float": Function(lambda x: F.softmax(x, -1, dtype=torch.float32), ROWS, REAL),
    "softmax of closed rows": Function(lambda x: x.masked_fill(x < 9, -math.inf).softmax(-1), MATRIX),
    "log_softmax": Function(lambda x: x.log_softmax(-1), ROWS, REAL),
    "softmin": Function(lambda x: F.softmin(x, 1), ROWS, REAL),
    "gumbel-like": Function(lambda x: -torch.log(-torch.log(x)), within(0.1, 0.9, "n", 6)),
    # order
    "sort": Function(lambda x: x.sort(1), MATRIX, NUMBER),
    "sort descending": Function(lambda x: x.sort(0, descending=True)[0], MATRIX),
    "stable sort": Function(lambda x: torch.sort((x > 0).int(), dim=0, stable=True), MATRIX),
    "stable sort descending": Function(
        lambda x: torch.sort((x > 0).int(), dim=0, stable=True, descending=True), MATRIX
    ),
    "sort of truth values": Function(lambda x: torch.sort(x > 0, dim=0, stable=True), MATRIX),
    "argsort": Function(lambda x: x.argsort(-1), MATRIX),
    "msort": Function(torch.msort, MATRIX),
    "topk": Function(lambda x: x.topk(3, 1), MATRIX),
    "topk, whose places among equals are open": Function(lambda x: x.topk(3, 1)[0], MATRIX, NUMBER),
    "topk smallest": Function(lambda x: x.topk(2, 0, largest=False), MATRIX),
    "searchsorted": Function(lambda x, v: torch.searchsorted(x.sort(-1)[0], v), PAIR),
    "searchsorted right": Function(
        lambda x, v: torch.searchsorted(x.sort(-1)[0], v, right=True), tensors((6,), ("n", 4))
    ),
    "bucketize": Function(lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 0.5, 2.0])), MATRIX),
    "bucketize right": Function(
        lambda x: torch.bucketize(x.round(), torch.tensor([-1.0, 0.0, 0.5, 2.0]), right=True, out_int32=True), MATRIX
    ),
    "isin": Function(lambda x: torch.isin(x, torch.tensor([1, 3, -2])), MATRIX, WHOLE),
    "unique": Function(lambda x: torch.unique(x.round()), MATRIX),
    "nonzero": Function(lambda x: torch.nonzero(x > 0), MATRIX),
    # shapes
    "reshape": Function(lambda x: x.reshape(x.shape[0], -1, 2), MATRIX, ANY),
    "view of another type": Function(lambda x: x.view(torch.int32), MATRIX),
    "flatten": Function(lambda x: x.flatten(1), ROWS, ANY),
    "unflatten": Function(lambda x: x.unflatten(1, (2, 3)), MATRIX),
    "permute": Function(lambda x: x.permute(2, 0, 1).contiguous(), ROWS, ANY),
    "transpose": Function(lambda x: x.transpose(0, -1) + 1, ROWS),
    "movedim": Function(lambda x: x.movedim(0, 2) * 2, ROWS),
    "squeeze and unsqueeze": Function(lambda x: x[:, None].squeeze().unsqueeze(-1), MATRIX, ANY),
    "expand": Function(lambda x: x[:, None].expand(-1, 3, -1) + 1, MATRIX),
    "expand_as": Function(lambda x: x[:1].expand_as(x) + x, MATRIX),
    "broadcast_to": Function(lambda x: torch.broadcast_to(x, (2, *x.shape)) * 2, MATRIX),
    "repeat": Function(lambda x: x.repeat(2, 1, 3), MATRIX, ANY),
    "tile": Function(lambda x: torch.tile(x, (2,)), MATRIX),
    "repeat_interleave": Function(lambda x: x.repeat_interleave(3, 0), MATRIX, ANY),
    "repeat_interleave by a tensor": Function(
        lambda x: x.repeat_interleave(torch.tensor([1, 2, 0, 3, 1, 1]), 1), MATRIX
    ),
    "cat": Function(lambda x, y: torch.cat([x, y, x], 1), PAIR, ANY),
    "cat of types": Function(lambda x: torch.cat([x, x.int(), x.half()], 0), MATRIX),
    "cat with nothing": Function(lambda x: torch.cat([torch.empty(0), x], 0), MATRIX),
    "stack": Function(lambda x, y: torch.stack([x, y], -1), PAIR, ANY),
    "hstack": Function(lambda x, y: torch.hstack([x, y]), PAIR),
    "vstack": Function(lambda x, y: torch.vstack([x, y]), PAIR),
    "dstack": Function(lambda x, y: torch.dstack([x, y]), PAIR),
    "column_stack": Function(lambda x, y: torch.column_stack([x, y[:, 0]]), PAIR),
    "block_diag": Function(lambda x, y: torch.block_diag(x, y), PAIR),
    "split": Function(lambda x: [y + 1 for y in x.split(4, 1)], MATRIX),
    "split by sizes": Function(lambda x: [y * 2 for y in x.split([1, 3, 2], 1)], MATRIX, ANY),
    "chunk": Function(lambda x: [y * 2 for y in x.chunk(4, 1)], MATRIX),
    "tensor_split": Function(lambda x: [y * 2 for y in torch.tensor_split(x, 4, 1)], MATRIX),
    "unbind": Function(lambda x: [y * 2 for y in x.unbind(1)], MATRIX),
    "narrow": Function(lambda x: x.narrow(1, 2, 3) * 2, MATRIX),
    "select": Function(lambda x: x.select(1, -2) * 2, ROWS),
    "slices": Function(lambda x: (x[1:-1, ::2] * 2, x[..., -3:] + 1, x[:, 4:2] + 1, x[-99:99] * 3), MATRIX),
    "flip": Function(lambda x: x.flip(0, 2), ROWS, ANY),
    "rot90": Function(lambda x: torch.rot90(x, 1, (0, 1)), MATRIX),
    "roll": Function(lambda x: x.roll((2, -1), (0, 1)), MATRIX, ANY),
    "roll over all": Function(lambda x: x.roll(-3), MATRIX),
    "diagonal": Function(lambda x: x.diagonal(0, -1, -2) * 2, normal("n", 5, 6)),
    "diagonal offset": Function(lambda x: (x.diagonal(1) * 2, x.diagonal(-2) + 1), normal(5, 6), fixed=True),
    "diag": Function(torch.diag, VECTOR),
    "diag of a matrix": Function(torch.diag, MATRIX),
    "diag_embed": Function(lambda x: torch.diag_embed(x, 1), MATRIX),
    "trace": Function(torch.trace, MATRIX),
    "tril and triu": Function(lambda x: (x.tril(1), x.triu(-1)), ROWS, ANY),
    "tril_indices": Function(lambda x: x[torch.tril_indices(4, 4).unbind()], normal(4, 4), fixed=True),
    "unfold of a dimension": Function(lambda x: x.unfold(1, 3, 2) * 2, ROWS),
    "as_strided": Function(lambda x: torch.as_strided(x, (3, 2), (2, 1)) * 2, normal(6, 6), fixed=True),
    "meshgrid": Function(lambda x, y: torch.meshgrid(x, y, indexing="ij"), tensors(("n",), (4,))),
    "cartesian_prod": Function(torch.cartesian_prod, tensors(("n",), (4,))),
    "combinations": Function(torch.combinations, normal(5), fixed=True),
    "channel_shuffle": Function(lambda x: F.channel_shuffle(x, 2), IMAGES),
    "pixel_shuffle": Function(lambda x: F.pixel_shuffle(x, 2), IMAGES, REAL),
    "pixel_unshuffle": Function(lambda x: F.pixel_unshuffle(x, 3), normal(2, 2, 9, 6), fixed=True),
    "atleast_3d": Function(lambda x: torch.atleast_3d(x) + 1, MATRIX),
    "kron": Function(torch.kron, tensors(("n", 2), (2, 3))),
    "outer": Function(torch.outer, tensors(("n",), (4,)), REAL),
    "view_as": Function(lambda x: x.t().contiguous().view_as(x), MATRIX),
    # creation
    "zeros": Function(lambda x: torch.zeros(x.shape[0], 3) + x[:, :1], MATRIX),
    "full": Function(lambda x: torch.full((x.shape[0], 2), 7, dtype=x.dtype) + x[:, :2], MATRIX, NUMBER),
    "likes": Function(lambda x: (torch.zeros_like(x), torch.ones_like(x) + x, torch.full_like(x, 3)), MATRIX, ANY),
    "new": Function(
        lambda x: (x.new_zeros(3), x.new_ones(2, 2), x.new_full((2,), 1), x.new_tensor([1, 0])), MATRIX, ANY
    ),
    "arange": Function(lambda x: torch.arange(x.shape[0]) * x[:, 0], MATRIX),
    "arange of fractions": Function(lambda x: torch.arange(0, 2, 0.3) + x, normal("n", 7)),
    "arange backwards": Function(lambda x: torch.arange(x.shape[0], 0, -1) + x[:, 0], MATRIX),
    "linspace": Function(lambda x: torch.linspace(-1, 1, 6) * x, MATRIX),
    "linspace of a size": Function(lambda x: torch.linspace(0, 1, x.shape[0]) * x[:, 0], MATRIX),
    "logspace": Function(lambda x: torch.logspace(0, 2, 6) * x, MATRIX),
    "eye": Function(lambda x: torch.eye(6) + x, normal(6, 6), fixed=True),
    "eye of a size": Function(lambda x: x @ torch.eye(x.shape[1]), normal(3, "n")),
    "hann_window": Function(lambda x: torch.hann_window(6) * x, MATRIX),
    "one_hot": Function(lambda i: F.one_hot(i, 5), lambda n: (torch.randint(5, (n, 2)),)),
    "vander": Function(lambda x: torch.vander(x, 4), VECTOR),
    "scalar_tensor": Function(lambda x: x + torch.tensor(0.5), MATRIX),
    "empty rows": Function(lambda x: (x[:0] + 1, x[:0].sum(0), torch.cat([x[:0], x])), MATRIX),
    # indices
    "embedding": Function(F.embedding, lambda n: (torch.randint(5, (2, n)), torch.randn(5, 6)), REAL),
    "embedding_bag": Function(
        lambda i, w: F.embedding_bag(i, w, mode="mean"), lambda n: (torch.randint(5, (n, 3)), torch.randn(5, 6))
    ),
    "index_select": Function(
        lambda x, i: x.index_select(1, i), lambda n: (torch.randn(3, 5, 2), torch.randint(5, (n,))), ANY
    ),
    "gather": Function(lambda x, i: x.gather(1, i), lambda n: (torch.randn(n, 6), torch.randint(6, (n, 4))), ANY),
    "gather of fewer rows": Function(
        lambda x, i: x.gather(1, i), lambda n: (torch.randn(n, 6), torch.randint(6, (n - 1, 4)))
    ),
    "take": Function(lambda x, i: x.take(i), lambda n: (torch.randn(n, 6), torch.randint(6, (4,)))),
    "take negative": Function(lambda x, i: x.take(-1 - i), lambda n: (torch.randn(n, 6), torch.randint(6, (4,)))),
    "take_along_dim": Function(lambda x: torch.take_along_dim(x, x.argsort(1), 1), MATRIX),
    "index": Function(lambda x, i: x[i], lambda n: (torch.randn(n, 6), torch.tensor([0, -1, 1])), ANY),
    "index of two dimensions": Function(
        lambda x, i, j: x[i, j],
        lambda n: (torch.randn(n, 6, 2), torch.tensor([0, -1, 1]), torch.tensor([5, 0, -6])),
        REAL,
    ),
    "index of the last dimensions": Function(
        lambda x, i: x[:, i, :, i], lambda n: (torch.randn(n, 6, 2, 6), torch.tensor([0, -1, 1]))
    ),
    "index of neighbours": Function(
        lambda x, i: x[:, i, i[:, None]], lambda n: (torch.randn(n, 6, 7, 2), torch.tensor([0, -1, 1]))
    ),
    "index by a mask": Function(lambda x: x[x > 0], MATRIX),
    "index by lists": Function(lambda x: x[[0, 2, -1]][:, [1, 1]], MATRIX, ANY),
    "index_put": Function(
        lambda x, i, v: x.index_put((i,), v),
        lambda n: (torch.randn(n, 6), torch.tensor([2, 0, -1]), torch.randn(3, 6)),
        ANY,
    ),
    "index_put of the second dimension": Function(
        lambda x, i: _written(x, (slice(None), i), 2.0), lambda n: (torch.randn(n, 6), torch.tensor([2, 0, -1])), NUMBER
    ),
    "index_put of the last dimensions": Function(
        lambda x, i, v: _written(x, (Ellipsis, i, i.flip(0)), v),
        lambda n: (torch.randn(n, 6, 5), torch.tensor([2, 0, -1]), torch.randn(n, 3)),
    ),
    "index_put of dimensions apart": Function(
        lambda x, i, v: _written(x, (i, slice(None), i), v),
        lambda n: (torch.randn(3, n, 6), torch.tensor([2, 0, -1]), torch.randn(3, n)),
    ),
    "index_put of a cache": Function(
        lambda k, p, h: _written(k, (slice(None), slice(None), p), h),
        lambda n: (torch.randn(2, 3, 8, n), torch.tensor([4, 5]), torch.randn(2, 3, 2, n)),
        REAL,
    ),
    "index_put accumulated": Function(
        lambda x, i, v: x.index_put((i,), v, accumulate=True),
        lambda n: (torch.randn(n, 6), torch.tensor([2, 0, 2]), torch.randn(3, 6)),
        NUMBER,
    ),
    "index_put by a mask": Function(lambda x: _written(x, x > 0, 3), MATRIX, NUMBER),
    "index_put by a mask of rows": Function(lambda x: _written(x, x[:, 0] > 0, 3), MATRIX, NUMBER),
    "index_put by a mask of columns": Function(lambda x: _written(x, (slice(None), x[0] > 0), 3), MATRIX),
    "index_put by a mask of values": Function(lambda x: _written(x, x > 0, x[x > 0] * 2), MATRIX),
    "index_add": Function(
        lambda x, i, v: x.index_add(1, i, v, alpha=2),
        lambda n: (torch.randn(n, 6), torch.tensor([2, 0, 2]), torch.randn(n, 3)),
        NUMBER,
    ),
    "index_copy": Function(
        lambda x, i, v: x.index_copy(1, i, v),
        lambda n: (torch.randn(n, 6), torch.tensor([2, 0, 5]), torch.randn(n, 3)),
        REAL,
    ),
    "index_fill": Function(
        lambda x, i: x.index_fill(1, i, 2), lambda n: (torch.randn(n, 6), torch.tensor([2, 0])), NUMBER
    ),
    "index_reduce": Function(
        lambda x, i, v: x.index_reduce(0, i, v, "amax"),
        lambda n: (torch.randn(n, 6), torch.tensor([2, 0]), torch.randn(2, 6)),
    ),
    "scatter": Function(
        lambda x, i, v: x.scatter(1, i, v),
        lambda n: (
            torch.randn(n, 6),
            torch.arange(n)[:, None] % 6 + torch.zeros(n, 1, dtype=torch.int64),
            torch.randn(n, 1),
        ),
        ANY,
    ),
    "scatter of a number": Function(
        lambda x, i: x.scatter(1, i, 2), lambda n: (torch.randn(n, 6), torch.randint(6, (n, 3))), NUMBER
    ),
    "scatter of a longer source": Function(
        lambda x, i, v: x.scatter(0, i, v), lambda n: (torch.randn(n, 6), torch.tensor([[1, 0, 2]]), torch.randn(n, 6))
    ),
    "scatter into fewer columns": Function(
        lambda x, i, v: x.scatter(0, i, v),
        lambda n: (torch.randn(n, 6), torch.tensor([[1, 0, 2], [0, 1, 0]]), torch.randn(2, 3)),
    ),
    "scatter_add": Function(
        lambda x, i, v: x.scatter_add(1, i, v),
        lambda n: (torch.randn(n, 6), torch.randint(6, (n, 3)), torch.randn(n, 3)),
        NUMBER,
    ),
    "scatter_add of a longer source": Function(
        lambda x, i, v: x.scatter_add(0, i, v),
        lambda n: (torch.randn(n, 6), torch.randint(3, (2, 6)), torch.randn(n, 6)),
    ),
    "scatter_reduce": Function(
        lambda x, i, v: tuple(x.scatter_reduce(1, i, v, r) for r in ("sum", "prod", "amax", "amin")),
        lambda n: (torch.randn(n, 6), torch.randint(6, (n, 3)), torch.randn(n, 3)),
    ),
    "scatter_reduce mean": Function(
        lambda x, i, v: x.scatter_reduce(1, i, v, "mean"),
        lambda n: (torch.randn(n, 6), torch.randint(6, (n, 3)), torch.randn(n, 3)),
    ),
    "scatter_reduce without self": Function(
        lambda x, i, v: x.scatter_reduce(1, i, v, "amax", include_self=False),
        lambda n: (torch.randn(n, 6), torch.randint(6, (n, 3)), torch.randn(n, 3)),
    ),
    "select_scatter": Function(lambda x: x.select_scatter(x[:, 0] * 2, 1, -2), MATRIX, ANY),
    "slice_scatter": Function(lambda x: x.slice_scatter(x[:, :3] * 2, 1, 0, 6, 2), MATRIX, ANY),
    "diagonal_scatter": Function(lambda x: x.diagonal_scatter(x[0]), normal(6, 6), fixed=True),
    "masked_scatter": Function(lambda x, y: x.masked_scatter(x > 0, y), PAIR),
    "masked_scatter of rows": Function(lambda x, y: x.masked_scatter(x[:, :1] > 0, y.reshape(-1)), PAIR),
    "masked_select": Function(lambda x: x.masked_select(x > 0), MATRIX),
    "written slices": Function(
        lambda x: _written(_written(x, (slice(None), slice(1, 3)), 0.5), 0, 2.0), MATRIX, NUMBER
    ),
    "written in steps": Function(lambda x: _written(x, (slice(1, None), slice(None, None, 2)), x[1:, :3] * 2), MATRIX),
    # products
    "mm": Function(torch.mm, tensors(("n", 6), (6, 5)), REAL),
    "mm of integers": Function(torch.mm, tensors(("n", 6), (6, 5)), (torch.int64,)),
    "bmm": Function(torch.bmm, tensors((2, "n", 6), (2, 6, 5)), REAL),
    "matmul broadcast": Function(torch.matmul, tensors((2, 1, "n", 6), (3, 6, 5))),
    "matmul of vectors": Function(lambda x, y: (x @ y, y @ x.t()), tensors(("n", 6), (6,))),
    "dot": Function(torch.dot, tensors(("n",), ("n",)), REAL),
    "mv": Function(torch.mv, tensors(("n", 6), (6,)), REAL),
    "addmm": Function(lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), tensors((5,), ("n", 6), (6, 5)), REAL),
    "addmm of integers": Function(
        lambda c, a, b: torch.addmm(c, a, b, beta=2, alpha=3), tensors((5,), ("n", 6), (6, 5)), (torch.int64,)
    ),
    "addbmm": Function(torch.addbmm, tensors(("n", 5), (2, "n", 6), (2, 6, 5))),
    "addmv": Function(lambda c, a, b: torch.addmv(c, a, b, beta=0), tensors(("n",), ("n", 6), (6,))),
    "addr": Function(torch.addr, tensors(("n", 5), ("n",), (5,))),
    "baddbmm": Function(
        lambda c, a, b: torch.baddbmm(c, a, b, beta=0, alpha=0.5), tensors((2, "n", 5), (2, "n", 6), (2, 6, 5))
    ),
    "chain of products": Function(lambda a, b, c: torch.linalg.multi_dot([a, b, c]), tensors(("n", 6), (6, 5), (5, 2))),
    "einsum": Function(lambda x, y: torch.einsum("bnd,bmd->bnm", x, y), tensors((2, "n", 6), (2, 4, 6)), REAL),
    "tensordot": Function(lambda x, y: torch.tensordot(x, y, 2), tensors((3, "n", 6), ("n", 6, 2))),
    "linear": Function(F.linear, tensors((2, "n", 6), (5, 6), (5,)), REAL),
    "bilinear": Function(F.bilinear, tensors(("n", 6), ("n", 5), (3, 6, 5), (3,))),
    "cross": Function(lambda x, y: torch.linalg.cross(x, y), tensors(("n", 3), ("n", 3))),
    "vecdot": Function(torch.linalg.vecdot, PAIR),
    "cov": Function(torch.cov, normal(4, "n")),
    "corrcoef": Function(torch.corrcoef, normal(4, "n")),
    "det": Function(torch.linalg.det, normal("n", 3, 3)),
    "slogdet": Function(torch.linalg.slogdet, normal("n", 3, 3)),
    "inv": Function(torch.linalg.inv, normal("n", 3, 3)),
    "solve": Function(torch.linalg.solve, tensors(("n", 3, 3), ("n", 3, 2))),
    "cholesky": Function(lambda x: torch.linalg.cholesky(x @ x.mT + torch.eye(3)), normal("n", 3, 3)),
    "svdvals": Function(torch.linalg.svdvals, normal("n", 3, 3)),
    "eigvalsh": Function(lambda x: torch.linalg.eigvalsh(x + x.mT), normal("n", 3, 3)),
    "pinv": Function(torch.linalg.pinv, normal("n", 3, 3)),
    "matrix_power": Function(lambda x: torch.linalg.matrix_power(x, 3), normal("n", 3, 3)),
    "matrix_exp": Function(torch.linalg.matrix_exp, normal("n", 3, 3)),
    # convolutions, pooling, images
    "conv1d": Function(F.conv1d, tensors((2, 4, "n"), (6, 4, 3), (6,)), REAL),
    "conv1d same": Function(lambda x, w: F.conv1d(x, w, padding="same"), tensors((2, 4, "n"), (6, 4, 4))),
    "conv2d": Function(
        lambda x, w: F.conv2d(x, w, stride=(1, 2), padding=(2, 1), dilation=2),
        tensors((2, 4, "n", 9), (6, 4, 3, 3)),
        REAL,
    ),
    "conv2d of groups": Function(
        lambda x, w: F.conv2d(x, w, padding=1, groups=2), tensors((2, 4, "n", 9), (6, 2, 3, 3)), REAL
    ),
    "conv2d unbatched": Function(F.conv2d, tensors((4, "n", 9), (6, 4, 3, 3))),
    "conv3d": Function(lambda x, w: F.conv3d(x, w, padding=1), tensors((1, 2, "n", 5, 6), (3, 2, 3, 3, 3))),
    "conv_transpose1d": Function(
        lambda x, w: F.conv_transpose1d(x, w, stride=2, padding=1, output_padding=1), tensors((2, 4, "n"), (4, 6, 3))
    ),
    "conv_transpose2d": Function(
        lambda x, w: F.conv_transpose2d(x, w, stride=2, groups=2, dilation=2),
        tensors((2, 4, "n", 5), (4, 3, 3, 3)),
        REAL,
    ),
    "avg_pool1d": Function(lambda x: F.avg_pool1d(x, 3, 2, 1), ROWS),
    "avg_pool2d": Function(lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), IMAGES, REAL),
    "avg_pool2d ceil": Function(lambda x: F.avg_pool2d(x, 2, 2, ceil_mode=True), IMAGES),
    "avg_pool2d divisor": Function(lambda x: F.avg_pool2d(x, 2, 1, divisor_override=3), IMAGES),
    "avg_pool3d": Function(lambda x: F.avg_pool3d(x, 2), normal(1, 2, "n", 4, 5)),
    "max_pool1d": Function(lambda x: F.max_pool1d(x, 3, 2, 1), ROWS),
    "max_pool2d": Function(lambda x: F.max_pool2d(x, 3, 2, 1), IMAGES, REAL),
    "max_pool2d dilated": Function(lambda x: F.max_pool2d(x, 2, 1, 0, 2, ceil_mode=True), IMAGES),
    "max_pool2d with indices": Function(lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), IMAGES),
    "max_pool3d": Function(lambda x: F.max_pool3d(x, 2, 1), normal(1, 2, "n", 4, 5)),
    "max_unpool2d": Function(
        lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), normal(2, 3, 6, 8), fixed=True
    ),
    "adaptive_avg_pool1d": Function(lambda x: F.adaptive_avg_pool1d(x, 3), normal(2, "n", 7)),
    "adaptive_avg_pool2d": Function(lambda x: F.adaptive_avg_pool2d(x, 1), IMAGES, REAL),
    "adaptive_avg_pool2d uneven": Function(lambda x: F.adaptive_avg_pool2d(x, (3, 4)), normal("n", 4, 7, 9)),
    "adaptive_avg_pool2d of a size": Function(lambda x: F.adaptive_avg_pool2d(x, (2, 3)), IMAGES),
    "adaptive_max_pool2d": Function(lambda x: F.adaptive_max_pool2d(x, (2, 3)), normal("n", 4, 6, 9)),
    "adaptive_max_pool2d uneven": Function(lambda x: F.adaptive_max_pool2d(x, (3, 4)), normal("n", 4, 7, 9)),
    "lp_pool2d": Function(lambda x: F.lp_pool2d(x, 2, 2), IMAGES),
    "fractional_max_pool2d": Function(
        lambda x, s: F.fractional_max_pool2d(x, 2, (3, 3), _random_samples=s),
        lambda n: (torch.randn(n, 4, 8, 9), torch.rand(n, 4, 2)),
    ),
    "interpolate nearest": Function(lambda x: F.interpolate(x, scale_factor=2), IMAGES, REAL),
    "interpolate nearest of a scale": Function(lambda x: F.interpolate(x, scale_factor=1.7), IMAGES),
    "interpolate nearest-exact": Function(lambda x: F.interpolate(x, size=(7, 5), mode="nearest-exact"), IMAGES),
    "interpolate bilinear": Function(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), IMAGES, REAL),
    "interpolate bilinear of a scale": Function(lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear"), IMAGES),
    "interpolate bilinear corners": Function(
        lambda x: F.interpolate(x, size=(7, 5), mode="bilinear", align_corners=True), IMAGES
    ),
    "interpolate bilinear antialias": Function(
        lambda x: F.interpolate(x, size=(5, 4), mode="bilinear", antialias=True), IMAGES
    ),
    "interpolate bicubic": Function(lambda x: F.interpolate(x, size=(7, 5), mode="bicubic"), IMAGES),
    "interpolate linear": Function(lambda x: F.interpolate(x, scale_factor=2, mode="linear"), ROWS),
    "interpolate trilinear": Function(
        lambda x: F.interpolate(x, scale_factor=2, mode="trilinear"), normal(1, 2, "n", 4, 5)
    ),
    "interpolate area": Function(lambda x: F.interpolate(x, size=(3, 3), mode="area"), normal("n", 4, 6, 9)),
    "grid_sample": Function(
        lambda x, g: F.grid_sample(x, g.tanh(), align_corners=False), tensors((2, 4, "n", 9), (2, 5, 6, 2))
    ),
    "grid_sample nearest": Function(
        lambda x, g: F.grid_sample(x, g.tanh(), mode="nearest", padding_mode="border", align_corners=True),
        tensors((2, 4, "n", 9), (2, 5, 6, 2)),
    ),
    "grid_sample reflection": Function(
        lambda x, g: F.grid_sample(x, g, padding_mode="reflection", align_corners=False),
        tensors((2, 4, "n", 9), (2, 5, 6, 2)),
    ),
    "affine_grid": Function(lambda t: F.affine_grid(t, [2, 3, 4, 5], align_corners=False), normal(2, 2, 3), fixed=True),
    "pad": Function(lambda x: F.pad(x, (1, 2, 0, 3), value=0.5), IMAGES, REAL),
    "pad negative": Function(lambda x: F.pad(x, (-1, 2, 1, -1)), IMAGES),
    "pad of truth values": Function(lambda x: F.pad(x > 0, (1, 2), value=True), MATRIX),
    "pad reflect": Function(lambda x: F.pad(x, (1, 2, 2, 1), mode="reflect"), IMAGES, REAL),
    "pad reflect 1d": Function(lambda x: F.pad(x, (2, 1), mode="reflect"), ROWS),
    "pad replicate": Function(lambda x: F.pad(x, (1, 2, 2, 1), mode="replicate"), IMAGES),
    "pad circular": Function(lambda x: F.pad(x, (1, 2, 2, 1), mode="circular"), IMAGES),
    "unfold": Function(lambda x: F.unfold(x, 3, padding=1, stride=2), IMAGES, REAL),
    "fold": Function(lambda x: F.fold(x, (6, 8), 2, stride=2), normal("n", 12, 12)),
    "fold overlapping": Function(lambda x: F.fold(x, (5, 6), 3, padding=1), normal("n", 18, 30)),
    # normalisations
    "layer_norm": Function(lambda x, w, b: F.layer_norm(x, (5,), w, b), tensors((3, "n", 5), (5,), (5,)), REAL),
    "layer_norm bare": Function(lambda x: F.layer_norm(x, x.shape[1:]), normal("n", 4, 5)),
    "layer_norm of mixed types": Function(
        lambda x, w, b: F.layer_norm(x.bfloat16(), (5,), w.bfloat16(), b.bfloat16()),
        tensors((3, "n", 5), (5,), (5,)),
    ),
    "layer_norm under autocast": Function(
        lambda x, w, b: _autocast(F.layer_norm, x.bfloat16(), (5,), w, b), tensors((3, "n", 5), (5,), (5,))
    ),
    "linear under autocast": Function(lambda x, w, b: _autocast(F.linear, x, w, b), tensors((3, "n", 5), (6, 5), (6,))),
    "attention under autocast": Function(
        lambda q, k: _autocast(F.scaled_dot_product_attention, q, k, k), tensors((2, 2, "n", 8), (2, 2, 5, 8))
    ),
    "group_norm": Function(lambda x, w, b: F.group_norm(x, 2, w, b), tensors((2, 4, "n", 9), (4,), (4,)), REAL),
    "group_norm bare": Function(lambda x: F.group_norm(x, 2), tensors((2, 4, "n"))),
    "batch_norm": Function(
        lambda x, m, v, w, b: F.batch_norm(x, m, v.abs() + 1, w, b),
        tensors((2, 4, "n", 9), (4,), (4,), (4,), (4,)),
        REAL,
    ),
    "batch_norm training": Function(lambda x: F.batch_norm(x, None, None, training=True), tensors((2, 4, "n", 9))),
    "instance_norm": Function(F.instance_norm, IMAGES, REAL),
    "rms_norm": Function(lambda x, w: F.rms_norm(x, (5,), w), tensors((3, "n", 5), (5,)), REAL),
    "local_response_norm": Function(lambda x: F.local_response_norm(x, 3), IMAGES),
    # attention
    "attention": Function(F.scaled_dot_product_attention, tensors((2, 2, "n", 8), (2, 2, 5, 8), (2, 2, 5, 8)), REAL),
    "attention causal": Function(
        lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), normal(2, 2, "n", 8), REAL
    ),
    "attention masked": Function(
        lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m > 0), tensors((2, 2, "n", 8), ("n", "n"))
    ),
    "attention biased": Function(
        lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m),
        tensors((2, 2, "n", 8), (2, 1, "n", "n")),
        REAL,
    ),
    "attention of groups": Function(
        lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True),
        tensors((2, 4, "n", 8), (2, 2, 5, 8)),
        REAL,
    ),
    "attention of groups, causal": Function(
        lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True, is_causal=True),
        tensors((2, 6, "n", 8), (2, 2, "n", 8)),
    ),
    "attention of one head of keys": Function(
        lambda q, k, m: F.scaled_dot_product_attention(q, k, k, attn_mask=m > 0, enable_gqa=True),
        tensors((2, 4, "n", 8), (2, 1, 5, 8), ("n", 5)),
    ),
    "attention of three dimensions": Function(
        lambda q, k: F.scaled_dot_product_attention(q, k, k, scale=0.3), tensors((2, "n", 8), (2, 5, 8))
    ),
    "attention of an open width": Function(
        lambda q, k: F.scaled_dot_product_attention(q, k, k), tensors((2, 2, 4, "n"), (2, 2, 5, "n"))
    ),
    "attention with another width of values": Function(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v), tensors((2, 2, "n", 8), (2, 2, 5, 8), (2, 2, 5, 4))
    ),
    "multi_head_attention": Function(
        lambda x, w, o: F.multi_head_attention_forward(
            x, x, x, 8, 2, w, None, None, None, False, 0.0, o, None, training=False, need_weights=False
        )[0],
        tensors(("n", 2, 8), (24, 8), (8, 8)),
    ),
    # losses
    "mse_loss": Function(F.mse_loss, PAIR, REAL),
    "l1_loss": Function(F.l1_loss, PAIR),
    "smooth_l1_loss": Function(F.smooth_l1_loss, PAIR),
    "huber_loss": Function(F.huber_loss, PAIR),
    "cross_entropy": Function(F.cross_entropy, lambda n: (torch.randn(n, 6), torch.randint(6, (n,)))),
    "cross_entropy ignoring": Function(
        lambda x, t: F.cross_entropy(x, t, ignore_index=1, label_smoothing=0.1),
        lambda n: (torch.randn(n, 6), torch.randint(6, (n,))),
    ),
    "nll_loss": Function(
        lambda x, t: F.nll_loss(x, t, reduction="none"), lambda n: (torch.randn(n, 6), torch.randint(6, (n,)))
    ),
    "nll_loss of images": Function(F.nll_loss, lambda n: (torch.randn(2, 6, n, 3), torch.randint(6, (2, n, 3)))),
    "binary_cross_entropy": Function(lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid()), PAIR),
    "binary_cross_entropy_with_logits": Function(lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid()), PAIR),
    "kl_div": Function(lambda x, y: F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="batchmean"), PAIR),
    "hinge_embedding_loss": Function(lambda x, y: F.hinge_embedding_loss(x, y.sign()), PAIR),
    "triplet_margin_loss": Function(F.triplet_margin_loss, tensors(("n", 6), ("n", 6), ("n", 6))),
    "poisson_nll_loss": Function(F.poisson_nll_loss, PAIR),
    "gaussian_nll_loss": Function(lambda x, y: F.gaussian_nll_loss(x, y, y.abs() + 1), PAIR),
    "ctc_loss": Function(
        lambda x: F.ctc_loss(
            x.log_softmax(-1), torch.tensor([[1, 2], [3, 1]]), torch.tensor([8, 8]), torch.tensor([2, 2])
        ),
        normal(8, 2, 5),
        fixed=True,
    ),
    # spectra and complex numbers
    "rfft": Function(lambda x: torch.view_as_real(torch.fft.rfft(x)), normal("n", 8)),
    "irfft": Function(lambda x: torch.fft.irfft(torch.fft.rfft(x) * 2, 8), normal("n", 8)),
    "fft2": Function(lambda x: torch.fft.fft2(x).abs(), normal("n", 4, 6)),
    "fftshift": Function(torch.fft.fftshift, MATRIX),
    "stft": Function(
        lambda x: torch.stft(x, 8, 4, window=torch.hann_window(8), return_complex=True).abs(), normal(2, 40), fixed=True
    ),
    "stft of a size": Function(
        lambda x: torch.view_as_real(torch.stft(x, 8, 4, window=torch.hann_window(8), return_complex=True)),
        lambda n: (torch.randn(2, 8 * n),),
    ),
    "istft": Function(
        lambda x: torch.istft(
            torch.stft(x, 8, 4, window=torch.hann_window(8), return_complex=True), 8, 4, window=torch.hann_window(8)
        ),
        normal(2, 40),
        fixed=True,
    ),
    "complex product": Function(
        lambda x, y: torch.view_as_real(torch.view_as_complex(x) * torch.view_as_complex(y)),
        tensors(("n", 3, 2), ("n", 3, 2)),
    ),
    "rotary by complex numbers": Function(
        lambda x, a: torch.view_as_real(
            torch.view_as_complex(x.unflatten(-1, (-1, 2))) * torch.polar(torch.ones_like(a), a)
        ).flatten(-2),
        tensors((2, "n", 8), ("n", 4)),
    ),
    "complex parts": Function(
        lambda x, y: (torch.complex(x, y).conj().imag, torch.complex(x, y).angle(), torch.complex(x, y).real), PAIR
    ),
    # control, numbers that vary
    "cond": Function(lambda x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)) + 1, MATRIX),
    "a size as a number": Function(lambda x: x * x.shape[0] + x.shape[0] ** 2, MATRIX),
    "a size as a fraction": Function(lambda x: x * (x.shape[0] / 3) + x.shape[0] ** -0.5, MATRIX),
    "an integer that varies": Function(lambda x, k: (x * k, x + k), lambda n: (torch.randn(4, 6), n)),
    "an integer as an end": Function(lambda x, k: x[:, :k] * 2, lambda n: (torch.randn(3, 20), n)),
    "an integer as a shift": Function(lambda x, k: x.roll(k, 0), lambda n: (torch.randn(3, 20), n)),
    "a fraction that varies": Function(lambda x, k: x * k + 1, lambda n: (torch.randn(4, 6), n / 7)),
    "tolist": Function(lambda x: x.sum().item() + x, MATRIX),
    # what is decomposed by rules beside those for core operators
    "addbmm of NaN that counts nothing": Function(
        lambda c, a, b: torch.addbmm(c * math.nan, a, b, beta=0, alpha=2), tensors(("n", 5), (2, "n", 6), (2, 6, 5))
    ),
    "cdist of other norms": Function(
        lambda x, y: tuple(torch.cdist(x, y, p) for p in (0, 1, 1.5, math.inf)), tensors(("n", 3), (4, 3))
    ),
    "cdist of itself": Function(lambda x: torch.cdist(x, x), normal("n", 3)),
    "ldexp": Function(torch.ldexp, lambda n: (torch.randn(n, 6), torch.randint(-4, 5, (6,))), REAL),
    "median of all": Function(lambda x: (x.median(), x.reshape(-1)[:-1].median()), normal("n", 6), NUMBER),
    "median of NaN": Function(torch.median, special),
    "triangles": Function(
        lambda x: (x[torch.triu_indices(4, 5, 1).unbind()], torch.tril_indices(4, 3, -1)), normal(4, 5)
    ),
}


def _written(x: Tensor, place: Any, values: Any) -> Tensor:
    y = x.clone()
    y[place] = values
    return y


def _autocast(function: Callable[..., Tensor], *inputs: Any) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return function(*inputs)
