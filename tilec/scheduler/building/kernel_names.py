"""Kernel names: equal groups share one, by the digest of their canonical form (Welder, 4)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tilec.artifact import digest_object
from tilec.ir.canonical_group import canonical_group
from tilec.ir.decisions import signed, without_code
from tilec.ir.graph import Node, Tensor
from tilec.ir.plan import PlanLevel, Variant, tile_levels
from tilec.ir.text import text_of

MAX_NAME_LENGTH = 40
"""Letters of a kernel's name before its digest."""

DIGITS = 10
"""Hexadecimal digits of the digest in a name."""


def kernel_name(
    nodes: Sequence[Node],
    outputs: Sequence[str],
    connect: Mapping[str, str],
    variant: Variant,
    tensors: Mapping[str, Tensor],
    levels: Sequence[PlanLevel],
) -> str:
    """A readable name followed by the digest of everything that determines the kernel's code. Not of what the rules of
    GPUs decide (`threads`), which follows from the rest of a plan."""
    group = canonical_group(nodes, outputs, connect, without_code(variant) if variant.threads else variant, tensors)
    content: dict[str, Any] = {
        "nodes": [list(texts) for texts in group.form.nodes],
        "tensors": {name: list(texts) for name, texts in group.form.tensors.items()},
        "outputs": list(group.form.outputs),
        "connect": sorted([*edge.split("->"), level] for edge, level in group.connect.items()),
        "levels": [
            [level.name, level.units, level.managed, level.scope] for level in tile_levels(levels, variant.levels)
        ],
        "guard": text_of(variant.guard),
        **signed(group.variant),
    }
    return f"{_readable(nodes)}_{digest_object(content)[:DIGITS]}"


def _readable(nodes: Sequence[Node]) -> str:
    words = [re.sub(r"[^a-z0-9]+", "", node.op.lower()) or "node" for node in nodes]
    distinct = [w for n, w in enumerate(words) if n == 0 or w != words[n - 1]]
    name = "_".join(distinct)
    name = name[:MAX_NAME_LENGTH].rstrip("_")
    return name if name[:1].isalpha() else f"k{name}"
