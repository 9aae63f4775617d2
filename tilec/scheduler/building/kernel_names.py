"""Kernel names: equal groups share one, by the digest of their content without names (Welder, 4)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tilec.artifact import digest_object
from tilec.ir.canonical import canonical
from tilec.ir.decisions import Renaming, renamed, signed
from tilec.ir.expr import operands
from tilec.ir.graph import Node, Tensor
from tilec.ir.plan import PlanLevel, Variant
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
    """A readable name followed by the digest of everything that determines the kernel's code."""
    names, iterators = tensor_names(nodes), iterator_names(nodes)

    content: dict[str, Any] = {
        "nodes": [canonical(node.expr, names, iterators[node.name]) for node in nodes],
        "tensors": {
            names[t]: [tensors[t].ttype, *(text_of(e) for e in tensors[t].shape)] for t in names if t in tensors
        },
        "outputs": [names[t] for t in outputs],
        "connect": sorted([*(names[x] for x in edge.split("->")), level] for edge, level in connect.items()),
        "levels": [[level.name, level.units, level.managed, level.scope] for level in levels],
        "guard": text_of(variant.guard),
        **signed(renamed(variant, Renaming(names, iterators))),
    }
    return f"{_readable(nodes)}_{digest_object(content)[:DIGITS]}"


def _readable(nodes: Sequence[Node]) -> str:
    words = [re.sub(r"[^a-z0-9]+", "", node.op.lower()) or "node" for node in nodes]
    distinct = [w for n, w in enumerate(words) if n == 0 or w != words[n - 1]]
    name = "_".join(distinct)
    name = name[:MAX_NAME_LENGTH].rstrip("_")
    return name if name[:1].isalpha() else f"k{name}"


def tensor_names(nodes: Sequence[Node]) -> dict[str, str]:
    """Map from tensor to `t0`, `t1`, ... in the order in which nodes read and write them."""
    names: dict[str, str] = {}
    for node in nodes:
        for tensor in (*operands(node.expr), node.name):
            names.setdefault(tensor, f"t{len(names)}")
    return names


def iterator_names(nodes: Sequence[Node]) -> dict[str, dict[str, str]]:
    """Map from node to a map from iterator to `i0`, `i1`, ... by position."""
    return {node.name: {i: f"i{n}" for n, i in enumerate(node.expr.iterators)} for node in nodes}
