"""How a model of the zoo is written, and its free extents."""

from dataclasses import dataclass
from typing import Literal

Form = Literal["fused", "decomposed"]
"""How exporters write a model: operators of opset 20 and later, or primitives of opset 13."""

Dim = int | str
"""An extent: a number, or the name of a symbol."""


@dataclass(frozen=True)
class Size:
    """The free extents of a model: items in the batch and the model's own second extent (tokens, rows, pixels)."""

    batch: Dim
    seq: Dim
