"""The mapspaces that are searched, and their descriptions in reports."""

from __future__ import annotations

from typing import Literal

Kind = Literal["oro", "oro+"]
"""The paper's mapspace (`oro`), and the larger one (`oro+`)."""

MAPSPACES: dict[Kind, str] = {
    "oro": "one buffer, perfect factors, all loop orders, bounding boxes, no bypass, no recomputation",
    "oro+": (
        "one buffer, the smallest tile for every number of tiles, all loop orders, snake order, bounding boxes, at most"
        " one operand in slices of its tile (or windows that slide), no recomputation, no multi-level outer tiling"
    ),
}

PARALLEL = "parallel"
"""The name of the larger mapspace in tasks that run side by side."""

PARALLEL_MEANING = (
    "oro+ in at least as many tasks as there are units, each from an empty buffer of its own: all tiles of some"
    " iterators apart, those of one more divided; partial sums of a cut reduction written and read again"
)
