"""Windows of convolutions and pools over the dimensions behind the channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quantised.known import Array

Attributes = Mapping[str, Any]


@dataclass(frozen=True)
class Window:
    """How a convolution or pooling walks over its input."""

    kernel: Sequence[int]
    strides: Sequence[int]
    dilations: Sequence[int]
    low: Sequence[int]
    high: Sequence[int]

    @staticmethod
    def of(a: Attributes, shape: Sequence[int], kernel: Sequence[int]) -> Window:
        rank = len(kernel)
        strides, dilations = a.get("strides", [1] * rank), a.get("dilations", [1] * rank)
        pads = a.get("pads", [0] * (2 * rank))
        low, high = list(pads[:rank]), list(pads[rank:])
        auto = a.get("auto_pad", b"NOTSET")
        if auto in (b"SAME_UPPER", b"SAME_LOWER"):
            for d in range(rank):
                span = (kernel[d] - 1) * dilations[d] + 1
                more = max(0, (-(-shape[d] // strides[d]) - 1) * strides[d] + span - shape[d])
                low[d], high[d] = (more // 2, more - more // 2)[:: 1 if auto == b"SAME_UPPER" else -1]
        return Window(kernel, strides, dilations, low, high)

    def views(self, x: Array, fill: float = 0) -> Array:
        """`[n, c, *out, *kernel]` of `[n, c, *in]`."""
        pads = [(0, 0), (0, 0), *zip(self.low, self.high, strict=True)]
        padded = np.pad(x, pads, constant_values=fill)
        spans = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]
        axes = tuple(range(2, x.ndim))
        views = np.lib.stride_tricks.sliding_window_view(padded, spans, axis=axes)
        steps = [slice(None, None, s) for s in self.strides]
        return views[(slice(None), slice(None), *steps, *(slice(None, None, d) for d in self.dilations))]
