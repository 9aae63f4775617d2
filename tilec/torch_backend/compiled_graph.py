"""A graph of PyTorch that tilec runs: its session, and the parameters that are part of what was compiled."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import fx

from tilec.api import InferenceSession, SessionOptions
from tilec.torch_backend.arrays import array_of, tensor_of
from tilec.torch_backend.options import Options
from tilec.torch_backend.translation import Translated, translate

log = logging.getLogger("tilec")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A tensor whose value is compiled into the model: argument number `position`. `version` counts the writes to it
    (None: PyTorch does not count them)."""

    position: int
    tensor: torch.Tensor
    version: int | None

    @classmethod
    def of(cls, position: int, tensor: torch.Tensor) -> Parameter:
        """The parameter as it is now."""
        return cls(position, tensor, _version(tensor))

    def is_still(self, tensor: torch.Tensor) -> bool:
        """Whether an argument is this tensor, unchanged."""
        return tensor is self.tensor and (self.version is None or self.version == _version(tensor))


class CompiledGraph:
    """Takes the arguments of the graph that it was made from and returns its results, as a list.

    It compiles when it is made; once a parameter is another one, or was written to, it compiles anew.  With
    `while_compiling` `eager` the graph itself serves until the model is ready, and for good where compiling fails.
    """

    _boxed_call = False

    def __init__(self, module: fx.GraphModule, constants: Mapping[int, torch.Tensor], options: Options) -> None:
        self._module = module
        self._options = options
        self._parameters: tuple[Parameter, ...] = ()
        self._translated: Translated
        self._session: Future[InferenceSession]
        self._begin(constants)

    def __call__(self, *args: Any) -> list[Any]:
        """Run once. Raises what the session raises."""
        if not all(each.is_still(args[each.position]) for each in self._parameters):
            log.info("parameters have changed: the graph is compiled again")
            self._begin({each.position: args[each.position] for each in self._parameters})
        if self._options.while_compiling == "eager" and not (self._session.done() and not self._session.exception()):
            return _listed(self._module(*args))
        session = self._session.result()
        results: list[Any] = [None] * self._translated.results
        feeds = {port.name: array_of(args[port.position]) for port in self._translated.inputs}
        for port, made in zip(self._translated.outputs, session.run(None, feeds), strict=True):
            results[port.position] = int(made) if port.size else tensor_of(made)
        return results

    def _begin(self, constants: Mapping[int, torch.Tensor]) -> None:
        """Translate and compile with these values of parameters."""
        self._parameters = tuple(Parameter.of(position, tensor) for position, tensor in constants.items())
        self._translated = translate(self._module, constants, "graph")
        data = self._translated.model.SerializeToString(deterministic=True)
        if self._options.while_compiling == "eager":
            self._session = _WORKERS.submit(_opened, data, self._options)
            self._session.add_done_callback(_tell)
        else:
            self._session = Future()
            self._session.set_result(_opened(data, self._options))


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


def _version(tensor: torch.Tensor) -> int | None:
    return None if tensor.is_inference() else tensor._version


def _listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, Sequence) and not isinstance(results, torch.Tensor) else [results]
