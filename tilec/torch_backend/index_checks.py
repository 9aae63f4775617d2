"""Indices that a graph looks up: whether they lie in their dimensions is one more result of it.

Compiled code reads the first or the last element where PyTorch raises an error, so that each index which may be outside
is compared, once more than it is looked up with; those of known values and of known ranges are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from tilec.errors import UsageError
from tilec.torch_backend.value_ranges import MOVES, Range, is_inside, ranges_of

aten = torch.ops.aten

MOST_EVALUATED = 1 << 20
"""Elements of a constant index, or of a step to it, that is computed when the graph is compiled."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """Indices into a dimension of a source; where they `wrap` negative ones count from its end."""

    indices: fx.Node
    source: fx.Node
    dim: int
    wrap: bool

    @property
    def extent(self) -> Any:
        """How many elements are looked up in."""
        shape = self.source.meta["val"].shape
        return shape[self.dim] if shape else 1


@dataclass(frozen=True)
class CheckedGraph:
    """A graph whose last result says whether an index is outside, where it `is_checked`. `lookups` are the names of
    the calls whose indices nothing else has to compare."""

    module: fx.GraphModule
    is_checked: bool
    lookups: frozenset[str]


def with_checks(module: fx.GraphModule, constants: Mapping[int, torch.Tensor]) -> CheckedGraph:
    """The graph with a check of its indices; `constants` are the arguments of known values."""
    lookups = [(node, each) for node in module.graph.nodes for each in _lookups(node)]
    if not lookups:
        return CheckedGraph(module, False, frozenset())
    graph, copies = fx.Graph(), dict[fx.Node, fx.Node]()
    graph.graph_copy(module.graph, copies)
    results = next(node for node in module.graph.nodes if node.op == "output").args[0]
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    known = _Known(module, ranges_of(module.graph), {placeholders[n]: value for n, value in constants.items()})
    outside = _outside(graph, copies, known, [lookup for _, lookup in lookups])
    if outside is not None:
        listed = results if isinstance(results, tuple | list) else (results,)
        kept = [copies[each] if isinstance(each, fx.Node) else each for each in listed]
        graph.output((*kept, outside))
    names = frozenset(node.name for node, _ in lookups)
    return CheckedGraph(fx.GraphModule(module, graph) if outside is not None else module, outside is not None, names)


@dataclass(frozen=True, slots=True)
class Check:
    """What a compiled graph tells of indices: its last result, where it has one; and the nodes of its model that take
    indices which nothing else has to compare."""

    is_there: bool
    lookups: frozenset[str]

    def passed(self, results: list[Any]) -> list[Any]:
        """The other results. Raises UsageError for an index that is outside."""
        if self.is_there and results.pop().item():
            raise UsageError("an index lies outside of its dimension")
        return results


def _lookups(node: fx.Node) -> Iterator[Lookup]:
    """The indices that a call takes, masks left out."""
    if node.op != "call_function":
        return
    args: Any = node.args
    match node.target:
        case aten.embedding.default | aten._embedding_bag.default | aten._embedding_bag_forward_only.default:
            yield Lookup(args[1], args[0], 0, False)
        case (
            aten.index_select.default
            | aten.gather.default
            | aten.scatter.src
            | aten.scatter.value
            | aten.scatter_add.default
            | aten.scatter_reduce.two
        ):
            yield Lookup(args[2], args[0], args[1], False)
        case aten.index.Tensor | aten.index_put.default:
            for dim, indices in enumerate(args[1]):
                if indices is not None and indices.meta["val"].dtype in (torch.int64, torch.int32):
                    yield Lookup(indices, args[0], dim, True)


@dataclass
class _Known:
    """What is known of the values of a graph: ranges of integers, and values that follow from no input."""

    module: fx.GraphModule
    ranges: Mapping[fx.Node, Range]
    constants: Mapping[fx.Node, torch.Tensor]
    values: dict[fx.Node, torch.Tensor | None] = field(default_factory=dict)

    def is_inside(self, lookup: Lookup) -> bool:
        """Whether the indices of a lookup lie in its dimension."""
        extent = lookup.extent
        least = -extent if lookup.wrap else 0
        if is_inside(self.ranges[lookup.indices], least, extent):
            return True
        value = self._value(lookup.indices) if isinstance(extent, int) else None
        return value is not None and (not value.numel() or bool(value.min() >= least and value.max() < extent))

    def _value(self, wanted: fx.Node) -> torch.Tensor | None:
        """The value of a node that follows from constants alone."""
        pending = [wanted]
        while pending:
            node = pending[-1]
            missing = [each for each in node.all_input_nodes if each not in self.values]
            if missing and node.op == "call_function" and _is_small(node):
                pending += missing
            else:
                self.values[pending.pop()] = self._computed(node)
        return self.values[wanted]

    def _computed(self, node: fx.Node) -> torch.Tensor | None:
        if node.op == "placeholder":
            return self.constants.get(node)
        if node.op == "get_attr":
            found = getattr(self.module, str(node.target), None)
            return found if isinstance(found, torch.Tensor) else None
        inputs = [self.values.get(each) for each in node.all_input_nodes]
        random = (
            isinstance(node.target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in node.target.tags
        )
        if node.op != "call_function" or not _is_small(node) or random or any(each is None for each in inputs):
            return None
        args, kwargs = fx.node.map_arg((node.args, dict(node.kwargs)), lambda each: self.values[each])
        made = node.target(*args, **kwargs)
        return made if isinstance(made, torch.Tensor) else None


def _is_small(node: fx.Node) -> bool:
    """Whether a call makes one tensor on the CPU, of a known shape and few elements."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.device.type != "cpu":
        return False
    return all(isinstance(size, int) for size in value.shape) and value.numel() <= MOST_EVALUATED


