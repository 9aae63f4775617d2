"""Graphs inside of operators: branches, bodies of loops, and regions that are called again and again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import fx

COND, LOOP = torch.ops.higher_order.cond, torch.ops.higher_order.while_loop

REGION = torch.ops.higher_order.invoke_subgraph
"""The call of a region (`torch.compiler.nested_compile_region`), which is nothing but its graph."""

DECIDES = "PyTorch takes the decision; what it chooses from is compiled"
"""Why a branch or a loop stays in PyTorch."""

Parameters = Mapping[str, torch.Tensor]


def inner_graphs(module: fx.GraphModule, values: Parameters) -> dict[str, dict[int, torch.Tensor]]:
    """The graphs that operators of a graph call, by name, with the arguments, by position, that are `values` of its own
    in every call: as they are in the first one, for calls of a region have their own."""
    found: dict[str, dict[int, torch.Tensor]] = {}
    for node in module.graph.nodes:
        for name, operands in _called(node):
            given = {n: values[each.name] for n, each in enumerate(operands) if _is_value(each, values)}
            first = found.setdefault(name, given)
            found[name] = {n: tensor for n, tensor in first.items() if n in given}
    return found


def _is_value(operand: Any, values: Parameters) -> bool:
    return isinstance(operand, fx.Node) and operand.name in values


def _called(node: fx.Node) -> Iterator[tuple[str, Sequence[Any]]]:
    """The graphs that an operator calls, and with what; None in the place of what changes from round to round."""
    if node.op != "call_function":
        return
    operands: Sequence[Any]
    if node.target is COND:
        _, *graphs, operands = node.args
    elif node.target is LOOP:
        *graphs, carried, more = node.args
        operands = [*[None] * len(carried), *more]
    elif node.target is REGION:
        graph, _, *operands = node.args
        graphs = [graph]
    else:
        return
    for graph in graphs:
        yield str(graph.target), operands
