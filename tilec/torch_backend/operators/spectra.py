"""Fourier transforms. Complex numbers are a last dimension of two in ONNX."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import fx

from tilec.torch_backend.operators.movement import axis
from tilec.torch_backend.translation import Translation, UntranslatableError, translates
from tilec.torch_backend.values import Tensor

aten = torch.ops.aten

NORMS = (0.0, -0.5, -1.0)
"""Power of the number of positions that a transform is multiplied by, by PyTorch's number of a normalisation."""


@translates(aten.view_as_real.default, aten.view_as_complex.default)
def _same(t: Translation, node: fx.Node, x: Tensor) -> str:
    return t.emit("Identity", x.name)


@translates(aten._fft_r2c.default)
def _from_real(t: Translation, node: fx.Node, x: Tensor, dims: Sequence[int], norm: int, onesided: bool) -> str:
    """The last dimension's half, where that is enough, and then the other dimensions."""
    places = [axis(x, d) for d in dims]
    name = t.emit("Unsqueeze", x.name, t.onnx.integers([x.rank]))
    name = _dft(t, name, places[-1], onesided=int(onesided))
    for place in places[:-1]:
        name = _dft(t, name, place)
    return _scaled(t, name, NORMS[norm], [x.shape[d] for d in places])


@translates(aten._fft_c2c.default)
def _of_complex(t: Translation, node: fx.Node, x: Tensor, dims: Sequence[int], norm: int, forward: bool) -> str:
    """ONNX divides inverse transforms by their length, PyTorch where it is asked to."""
    places = [axis(x, d) for d in dims]
    name = x.name
    for place in places:
        name = _dft(t, name, place, inverse=int(not forward))
    return _scaled(t, name, NORMS[norm] + (not forward), [x.shape[d] for d in places])


@translates(aten._fft_c2r.default)
def _to_real(t: Translation, node: fx.Node, x: Tensor, dims: Sequence[int], norm: int, last: int) -> str:
    places = [axis(x, d) for d in dims]
    if len(places) > 1 or not isinstance(last, int):
        raise UntranslatableError("a transform to real numbers over several dimensions, or of an open length")
    name = _dft(t, x.name, places[0], t.onnx.constant(last, "int64"), inverse=1, onesided=1)
    name = t.emit("Squeeze", name, t.onnx.integers([x.rank]))
    return _scaled(t, name, NORMS[norm] + 1, [last])


def _dft(t: Translation, name: str, place: int, length: str = "", **attributes: int) -> str:
    """A transform along one dimension."""
    return t.emit("DFT", name, length, t.onnx.constant(place, "int64"), **attributes)


def _scaled(t: Translation, name: str, power: float, extents: Sequence[object]) -> str:
    """A transform times a power of its number of positions."""
    if power == 0:
        return name
    count = [extent for extent in extents if isinstance(extent, int)]
    if len(count) < len(extents):
        raise UntranslatableError("a normalised transform of an open length")
    return t.emit("Mul", name, t.literal(math.prod(count) ** power, torch.float32))