def _outside(
    graph: fx.Graph, copies: Mapping[fx.Node, fx.Node], known: _Known, lookups: list[Lookup]
) -> fx.Node | None:
    """A scalar of the graph: whether an index of a lookup lies outside. None where none can."""
    flags: dict[tuple[Any, ...], fx.Node] = {}
    for lookup in lookups:
        if known.is_inside(lookup):
            continue
        indices = _same_values(lookup.indices)
        key = (indices, str(lookup.extent), lookup.wrap)
        if key not in flags:
            flags[key] = _flag(graph, copies[indices], copies[lookup.source], lookup)
    found: fx.Node | None = None
    for flag in flags.values():
        found = flag if found is None else _call(graph, aten.logical_or.default, found, flag)
    return found


def _flag(graph: fx.Graph, indices: fx.Node, source: fx.Node, lookup: Lookup) -> fx.Node:
    """Whether one of the indices lies outside."""
    extent: Any = lookup.extent
    if not isinstance(extent, int):
        extent = _call(graph, aten.sym_size.int, source, lookup.dim)
    above = _call(graph, aten.ge.Scalar, indices, extent)
    from_end = _call(graph, aten.add.Scalar, indices, extent) if lookup.wrap else indices
    below = _call(graph, aten.lt.Scalar, from_end, 0)
    return _call(graph, aten.any.default, _call(graph, aten.logical_or.default, above, below))


def _same_values(node: fx.Node) -> fx.Node:
    """What a tensor of indices is a view or an expansion of, which has the same values and fewer of them."""
    while node.target in WHOLE and isinstance(source := node.args[0], fx.Node):
        if source.meta["val"].dtype not in (torch.int32, torch.int64):
            break
        node = source
    return node


WHOLE = {
    aten.alias.default, aten.clone.default, aten.expand.default, aten.permute.default, aten.squeeze.default,
    aten.squeeze.dim, aten.squeeze.dims, aten.unsqueeze.default, aten.view.default,
}  # fmt: skip
"""Operators that have all elements of their argument, and no others."""

assert WHOLE <= MOVES


def _call(graph: fx.Graph, target: Any, *args: Any) -> fx.Node:
    """One more call, with what PyTorch says of its result."""
    made = graph.call_function(target, args)
    given = [each.meta["val"] if isinstance(each, fx.Node) else each for each in args]
    made.meta["val"] = target(*given)
    return made
