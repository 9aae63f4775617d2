"""Kernel names: equal groups share one, by the digest of their content without names (Welder, 4)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tilec.artifact import digest_object, encode
from tilec.ir.canonical import canonical, renamed
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

    def by_node(table: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, Any]:
        return {
            level: {names[n]: [[iterators[n][i], v] for i, v in sizes.items()] for n, sizes in per.items()}
            for level, per in table.items()
        }

    content: dict[str, Any] = {
        "nodes": [canonical(node.expr, names, iterators[node.name]) for node in nodes],
        "tensors": {
            names[t]: [tensors[t].ttype, *(text_of(e) for e in tensors[t].shape)] for t in names if t in tensors
        },
        "outputs": [names[t] for t in outputs],
        "connect": sorted([*(names[x] for x in edge.split("->")), level] for edge, level in connect.items()),
        "levels": [[level.name, level.units, level.managed, level.scope] for level in levels],
        "tiles": by_node(variant.tiles),
        "steps": by_node(variant.steps),
        "order": {
            level: {names[n]: [iterators[n][i] for i in order] for n, order in per.items()}
            for level, per in variant.order.items()
        },
        "tails": {level: {names[n]: tail for n, tail in per.items()} for level, per in variant.tails.items()},
        "loads": {names[t]: list(where) for t, where in variant.loads.items()},
        "units": {names[n]: unit for n, unit in variant.units.items()},
        "layouts": {
            level: {names[t]: list(order) for t, order in per.items()} for level, per in variant.layouts.items()
        },
        "guard": text_of(variant.guard),
    }
    if variant.shared:
        content["shared"] = encode(renamed(variant.shared, names, iterators))
    if variant.wide:
        content["wide"] = sorted(names[t] for t in variant.wide)
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
