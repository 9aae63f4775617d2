"""Integers that vary as extents: a model takes tensors only, and its sizes are what it can compute shapes from.

An integer among the arguments of a graph that is no extent of a tensor becomes the extent of a vector that nobody
reads, whose memory is asked for and never touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from tilec.errors import UsageError

MOST = 1 << 32
"""Numbers from which on compiled code is not asked."""


@dataclass(frozen=True, slots=True)
class WithExtents:
    """A graph whose arguments at these positions are vectors in the place of integers."""

    module: fx.GraphModule
    positions: tuple[int, ...]

    def arguments(self, args: Sequence[Any]) -> list[Any]:
        """The arguments with vectors in the place of integers. Raises UsageError for one below 1, which is no extent of
        a vector with elements."""
        args = list(args)
        for position in self.positions:
            if not 0 < args[position] < MOST:
                raise UsageError(f"argument {position} of a graph is {args[position]}; compiled code takes 1 to {MOST}")
            args[position] = torch.empty(args[position], dtype=torch.uint8)
        return args


def with_extents(module: fx.GraphModule) -> WithExtents:
    """The graph, or one where integers that vary have been replaced."""
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    values = [node.meta.get("val") for node in placeholders]
    extents = [size for value in values if isinstance(value, torch.Tensor) for size in value.shape]
    positions = tuple(n for n, value in enumerate(values) if isinstance(value, torch.SymInt) and _free(value, extents))
    if not positions:
        return WithExtents(module, ())
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    graph.output(graph.graph_copy(module.graph, copies))
    for position in positions:
        number = copies[placeholders[position]]
        size = number.meta["val"]
        with FakeTensorMode(shape_env=size.node.shape_env):
            tensor = torch.empty((size,), dtype=torch.uint8)
        last = next(node for node in reversed(graph.nodes) if node.op == "placeholder")
        with graph.inserting_after(last):
            extent = graph.call_function(torch.ops.aten.sym_size.int, (number, 0))
        extent.meta["val"] = size
        number.meta = {**number.meta, "val": tensor}
        number.replace_all_uses_with(extent, delete_user_cb=lambda user, made=extent: user is not made)
    return WithExtents(fx.GraphModule(module, graph), positions)


def _free(number: torch.SymInt, extents: Sequence[int | torch.SymInt]) -> bool:
    """Whether an integer is neither an extent nor a whole part of one."""
    for extent in extents:
        if isinstance(extent, torch.SymInt) and (extent.node.expr / number.node.expr).is_Integer:
            return False
    return True
