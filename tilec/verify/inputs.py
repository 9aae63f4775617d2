"""Random model inputs that every operator accepts: seeded, and in range where a value is used as an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from tilec.errors import UnsupportedError
from tilec.ir.bind_plan import bind_plan, plan_sizes
from tilec.ir.expr import Access, accesses, constant_value, walk
from tilec.ir.graph import IndexRange, Node, Opaque, Tensor
from tilec.ir.plan import Plan
from tilec.ir.types import TTYPES, numpy_dtype
from tilec.verify.nodes import nodes_of
from tilec.verify.rounded_states import drawn_states, rounded

Array = NDArray[np.generic]
Choices = tuple[tuple[str, tuple[int, ...]], ...]

_NO_CHOICES: Mapping[str, tuple[int, ...]] = MappingProxyType({})
_NO_SIZES: Mapping[str, int] = MappingProxyType({})

SHIFTED_MEAN = 3.0
"""Mean of every second draw, which reveals errors that cancel around zero."""


OPEN_EXTENT = 3
"""Extent of a dimension without a size in the model."""

DRAWN = {"tensor(string)": "object", "tensor(float)": "float32", "tensor(double)": "float64"}
"""NumPy types for opaque inputs that can be drawn at random."""


@dataclass(frozen=True, slots=True)
class Draw:
    """One set of random inputs: normally distributed with this mean and spread, from this seed. `choices` are the
    values of integer inputs, by their name in the model, that are compared with constants; the others are 0 in a draw
    that is `cautious`, since a number may be the place of something that no expression tells, and 1 in one that is
    `whole`, as in masks that leave nothing out."""

    seed: int
    mean: float = 0.0
    spread: float = 1.0
    choices: Choices = ()
    cautious: bool = False
    whole: bool = False


def draws(seeds: Sequence[int], choices: Choices = ()) -> tuple[Draw, ...]:
    """One draw per seed, alternately with mean 0 and mean `SHIFTED_MEAN`."""
    return tuple(Draw(seed, SHIFTED_MEAN if i % 2 else 0.0, choices=choices) for i, seed in enumerate(seeds))


def index_limits(nodes: Sequence[Node], tensors: Mapping[str, Tensor], sources: Sequence[str]) -> dict[str, int]:
    """Map from tensor of `sources` to the smallest extent that its values index, directly or through movement and
    arithmetic.

    Integer tensors are followed from the sources to the indices of data-dependent accesses, not through sums: what a
    mask adds up to may index, its elements do not.
    """
    reaches: dict[str, set[str]] = {source: {source} for source in sources}
    limits: dict[str, int] = {}
    for node in nodes:
        for access in accesses(node.expr):
            extents = tensors[access.tensor].shape
            for index, extent in zip(access.index, extents, strict=True):
                size = constant_value(extent)
                for inner in (e for e in walk(index) if isinstance(e, Access)):
                    for source in reaches.get(inner.tensor, ()):
                        if size is not None:
                            limits[source] = min(size, limits.get(source, size))
        if TTYPES[tensors[node.name].ttype].kind in ("int", "uint") and node.expr.reducer != "sum":
            reaches[node.name] = set().union(*(reaches.get(a.tensor, set()) for a in accesses(node.expr)))
    return limits


def random_inputs(plan: Plan, draw: Draw, sizes: Mapping[str, int] = _NO_SIZES) -> dict[str, Array]:
    """One random array for every input of the model, by its name there, at these sizes of symbols, others at the sizes
    that decisions were made for; open extents of what only onnxruntime reads are `OPEN_EXTENT`."""
    if plan.symbols:
        plan = bind_plan(plan, {**plan_sizes(plan), **sizes})
    tensors = [port.tensor for port in plan.inputs if port.tensor not in plan.opaque]
    by_name = dict(draw.choices)
    chosen = {port.tensor: by_name[port.name] for port in plan.inputs if port.name in by_name}
    arrays = random_tensors(tensors, nodes_of(plan), plan.tensors, draw, chosen, plan.ranges)
    arrays |= {p.tensor: _random_opaque(plan.opaque[p.tensor], draw) for p in plan.inputs if p.tensor in plan.opaque}
    drawn = {port.name: arrays[port.tensor] for port in plan.inputs}
    return {**drawn, **rounded(plan, drawn_states(plan, draw.seed))}


def undrawable(plan: Plan) -> str | None:
    """The reason why no random inputs can be made for a model, None if they can."""
    for port in plan.inputs:
        opaque = plan.opaque.get(port.tensor)
        if opaque is not None and (opaque.type not in DRAWN or opaque.shape is None):
            return f"input {port.name!r}, {opaque.type or 'of unknown type'}, cannot be drawn at random"
    return None


def _random_opaque(opaque: Opaque, draw: Draw) -> Array:
    """Random contents for a tensor that only onnxruntime reads."""
    generator = np.random.default_rng(draw.seed)
    shape = [extent if isinstance(extent, int) else OPEN_EXTENT for extent in opaque.shape or ()]
    if opaque.type == "tensor(string)":
        return generator.choice(np.array(["a", "Bc", "def 1", ""], object), shape)
    return generator.standard_normal(shape).astype(DRAWN[opaque.type])


def random_tensors(
    names: Sequence[str],
    nodes: Sequence[Node],
    tensors: Mapping[str, Tensor],
    draw: Draw,
    choices: Mapping[str, tuple[int, ...]] = _NO_CHOICES,
    ranges: Sequence[IndexRange] = (),
) -> dict[str, Array]:
    """Random arrays for the tensors `names` that `nodes` read.

    Floating-point tensors are normal with the draw's mean and spread; integers that index are uniform below the
    extent they index, in `nodes` or by `ranges` (an index into a dimension of extent 1 is in no expression), those of a
    column below the extent that it indexes; others with `choices` are one of these; bytes take all values; other
    integers and booleans are 0 or 1, as masks are.
    Raises UnsupportedError for an unbound size.
    """
    generator = np.random.default_rng(draw.seed)
    limits = index_limits(nodes, tensors, names)
    columns: dict[tuple[str, tuple[int, int]], int] = {}
    for each in ranges:
        if (extent := constant_value(each.extent)) is None:
            continue
        if each.column is None:
            limits[each.tensor] = min(extent, limits.get(each.tensor, extent))
        else:
            key = (each.tensor, each.column)
            columns[key] = min(extent, columns.get(key, extent))
    result: dict[str, Array] = {}
    for name in names:
        tensor = tensors[name]
        sizes = [constant_value(extent) for extent in tensor.shape]
        if None in sizes:
            raise UnsupportedError(f"tensor {name} has a symbolic shape", hint="Bind it with --shape SYMBOL=SIZE.")
        shape = [size for size in sizes if size is not None]
        dtype = numpy_dtype(tensor.ttype)
        kind = TTYPES[tensor.ttype].kind
        if kind == "float":
            values = np.empty(shape, np.float32)
            generator.standard_normal(dtype=np.float32, out=values)
            values *= np.float32(draw.spread)
            values += np.float32(draw.mean)
            result[name] = values.astype(dtype, copy=False)
        elif name not in limits and choices.get(name):
            result[name] = generator.choice(np.array(choices[name], np.int64), shape).astype(dtype)
        elif draw.cautious and kind in ("int", "uint"):
            result[name] = np.zeros(shape, dtype)
        elif draw.whole and name not in limits:
            result[name] = np.ones(shape, dtype)
        elif name not in limits and kind != "bool" and TTYPES[tensor.ttype].bits == 8:
            result[name] = generator.integers(0, 256, shape, dtype=np.int64).astype(np.uint8).view(dtype)
        else:
            result[name] = generator.integers(0, max(1, limits.get(name, 2)), shape).astype(dtype)
    for (name, (dimension, place)), extent in columns.items():
        part = result[name][(slice(None),) * dimension + (slice(place, place + 1),)]
        part[...] = generator.integers(0, max(1, extent), part.shape)
    return result
