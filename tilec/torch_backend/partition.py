"""Parts of a graph that tilec runs, where PyTorch keeps operators that have no translation (A02, A03)."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping

import torch
from torch import fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from tilec.torch_backend.compiled_graph import CompiledGraph
from tilec.torch_backend.options import Options
from tilec.torch_backend.translation import UntranslatableError, can_translate

log = logging.getLogger("tilec")

LEAST = 2
"""Operators of a part that is worth a model of its own."""


class _Translated(OperatorSupportBase):
    def is_node_supported(self, _submodules: Mapping[str, torch.nn.Module], node: fx.Node) -> bool:
        return can_translate(node)


def parts_compiled(module: fx.GraphModule, constants: Mapping[int, torch.Tensor], options: Options) -> fx.GraphModule:
    """The graph with parts that tilec runs; one warning names the operators that stay in PyTorch."""
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    values = {placeholders[position].name: tensor for position, tensor in constants.items()}
    calls = [node for node in module.graph.nodes if node.op == "call_function"]
    left = sorted({str(node.target) for node in calls if not can_translate(node)})
    partitioner = CapabilityBasedPartitioner(module, _Translated(), allows_single_node_partition=False)
    fused = partitioner.fuse_partitions(partitioner.propose_partitions())
    for node in list(fused.graph.nodes):
        if node.op != "call_module":
            continue
        part = fused.get_submodule(str(node.target))
        assert isinstance(part, fx.GraphModule)
        if sum(each.op == "call_function" for each in part.graph.nodes) < LEAST:
            continue
        given = {
            n: values[arg.name] for n, arg in enumerate(node.args) if isinstance(arg, fx.Node) and arg.name in values
        }
        try:
            compiled = CompiledGraph(part, given, options)
        except UntranslatableError as error:
            left.append(str(error))
            continue
        several = isinstance(_output(part), tuple | list)
        fused.set_submodule(str(node.target), _Part(compiled, several))
    if left:
        warnings.warn(f"PyTorch keeps what tilec does not translate: {', '.join(left)}", UserWarning, stacklevel=2)
    return fused


class _Part(torch.nn.Module):
    """A compiled part in the place of a module."""

    def __init__(self, compiled: CompiledGraph, several: bool) -> None:
        super().__init__()
        self._compiled = compiled
        self._several = several

    def forward(self, *args: object) -> object:
        """The results of the part; one that is not in a tuple alone."""
        results = self._compiled(list(args))
        return tuple(results) if self._several else results[0]


def _output(part: fx.GraphModule) -> object:
    return next(node for node in part.graph.nodes if node.op == "output").args[0]
