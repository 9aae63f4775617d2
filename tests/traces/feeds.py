"""Inputs and outputs of a model, and random inputs at given sizes; a process that has these facts needs no onnx."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.traces.trace import Sizes

Array = NDArray[np.generic]
Feeds = Mapping[str, Array]

WORDS = 50
"""Token ids that every vocabulary has; other integers are 0 or 1, as masks are."""


@dataclass(frozen=True, slots=True)
class Input:
    """An input: its name, the name of its NumPy type, and its extents, numbers or symbols."""

    name: str
    dtype: str
    dims: tuple[int | str, ...]

    def shape(self, sizes: Sizes) -> list[int]:
        """The extents at these sizes of symbols."""
        return [sizes[dim] if isinstance(dim, str) else dim for dim in self.dims]


@dataclass(frozen=True, slots=True)
class Interface:
    """The inputs of a model and the names of its outputs."""

    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]

    def feeds(self, sizes: Sizes) -> dict[str, Array]:
        """Normally distributed numbers, word ids and masks: the same for the same sizes in every process."""
        generator = np.random.default_rng(list(sizes.values()))
        return {each.name: _drawn(each, each.shape(sizes), generator) for each in self.inputs}


def interface_of(model: Path) -> Interface:
    """The interface of an ONNX file."""
    import onnx

    graph = onnx.load(model, load_external_data=False).graph
    return Interface(tuple(map(_input, graph.input)), tuple(value.name for value in graph.output))


def _input(value: Any) -> Input:
    from onnx import helper

    tensor = value.type.tensor_type
    dims = tuple(dim.dim_param or dim.dim_value for dim in tensor.shape.dim)
    return Input(value.name, np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type)).name, dims)


def _drawn(wanted: Input, shape: list[int], generator: np.random.Generator) -> Array:
    if np.dtype(wanted.dtype).kind == "f":
        return generator.standard_normal(shape).astype(wanted.dtype)
    return generator.integers(0, WORDS if wanted.name == "input_ids" else 2, shape).astype(wanted.dtype)
