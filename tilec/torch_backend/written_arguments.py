"""Arguments that a graph writes: calls at its end, which become results that are copied into them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from tilec.torch_backend.rescue import Boxed
from tilec.torch_backend.shared_memory import memory_of

WRITE = torch.ops.aten.copy_.default


@dataclass(frozen=True, slots=True)
class Functional:
    """A graph that writes nothing: its last results, from the last one on, belong into the arguments at the positions
    `written`. What runs it, and writes, returns the others."""

    module: fx.GraphModule
    written: tuple[int, ...]


def with_writes(run: Boxed, written: Sequence[int]) -> Boxed:
    """What runs such a graph, with the writes, which come when all is computed."""
    if not written:
        return run

    def call(args: list[Any]) -> list[Any]:
        targets = [args[position] for position in written]
        return write(list(run(args)), targets)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


def write(results: list[Any], targets: Sequence[torch.Tensor]) -> list[Any]:
    """Copy the last results into the targets, from the last one on, and return the others."""
    for target in targets:
        target.copy_(results.pop())
    return results


def without_writes(module: fx.GraphModule, passed: Mapping[int, int]) -> Functional:
    """The graph, without the calls that write to its arguments. What is written and lies in the memory of an argument
    is copied before, for that may be written, too. Results that whoever calls takes from an argument are `passed`, by
    the position of that: those that are written to it become None."""
    graph = module.graph
    writes = [node for node in graph.nodes if node.target is WRITE]
    if not writes:
        return Functional(module, ())
    places = {node: position for position, node in enumerate(n for n in graph.nodes if n.op == "placeholder")}
    written: dict[int, fx.Node] = {}
    for node in writes:
        target, value = node.args[:2]
        node.replace_all_uses_with(value)
        graph.erase_node(node)
        written[places[target]] = value
    output = next(node for node in graph.nodes if node.op == "output")
    with graph.inserting_before(output):
        values = [_copied(graph, value) if memory_of(value) in places else value for value in written.values()]
    results = [None if each is written.get(passed.get(n, -1)) else each for n, each in enumerate(output.args[0])]
    output.args = ((*results, *reversed(values)),)
    module.recompile()
    return Functional(module, tuple(written))


def _copied(graph: fx.Graph, value: fx.Node) -> fx.Node:
    made = graph.call_function(torch.ops.aten.clone.default, (value,))
    made.meta["val"] = value.meta["val"].clone()
    return made
