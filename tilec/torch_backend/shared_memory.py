"""Results that share memory with an argument or with another result: PyTorch makes these views, which cost nothing.

A model has results of its own memory. A caller who writes to one of two views of a tensor reads it in the other, and
AOTAutograd rebuilds a view of an argument from the offset of what a graph returns.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx


@dataclass(frozen=True, slots=True)
class WithViews:
    """A graph with its `views`, the names of calls that make such results and nothing else. `some`: whether it has any,
    or results that are arguments."""

    module: fx.GraphModule
    views: frozenset[str]
    some: bool


def with_views(module: fx.GraphModule) -> WithViews:
    """The graph, or one where results that share memory are made by calls of their own."""
    results = _results(module.graph)
    nodes = [each for each in dict.fromkeys(results) if isinstance(each, fx.Node)]
    roots = {node: memory_of(node) for node in nodes}
    sharing = Counter(roots.values())
    views = [node for node in nodes if roots[node] is not node and (_is_given(roots[node]) or sharing[roots[node]] > 1)]
    passed = any(node.op == "placeholder" and isinstance(node.meta.get("val"), torch.Tensor) for node in nodes)
    if not views:
        return WithViews(module, frozenset(), passed)
    graph, copies = fx.Graph(), dict[fx.Node, fx.Node]()
    graph.graph_copy(module.graph, copies)
    copied = [copies[each] if isinstance(each, fx.Node) else each for each in results]
    apart = dict[fx.Node, fx.Node]()
    made = {copies[node]: _copied_apart(graph, copies[node], apart) for node in views}
    graph.output(tuple(made.get(each, each) if isinstance(each, fx.Node) else each for each in copied))
    for node in reversed([*apart]):
        if not node.users:
            graph.erase_node(node)
    return WithViews(fx.GraphModule(module, graph), frozenset(node.name for node in apart.values()), True)


def _copied_apart(graph: fx.Graph, node: fx.Node, apart: dict[fx.Node, fx.Node]) -> fx.Node:
    """A call again, with those that it takes views and sizes from, at the end of the graph."""
    if _is_given(node) or (_source(node) is None and not _is_size(node)):
        return node
    if node not in apart:
        for each in node.all_input_nodes:
            _copied_apart(graph, each, apart)
        apart[node] = graph.node_copy(node, lambda each: apart.get(each, each))
    return apart[node]


def memory_of(node: fx.Node) -> fx.Node:
    """The node whose memory a node is a view of."""
    while (source := _source(node)) is not None:
        node = source
    return node


def _source(node: fx.Node) -> fx.Node | None:
    """What a call returns a view, or several views, of; None for other calls."""
    if node.op != "call_function" or not node.args or not isinstance(node.args[0], fx.Node):
        return None
    source = node.args[0]
    if node.target is operator.getitem:
        return source if _source(source) is not None else None
    if not getattr(node.target, "is_view", False):
        return None
    given, made = source.meta.get("val"), node.meta.get("val")
    views = made if isinstance(made, tuple | list) else [made]
    return source if all(_shares(given, each) for each in views) else None


def _shares(one: Any, other: Any) -> bool:
    """Whether tensors of tracing lie in the same memory."""
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return False
    strided = one.layout == torch.strided and other.layout == torch.strided
    return strided and bool(one.untyped_storage()._cdata == other.untyped_storage()._cdata)


def _is_given(node: fx.Node) -> bool:
    return node.op in ("placeholder", "get_attr")


def _is_size(node: fx.Node) -> bool:
    value = node.meta.get("val")
    return node.op == "call_function" and isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool)


def _results(graph: fx.Graph) -> Sequence[Any]:
    results = next(node for node in graph.nodes if node.op == "output").args[0]
    return results if isinstance(results, tuple | list) else (results,)
