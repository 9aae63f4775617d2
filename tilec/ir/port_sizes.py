"""Sizes that tensors tell: symbols that are a dimension of an input, read off its shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tilec.ir.expr import Var
from tilec.ir.graph import Port, Tensor


def told_symbols(ports: Iterable[Port], tensors: Mapping[str, Tensor]) -> frozenset[str]:
    """The symbols that are a dimension of one of the ports; values that only onnxruntime touches tell none."""
    shapes = (tensors[port.tensor].shape for port in ports if port.tensor in tensors)
    return frozenset(extent.name for shape in shapes for extent in shape if isinstance(extent, Var))


def port_sizes(
    ports: Iterable[Port], tensors: Mapping[str, Tensor], shapes: Mapping[str, Sequence[int]]
) -> dict[str, int]:
    """The sizes of symbols in the `shapes` of ports, by name of the port; the first dimension that is a symbol tells
    it."""
    sizes: dict[str, int] = {}
    for port in ports:
        if port.tensor not in tensors or port.name not in shapes:
            continue
        for extent, size in zip(tensors[port.tensor].shape, shapes[port.name], strict=False):
            if isinstance(extent, Var):
                sizes.setdefault(extent.name, size)
    return sizes
