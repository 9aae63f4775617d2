"""Tensors whose elements do not lie in the order of their dimensions: channels last, transposed, expanded (A02).

A model takes and makes C-contiguous tensors. Those that are contiguous in another order of their dimensions are taken
and made in that order, and the graph permutes them: nothing is copied around it. Results get the strides of PyTorch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch import fx

Strides = tuple[Any, ...]
"""Numbers, or expressions over the symbols of a graph."""


@dataclass(frozen=True, slots=True)
class MemoryOrder:
    """Where elements lie: the tensor permuted by `order` is contiguous where it is `dense`. Its `strides` are numbers
    or expressions over symbols (None: those of a contiguous tensor); what is not dense is copied into them."""

    order: tuple[int, ...] | None = None
    strides: Strides | None = None
    dense: bool = True

    def contiguous(self, tensor: torch.Tensor) -> torch.Tensor:
        """A view of a dense tensor in the order of its elements."""
        return tensor if self.order is None else tensor.permute(self.order)

    def restored(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor of which this is the contiguous view."""
        return tensor if self.order is None else tensor.permute(_inverse(self.order))

    def shape(self, extents: Sequence[int]) -> tuple[int, ...]:
        """The shape of the tensor whose contiguous view has these extents."""
        return tuple(extents) if self.order is None else tuple(extents[dim] for dim in _inverse(self.order))


PLAIN = MemoryOrder()
"""The order of the dimensions."""


@dataclass(frozen=True)
class OrderedGraph:
    """A graph whose inputs and results are contiguous, and what those of the graph before were, by position."""

    module: fx.GraphModule
    inputs: Mapping[int, MemoryOrder]
    outputs: Mapping[int, MemoryOrder]
    symbols: Mapping[sympy.Symbol, tuple[int, int]]
    """Argument and dimension that have the value of a symbol."""


def in_memory_order(module: fx.GraphModule, constants: Collection[int]) -> OrderedGraph:
    """The graph on contiguous tensors; `constants` are arguments that are none of its inputs."""
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    results = _results(module.graph)
    inputs = {n: _order_of(node) for n, node in enumerate(placeholders) if n not in constants}
    outputs = {n: _order_of(node) for n, node in enumerate(results) if isinstance(node, fx.Node)}
    inputs = {n: each for n, each in inputs.items() if each.order is not None}
    outputs = {n: order for n, order in outputs.items() if order != PLAIN}
    symbols = _symbols(placeholders) if any(order.strides for order in outputs.values()) else {}
    if not inputs and not outputs:
        return OrderedGraph(module, inputs, outputs, symbols)
    return OrderedGraph(_permuted(module, inputs, outputs), inputs, outputs, symbols)


