"""The operators of a graph that keep the model that it translates to from being compiled."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import torch
from torch import fx

from tilec.errors import TilecError
from tilec.importer import UnsupportedModelError
from tilec.torch_backend.cards import require_native
from tilec.torch_backend.report import reason_of
from tilec.torch_backend.translation import Translated, translate


def blamed(module: fx.GraphModule, constants: Mapping[int, torch.Tensor], error: Exception) -> dict[str, str]:
    """The calls of a graph, by name, that `error` of its compilation comes from, and why; none where that cannot be
    told. Import is asked again, for it knows all nodes that it refuses; what reads their results may be right."""
    translated = translate(module, constants, "graph")
    found = dict(_named(translated, error))
    if not isinstance(error, TilecError):
        return _first(module, found)
    try:
        require_native(translated.model)
    except Exception as again:
        found = dict(_named(translated, again)) or found
    return _first(module, found)


def _named(translated: Translated, error: Exception) -> Iterator[tuple[str, str]]:
    """The calls whose nodes in the model an error names."""
    if isinstance(error, UnsupportedModelError):
        pairs = [(each.node, each.reason) for each in error.nodes]
    else:
        pairs = [(name, reason_of(error)) for name in re.findall(r"[\w.]+", str(error))]
    for name, reason in pairs:
        if origin := translated.origins.get(name):
            yield origin, reason


def _first(module: fx.GraphModule, found: Mapping[str, str]) -> dict[str, str]:
    """Those calls that depend on no other one of them."""
    behind: set[fx.Node] = set()
    first = {}
    for node in module.graph.nodes:
        if not behind.isdisjoint(node.all_input_nodes):
            behind.add(node)
        elif node.name in found:
            behind.add(node)
            first[node.name] = found[node.name]
    return first
