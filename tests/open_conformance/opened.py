"""A case's model with a symbol for each dimension of its inputs, and the sizes that the case has."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import onnx

NO_SYMBOLS: frozenset[str] = frozenset()

Sizes = Mapping[str, int]
"""Symbol -> size."""

Shapes = Mapping[str, tuple[str | int, ...]]
"""Input -> its symbols and fixed extents."""


@dataclass(frozen=True)
class Opened:
    """A model with open sizes: the dimensions of its inputs, and the sizes in the case."""

    model: Any
    shapes: Shapes
    sizes: Sizes

    def elements(self, sizes: Sizes) -> int:
        """Elements of the largest input at some sizes."""
        return max(prod(sizes.get(str(extent), extent) for extent in shape) for shape in self.shapes.values())


def opened(model: Any, feeds: Mapping[str, Any], fixed: Collection[str] = NO_SYMBOLS) -> Opened:
    """The model with `<input>_d<axis>` for every extent of its inputs but the `fixed` ones; nothing is declared of
    outputs but their types."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    shapes: dict[str, tuple[str | int, ...]] = {}
    sizes: dict[str, int] = {}
    for info in copy.graph.input:
        value = feeds.get(info.name)
        if not info.type.HasField("tensor_type") or not isinstance(value, np.ndarray):
            continue
        tensor = info.type.tensor_type
        own = {f"{info.name}_d{axis}": size for axis, size in enumerate(value.shape)}
        shapes[info.name] = tuple(size if symbol in fixed else symbol for symbol, size in own.items())
        sizes |= {symbol: size for symbol, size in own.items() if symbol not in fixed}
        del tensor.shape.dim[:]
        tensor.shape.SetInParent()
        for extent in shapes[info.name]:
            tensor.shape.dim.add(**{"dim_param" if isinstance(extent, str) else "dim_value": extent})
    for info in copy.graph.output:
        if info.type.HasField("tensor_type"):
            info.type.tensor_type.ClearField("shape")
    del copy.graph.value_info[:]
    return Opened(copy, shapes, sizes)


def resized(feeds: Mapping[str, Any], case: Opened, sizes: Sizes) -> dict[str, Any]:
    """The case's inputs at other sizes: its elements in order, from the first again where they do not suffice."""
    result = dict(feeds)
    for name, shape in case.shapes.items():
        wanted = tuple(sizes[extent] if isinstance(extent, str) else extent for extent in shape)
        result[name] = feeds[name] if feeds[name].shape == wanted else _filled(feeds[name], wanted)
    return result


def _filled(array: Any, shape: tuple[int, ...]) -> Any:
    if array.size == 0:
        return np.zeros(shape, array.dtype)
    numbers = np.arange(int(np.prod(shape, dtype=np.int64))) % array.size
    return array.ravel()[numbers].reshape(shape)
