"""Data flow of a plan: groups, inputs, outputs and calls of onnxruntime as items with links between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tilec.bounds.plan.groups import read_from_outside
from tilec.ir.plan import Plan


@dataclass(frozen=True, slots=True)
class Item:
    """An item of the drawing: the `index`-th group, call, input or output of the plan."""

    kind: Literal["group", "call", "input", "output"]
    index: int


@dataclass(frozen=True, slots=True)
class Link:
    """The `tensors` that one item produces and another reads; items by position."""

    source: int
    target: int
    tensors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wiring:
    """Items, and links by source and target; weights are not items."""

    items: tuple[Item, ...]
    links: tuple[Link, ...]


def wiring(plan: Plan) -> Wiring:
    """All items of a plan: inputs, groups in their order, calls, outputs."""
    items = [Item("input", n) for n in range(len(plan.inputs))]
    items += [Item("group", n) for n in range(len(plan.groups))]
    items += [Item("call", n) for n in range(len(plan.calls))]
    items += [Item("output", n) for n in range(len(plan.outputs))]
    makers = {tensor: n for n, item in enumerate(items) for tensor in _produced(plan, item)}
    tensors: dict[tuple[int, int], list[str]] = {}
    for target, item in enumerate(items):
        for tensor in _read(plan, item):
            source = makers.get(tensor)
            if source is not None and source != target:
                tensors.setdefault((source, target), []).append(tensor)
    links = (Link(source, target, tuple(dict.fromkeys(names))) for (source, target), names in sorted(tensors.items()))
    return Wiring(tuple(items), tuple(links))


def _produced(plan: Plan, item: Item) -> Iterator[str]:
    """Tensors that an item produces."""
    match item.kind:
        case "input":
            yield plan.inputs[item.index].tensor
        case "group":
            yield from plan.groups[item.index].outputs
        case "call":
            yield from (port.tensor for port in plan.calls[item.index].outputs)


def _read(plan: Plan, item: Item) -> Iterator[str]:
    """Tensors that an item reads."""
    match item.kind:
        case "group":
            yield from read_from_outside(plan.groups[item.index])
        case "call":
            yield from (port.tensor for port in plan.calls[item.index].inputs)
        case "output":
            yield plan.outputs[item.index].tensor
