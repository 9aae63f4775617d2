"""A graph of PyTorch that tilec runs: its session, and the parameters that are part of what was compiled."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from operator import attrgetter, is_, itemgetter
from typing import Any, cast

import torch
from torch import fx

from tilec.api import InferenceSession, SessionOptions
from tilec.torch_backend.arrays import array_of, tensor_of
from tilec.torch_backend.known_shapes import KnownShapes
from tilec.torch_backend.options import Options
from tilec.torch_backend.translation import translate

log = logging.getLogger("tilec")

KEPT = 64
"""Sets of shapes whose calls a graph keeps prepared."""


class Parameters:
    """Tensors whose values are compiled into a model, by their positions among the arguments, and the numbers of writes
    to them so far, where PyTorch counts those."""

    def __init__(self, tensors: Mapping[int, torch.Tensor]) -> None:
        self.positions = tuple(tensors)
        self._chosen = _chosen(self.positions)
        self._tensors = tuple(tensors.values())
        self._counted = tuple(each for each in self._tensors if not each.is_inference())
        self._versions = list(map(_version, self._counted))

    def are_still(self, args: Sequence[Any]) -> bool:
        """Whether these arguments are the tensors, unchanged."""
        return all(map(is_, self._chosen(args), self._tensors)) and list(map(_version, self._counted)) == self._versions


class Compiled:
    """What was compiled of a graph for these parameters: its ports, and the session as soon as there is one."""

    def __init__(self, module: fx.GraphModule, constants: Mapping[int, torch.Tensor], options: Options) -> None:
        self.parameters = Parameters(constants)
        self.translated = translate(module, constants, "graph")
        self.inputs = _chosen([port.position for port in self.translated.inputs])
        self.session: Future[InferenceSession]
        self._known: dict[tuple[torch.Size, ...], KnownShapes] = {}
        self.last: KnownShapes | None = None
        """The call for the shapes of the last inputs: the sizes of most graphs never vary."""
        data = self.translated.model.SerializeToString(deterministic=True)
        if options.while_compiling == "eager":
            self.session = _WORKERS.submit(_opened, data, options)
            self.session.add_done_callback(_tell)
        else:
            self.session = Future()
            self.session.set_result(_opened(data, options))

    def run(self, inputs: Sequence[torch.Tensor]) -> list[Any]:
        """The results for inputs of other shapes or strides than the last ones."""
        known = self._known.get(tuple([tensor.shape for tensor in inputs]))
        if known is not None:
            with suppress(AssertionError):
                results = known.run(inputs)
                self.last = known
                return results
        return self._first_run(inputs)

    def _first_run(self, inputs: Sequence[torch.Tensor]) -> list[Any]:
        """The results for inputs of shapes or strides that were not seen, and a call that is prepared for these."""
        session, ports = self.session.result(), self.translated
        feeds = {port.name: array_of(tensor) for port, tensor in zip(ports.inputs, inputs, strict=True)}
        outputs = [tensor_of(made) for made in session.run(None, feeds)]
        call = session.addressed([array.shape for array in feeds.values()])
        if call is not None:
            if len(self._known) >= KEPT:
                self._known.clear()
            self.last = KnownShapes(call, ports, inputs)
            self._known[tuple([tensor.shape for tensor in inputs])] = self.last
        return ports.placed(outputs)


class CompiledGraph:
    """Takes a list of the arguments of the graph that it was made from, empties it, and returns the list of results.

    It compiles when it is made; once a parameter is another one, or was written to, it compiles anew.  With
    `while_compiling` `eager` the graph itself serves until the model is ready, and for good where compiling fails.
    """

    _boxed_call = True

    def __init__(self, module: fx.GraphModule, constants: Mapping[int, torch.Tensor], options: Options) -> None:
        self._module = module
        self._options = options
        self._eager = options.while_compiling == "eager"
        self._compiled = self._begun(constants)

    def __call__(self, args: list[Any]) -> list[Any]:
        """Run once. Raises what the session raises."""
        compiled = self._compiled
        parameters = compiled.parameters
        if parameters.positions and not parameters.are_still(args):
            log.info("parameters have changed: the graph is compiled again")
            compiled = self._compiled = self._begun({position: args[position] for position in parameters.positions})
        if self._eager and not (compiled.session.done() and not compiled.session.exception()):
            return _listed(self._module(*args))
        inputs = compiled.inputs(args)
        args.clear()
        if compiled.last is not None:
            try:  # a context manager would take as long as the rest
                return compiled.last.run(inputs)
            except AssertionError:
                pass
        return compiled.run(inputs)

    def _begun(self, constants: Mapping[int, torch.Tensor]) -> Compiled:
        """Translate and compile with these values of parameters."""
        return Compiled(self._module, constants, self._options)


def _chosen(positions: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Takes the values at these positions."""
    if len(positions) < 2:
        first = positions[0] if positions else 0
        return itemgetter(slice(first, first + len(positions)))
    return itemgetter(*positions)


_version = attrgetter("_version")

_WORKERS = ThreadPoolExecutor(1, "tilec-compile")
"""Waits for the compiler, which is a process of its own."""


def _opened(data: bytes, options: Options) -> InferenceSession:
    session = SessionOptions()
    session.intra_op_num_threads = options.threads or torch.get_num_threads()
    return InferenceSession(
        data,
        session,
        device=options.device,
        recipe=options.recipe,
        specialize=cast("Any", options.specialize),
        cache=options.cache,
    )


def _tell(session: Future[InferenceSession]) -> None:
    if error := session.exception():
        log.warning("PyTorch runs a graph that is not compiled: %s", error)


def _listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, Sequence) and not isinstance(results, torch.Tensor) else [results]
