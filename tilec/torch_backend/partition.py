"""Parts of a graph that tilec runs, where PyTorch keeps operators that have no translation (A02, A03)."""

from __future__ import annotations

import logging
import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from tilec.torch_backend.blame import blamed
from tilec.torch_backend.compiled_graph import CompiledGraph
from tilec.torch_backend.complex_parts import without_complex
from tilec.torch_backend.inner_graphs import COND, DECIDES, LOOP, REGION, inner_graphs
from tilec.torch_backend.numbers_as_extents import with_extents
from tilec.torch_backend.options import Options
from tilec.torch_backend.report import Kept, Report, reason_of, reasons, tell
from tilec.torch_backend.rescue import Boxed, Rescued, boxed
from tilec.torch_backend.shared_memory import with_views
from tilec.torch_backend.translation import UntranslatableError, refused_operators
from tilec.torch_backend.written_arguments import Functional, with_writes

log = logging.getLogger("tilec")

LEAST = 2
"""Operators of a part between others that is worth a model of its own."""


def compiled_parts(graph: Functional, constants: Mapping[int, torch.Tensor], options: Options) -> Boxed:
    """A graph as a callable that tilec runs as far as it can, and PyTorch the rest; one warning names that.

    `constants` are parameters, by position. Raises UnsupportedError where `options` are strict and something is left.
    """
    given = with_views(without_complex(graph.module))
    module, splitting = given.module, _Splitting(options, given.views)
    if given.some:
        run = with_writes(splitting.without(module, constants, refused_operators(module)), graph.written)
    else:
        run = splitting.compiled(module, constants, graph.written)
    views = sum(_is_call(node) for node in module.graph.nodes if node.name in given.views)
    tell(Report(_calls(module) - views, splitting.native, splitting.kept), options.strict)
    return run


def _without_blamed(
    graph: Functional, positions: Sequence[int], options: Options, error: Exception, args: Sequence[Any]
) -> Boxed | None:
    """A graph without the operators that an error comes from, compiled anew; None where no operator is to blame.
    Parameters stand at these positions of its arguments."""
    module, constants = graph.module, {position: args[position] for position in positions}
    try:
        refused = blamed(with_extents(module).module, constants, error) if options.is_eager else {}
        if not refused:
            return None
        splitting = _Splitting(options)
        run = with_writes(splitting.without(module, constants, refused), graph.written)
        tell(Report(_calls(module), splitting.native, splitting.kept), options.strict)
    except Exception:  # PyTorch has run it so far
        log.debug("a graph does not compile in parts", exc_info=True)
        return None
    return run


