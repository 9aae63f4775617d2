"""Sizes that tensors tell: symbols read off the dimensions of inputs, or of results of calls.

A dimension tells a symbol where its extent is the symbol, else where it is a multiple of it plus a constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tilec.ir.algebra import linear_form
from tilec.ir.expr import Expr, Var
from tilec.ir.graph import Port, Tensor


def told_symbols(ports: Iterable[Port], tensors: Mapping[str, Tensor]) -> frozenset[str]:
    """The symbols that dimensions of the ports tell; values that only onnxruntime touches tell none."""
    shapes = (tensors[port.tensor].shape for port in ports if port.tensor in tensors)
    return frozenset(symbol for shape in shapes for extent in shape for symbol, _, _ in told_by(extent))


def port_sizes(
    ports: Iterable[Port], tensors: Mapping[str, Tensor], shapes: Mapping[str, Sequence[int]]
) -> dict[str, int]:
    """The sizes of symbols in the `shapes` of ports, by name of the port; dimensions that are a symbol come first."""
    plain: dict[str, int] = {}
    others: dict[str, int] = {}
    for port in ports:
        if port.tensor not in tensors or port.name not in shapes:
            continue
        for extent, size in zip(tensors[port.tensor].shape, shapes[port.name], strict=False):
            for symbol, factor, constant in told_by(extent):
                sizes = plain if isinstance(extent, Var) else others
                sizes.setdefault(symbol, (size - constant) // factor)
    return {**others, **plain}


def told_by(extent: Expr) -> Iterator[tuple[str, int, int]]:
    """The symbol that an extent tells, its factor and a constant: one that is affine in it alone and grows with it."""
    terms, constant = linear_form(extent)
    match list(terms.items()):
        case [(Var(name), factor)] if factor > 0:
            yield name, factor, constant
