"""Weights as kernels want them: prepared nodes evaluated once, one tensor at a time, into one aligned file (W43).

A large constant that kernels read as it is stays in the model's file and is only referenced.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from tilec.abi.weights_file import weights_file
from tilec.artifact import atomic_open
from tilec.artifact.safetensors import layout, pieces_of
from tilec.ir.evaluate import Points, TensorWindow, evaluate, evaluate_box
from tilec.ir.expr import constant_value, operands
from tilec.ir.graph import WeightRef
from tilec.ir.plan import Plan
from tilec.ir.types import numpy_dtype
from tilec.ir.weights import bound_shape, read_constant, weight_path
from tilec.progress import Advance, unseen

SMALL = 64 << 10
"""Bytes of a constant below which it is copied next to the others: where it lies, the system maps as much of its
neighbours, which nothing reads (measured: 42 MB for the small ones of a speech model)."""

SLAB = 64 << 20
"""Bytes of a weight that are evaluated at once."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a constant lies at run time: `size` bytes at `offset` of `file`, a name inside the build folder."""

    file: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Weights:
    """Constant -> its place, and the sha256 of every file that is used."""

    places: Mapping[str, Place]
    files: Mapping[str, str]


def constants_read(plan: Plan) -> tuple[str, ...]:
    """Constants and prepared tensors that kernels and calls read, in order of first use."""
    known = set(plan.constants) | {node.name for node in plan.prepared}
    used = [t for group in plan.groups for node in group.nodes for t in operands(node.expr) if t in known]
    used += [port.tensor for call in plan.calls for port in call.inputs if port.tensor in known]
    return tuple(dict.fromkeys(used))


def prepare_weights(plan: Plan, weights_folder: Path, folder: Path, advance: Advance = unseen) -> Weights:
    """Evaluate the prepared nodes that kernels need and write them to one file in `folder`.

    A weight is evaluated in slabs of `SLAB` bytes: at any time one slab and what the weight is made from are in memory.
    `advance` counts weights. Raises UsageError or ArtifactError for weight files that are missing or too
    short.
    """
    wanted = constants_read(plan)
    referenced = {name: ref for name in wanted if (ref := _reference(plan, name)) is not None}
    written = [name for name in wanted if name not in referenced]
    places = {name: Place(ref.file, ref.offset, ref.size) for name, ref in referenced.items()}
    files = {ref.file: plan.files[ref.file] for ref in referenced.values()}
    for ref in referenced.values():
        weight_path(ref, weights_folder)
    if not written:
        return Weights(places, files)
    shapes = {n: (numpy_dtype(plan.tensors[n].ttype), bound_shape(plan.tensors[n])) for n in written}
    where = layout(shapes)
    digest = hashlib.sha256(where.header)
    values = _Values(plan, weights_folder)
    with atomic_open(folder / "weights.safetensors", lambda: weights_file(digest.hexdigest())) as file:
        file.write(where.header)
        for done, tensor in enumerate(written):
            for piece in pieces_of(values.slabs(tensor)):
                digest.update(piece)
                file.write(piece)
            advance(done + 1, len(written), "pack weights")
    name = weights_file(digest.hexdigest())
    places |= {tensor: Place(name, *where.places[tensor]) for tensor in written}
    return Weights(places, files | {name: digest.hexdigest()})


def _reference(plan: Plan, name: str) -> WeightRef | None:
    """The reference of a large constant that kernels can read where it lies: whole elements from the start of the
    file."""
    constant = plan.constants.get(name)
    if not isinstance(constant, WeightRef) or constant.size < SMALL:
        return None
    return constant if constant.offset % numpy_dtype(plan.tensors[name].ttype).itemsize == 0 else None


class _Values:
    """Values of constants and prepared nodes; that of a prepared node lives until its last reader has it."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan = plan
        self._folder = folder
        self._nodes = {node.name: node for node in plan.prepared}
        self._values: dict[str, NDArray[Any]] = {}
        self._readers: dict[str, int] = dict.fromkeys(self._nodes, 0)
        for node in plan.prepared:
            for tensor in operands(node.expr):
                if tensor in self._nodes:
                    self._readers[tensor] += 1

    def slabs(self, name: str) -> Iterator[NDArray[Any]]:
        """The value of a constant or prepared node, in slabs along its first dimension where nothing else reads it."""
        node = self._nodes.get(name)
        if node is None or not node.expr.spatial or self._readers[name] > 0:
            yield self.take(name)
            return
        expr, tensor = node.expr, self._plan.tensors[name]
        shape, dtype = bound_shape(tensor), numpy_dtype(tensor.ttype)
        rows = max(1, SLAB // max(1, prod(shape[1:]) * dtype.itemsize))
        windows = {t: TensorWindow(self.take(t), (0,) * len(self._plan.tensors[t].shape)) for t in operands(expr)}
        box = {i: (0, constant_value(extent) or 0) for i, extent in expr.domain.items()}
        for begin in range(0, shape[0], rows):
            box[expr.spatial[0]] = (begin, min(begin + rows, shape[0]))
            yield evaluate_box(expr, Points(box, windows), tensor.ttype)
        self._release(windows)

    def take(self, name: str) -> NDArray[Any]:
        """The value of a constant or prepared node."""
        if name in self._values:
            return self._values[name]
        if name not in self._nodes:
            return read_constant(name, self._plan.constants[name], self._plan.tensors[name], self._folder)
        expr = self._nodes[name].expr
        arrays = {tensor: self.take(tensor) for tensor in operands(expr)}
        value = evaluate(expr, arrays, ttype=self._plan.tensors[name].ttype)
        self._release(arrays)
        if self._readers[name] > 0:
            self._values[name] = value
        return value

    def _release(self, tensors: Iterable[str]) -> None:
        """A reader of these tensors has them: nothing keeps what has no reader left."""
        for tensor in tensors:
            if tensor in self._nodes:
                self._readers[tensor] -= 1
                if self._readers[tensor] == 0:
                    self._values.pop(tensor, None)