@dataclass
class _Splitting:
    """A graph while it is split into parts: the calls that PyTorch keeps, by name, and the number that tilec runs.
    Calls that are `views` are PyTorch's, too, which nobody is told."""

    options: Options
    views: frozenset[str] = frozenset()
    kept: dict[str, Kept] = field(default_factory=dict)
    native: int = 0

    def compiled(
        self, module: fx.GraphModule, constants: Mapping[int, torch.Tensor], written: tuple[int, ...] = ()
    ) -> Boxed:
        """A graph, or a part of one, which writes its last results to arguments that are `written`. It is compiled
        whole; where that fails, its parts between the operators to blame are; and where no operator is, PyTorch runs
        it."""
        refused = refused_operators(module)
        if not refused:
            try:
                numbers = with_extents(module)
                run = CompiledGraph(numbers.module, constants, self.options, written)
            except UntranslatableError as error:
                refused = {error.node: str(error)} if error.node else {}
                reason = str(error)
            except Exception as error:
                log.debug("a graph does not compile", exc_info=True)
                refused, reason = blamed(with_extents(module).module, constants, error), reason_of(error)
            else:
                self.native += _calls(module)
                again = partial(_without_blamed, Functional(module, written), tuple(constants), self.options)
                return Rescued(run, with_writes(boxed(module), written), numbers, self.options.strict, again)
            if not refused:
                self.kept |= reasons(module, {node.name: reason for node in module.graph.nodes if _is_call(node)})
                return with_writes(boxed(module), written)
        return with_writes(self.without(module, constants, refused), written)

    def without(
        self, module: fx.GraphModule, constants: Mapping[int, torch.Tensor], refused: Mapping[str, str]
    ) -> Boxed:
        """A graph in which PyTorch keeps the operators that are refused, and views."""
        refused = {name: why for name, why in refused.items() if name not in self.views}
        deciding = {node.name: DECIDES for node in module.graph.nodes if node.target in (COND, LOOP)}
        regions = [node.name for node in module.graph.nodes if node.target is REGION]
        self.kept |= reasons(
            module, {name: why for name, why in {**refused, **deciding}.items() if name not in regions}
        )
        return boxed(self._split(module, constants, refused))

    def _split(
        self, module: fx.GraphModule, constants: Mapping[int, torch.Tensor], refused: Mapping[str, str]
    ) -> fx.GraphModule:
        """The graph with modules in the place of the parts between operators that are refused."""
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        values = {placeholders[position].name: tensor for position, tensor in constants.items()}
        copied = fx.GraphModule(module, _copy(module.graph))
        least = LEAST if refused else 1
        supported = _Supported({*refused, *self.views})
        partitioner = CapabilityBasedPartitioner(copied, supported, allows_single_node_partition=least == 1)
        fused = partitioner.fuse_partitions(partitioner.propose_partitions())
        for node in list(fused.graph.nodes):
            if node.op != "call_module":
                continue
            part = fused.get_submodule(str(node.target))
            assert isinstance(part, fx.GraphModule)
            if _calls(part) < least:
                continue
            given = {
                n: values[arg.name]
                for n, arg in enumerate(node.args)
                if isinstance(arg, fx.Node) and arg.name in values
            }
            fused.set_submodule(str(node.target), self._part(part, given))
        for name, given in inner_graphs(fused, values).items():
            part = fused.get_submodule(name)
            assert isinstance(part, fx.GraphModule)
            if _calls(part) < LEAST:
                continue
            inside = _Splitting(self.options)
            fused.set_submodule(name, inside._part(part, given))
            self.native += inside.native
            self.kept |= {f"{name}.{each}": kept for each, kept in inside.kept.items()}
        return fused

    def _part(self, part: fx.GraphModule, constants: Mapping[int, torch.Tensor]) -> _Part:
        """A compiled graph in the place of a module."""
        return _Part(self.compiled(part, constants), isinstance(_output(part), tuple | list))


class _Supported(OperatorSupportBase):
    """All calls but those that are refused, by name, and what picks from their results."""

    def __init__(self, refused: Collection[str]) -> None:
        self._refused = refused

    def is_node_supported(self, _submodules: Mapping[str, torch.nn.Module], node: fx.Node) -> bool:
        while node.op == "call_function" and not _is_call(node):
            source = node.args[0]
            assert isinstance(source, fx.Node)
            node = source
        return node.op == "call_function" and node.name not in self._refused


class _Part(torch.nn.Module):
    """A compiled part in the place of a module."""

    def __init__(self, compiled: Boxed, several: bool) -> None:
        super().__init__()
        self._compiled = compiled
        self._several = several

    def forward(self, *args: object) -> object:
        """The results of the part; one that is not in a tuple alone."""
        results = self._compiled(list(args))
        return (tuple(results) if self._several else results[0]) if isinstance(results, list) else results


def _copy(graph: fx.Graph) -> fx.Graph:
    """A graph of the same nodes, under the same names."""
    copied = fx.Graph()
    copied.output(copied.graph_copy(graph, {}))
    return copied


def _is_call(node: fx.Node) -> bool:
    return node.op == "call_function" and node.target is not operator.getitem


def _calls(module: fx.GraphModule) -> int:
    """The number of calls of a graph and of those inside of it, without those that pick one of several results."""
    inner = [module.get_submodule(name) for name in inner_graphs(module, {})]
    own = sum(_is_call(node) and node.target is not REGION for node in module.graph.nodes)
    return own + sum(_calls(each) for each in inner if isinstance(each, fx.GraphModule))


def _output(part: fx.GraphModule) -> object:
    return next(node for node in part.graph.nodes if node.op == "output").args[0]