def with_strides(values: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """The same values in a tensor with these strides; where several elements lie at one place they are equal."""
    if values.numel() == 0:
        return torch.empty_strided(values.shape, strides, dtype=values.dtype, device=values.device)
    extents = zip(values.shape, strides, strict=True)
    room = torch.empty(
        1 + sum((extent - 1) * stride for extent, stride in extents), dtype=values.dtype, device=values.device
    )
    made = room.as_strided(values.shape, strides)
    places = torch.arange(room.numel(), device=values.device).as_strided(values.shape, strides).reshape(-1)
    room[places] = values.reshape(-1)
    return made


def in_order(values: torch.Tensor, order: MemoryOrder, symbols: Mapping[sympy.Symbol, int]) -> torch.Tensor:
    """The same values, with the elements where an order says for these values of symbols."""
    strides = None if order.strides is None else numbers(order.strides, symbols)
    if strides is None or strides == values.stride():
        return values
    if not order.dense:
        return with_strides(values, strides)
    return torch.empty_strided(values.shape, strides, dtype=values.dtype).copy_(values)


def numbers(strides: Strides, values: Mapping[sympy.Symbol, int]) -> tuple[int, ...] | None:
    """Strides for these values of symbols; None where one has no value."""
    known = [each if isinstance(each, int) else each.subs(values) for each in strides]
    return tuple(map(int, known)) if all(isinstance(each, int) or each.is_Integer for each in known) else None


def _permuted(
    module: fx.GraphModule, inputs: Mapping[int, MemoryOrder], outputs: Mapping[int, MemoryOrder]
) -> fx.GraphModule:
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    results: list[Any] = []
    count = 0
    for node in module.graph.nodes:
        if node.op == "output":
            continue
        copied = copies[node] = graph.node_copy(node, copies.__getitem__)
        if node.op == "placeholder":
            order = inputs[count].order if count in inputs else None
            if order is not None:
                copied.meta["val"] = node.meta["val"].permute(order)
                copies[node] = _permute(graph, copied, _inverse(order))
            count += 1
    made: dict[fx.Node, fx.Node] = {}
    for position, node in enumerate(_results(module.graph)):
        if not isinstance(node, fx.Node):
            results.append(node)
            continue
        order = outputs[position].order if position in outputs else None
        if node not in made:
            made[node] = copies[node] if order is None else _permute(graph, copies[node], order)
        results.append(made[node])
    graph.output(tuple(results))
    return fx.GraphModule(module, graph)


def _permute(graph: fx.Graph, node: fx.Node, order: tuple[int, ...]) -> fx.Node:
    made = graph.call_function(torch.ops.aten.permute.default, (node, list(order)))
    made.meta["val"] = node.meta["val"].permute(order)
    return made


def _results(graph: fx.Graph) -> Sequence[Any]:
    results = next(node for node in graph.nodes if node.op == "output").args[0]
    return results if isinstance(results, tuple | list) else (results,)


def _order_of(node: fx.Node) -> MemoryOrder:
    """Where the elements of a value lie, as PyTorch says."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return PLAIN
    sizes, strides = [_plain(each) for each in value.shape], tuple(_plain(each) for each in value.stride())
    if 0 in sizes:
        return MemoryOrder(strides=strides)
    if _matches(sizes, strides, range(len(sizes))):
        return PLAIN if _matches(sizes, strides, range(len(sizes)), exact=True) else MemoryOrder(strides=strides)
    hints = [each if isinstance(each, int) else _hint(each) for each in value.stride()]
    order = tuple(sorted(range(len(sizes)), key=lambda dim: (-hints[dim], dim)))
    dense = _matches(sizes, strides, order)
    return MemoryOrder(order if dense else None, strides, dense)


def _inverse(order: Sequence[int]) -> tuple[int, ...]:
    return tuple(order.index(dim) for dim in range(len(order)))


def _matches(sizes: Sequence[Any], strides: Sequence[Any], order: Sequence[int], exact: bool = False) -> bool:
    """Whether a tensor is contiguous with its dimensions in this order; unless it has to be `exact`, strides of a
    single element do not matter."""
    expected: Any = 1
    for dim in reversed(order):
        if sizes[dim] == 1 and not exact:
            continue
        if strides[dim] != expected and sympy.expand(strides[dim] - expected) != 0:
            return False
        expected = expected * sizes[dim]
    return True


def _plain(value: int | torch.SymInt) -> Any:
    """A size or stride as a number or an expression; strides take extents as 1 at least, which all but 0 are."""
    if isinstance(value, int):
        return value
    return value.node.expr.replace(_is_at_least_one, lambda each: next(arg for arg in each.args if arg != 1))


def _is_at_least_one(expr: Any) -> bool:
    return expr.func.__name__ == "Max" and len(expr.args) == 2 and 1 in expr.args


def _hint(value: torch.SymInt) -> int:
    hint = value.node.hint
    return hint if isinstance(hint, int) else 0


def _symbols(placeholders: Sequence[fx.Node]) -> dict[sympy.Symbol, tuple[int, int]]:
    found: dict[sympy.Symbol, tuple[int, int]] = {}
    for position, node in enumerate(placeholders):
        value = node.meta.get("val")
        for dim, extent in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
            expr = _plain(extent)
            if isinstance(expr, sympy.Symbol):
                found.setdefault(expr, (position, dim))
    return found
