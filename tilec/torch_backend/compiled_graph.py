"""A graph of PyTorch that tilec runs: sessions by the parameters that are part of what was compiled."""

from __future__ import annotations

import logging
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import onnx
import torch
from torch import fx

from tilec.api import InferenceSession, SessionOptions
from tilec.api.cache import Cache
from tilec.artifact import cache_folder
from tilec.errors import TilecError, UnsupportedError
from tilec.torch_backend.arrays import array_of, tensor_of
from tilec.torch_backend.cards import is_on_card, require_native
from tilec.torch_backend.freed_memory import WORTH, give_back
from tilec.torch_backend.index_checks import Check, with_checks
from tilec.torch_backend.known_shapes import KnownShapes
from tilec.torch_backend.layout import Layout
from tilec.torch_backend.memory_order import in_memory_order
from tilec.torch_backend.options import Options
from tilec.torch_backend.parameters import Parameters, chosen, pointers, when_gone
from tilec.torch_backend.streamed_shapes import StreamedShapes
from tilec.torch_backend.translation import UntranslatableError, translate
from tilec.torch_backend.written_arguments import write

log = logging.getLogger("tilec")

KEPT = 64
"""Sets of shapes whose calls a graph keeps prepared."""

MODULES = 256
"""Modules that share a graph whose compiled weights are kept; those compiled last."""

RESTLESS = 3
"""Times in a row that weights changed soon after they were compiled, after which they are arguments."""

SOON = 20.0
"""Times what it took to compile them again."""


Prepared = KnownShapes | StreamedShapes


class _Meanwhile(InferenceSession):
    """A session in whose place PyTorch runs until its model is ready; its compiler outlives this process."""

    _meanwhile = "caller"


class _MeanwhileAnew(_Meanwhile):
    """One whose model is for this process alone."""

    _detached = False


class Compiled:
    """What was compiled of a graph for these parameters: its layout, and the session as soon as there is one. A model
    that is made `anew`, for weights that changed, is not kept for others. Its last results, from the last one on, are
    copied into the arguments that are `written`."""

    def __init__(
        self,
        module: fx.GraphModule,
        constants: Mapping[int, torch.Tensor],
        options: Options,
        anew: bool = False,
        written: tuple[int, ...] = (),
    ) -> None:
        began = time.monotonic()
        self._on_card = is_on_card(module)
        self.parameters = Parameters(constants, cast("Any", options.weights))
        self.fixed = not constants
        self.written = written
        checked = with_checks(module, constants)
        graph = in_memory_order(checked.module, constants)
        translated = translate(graph.module, constants, "graph")
        if self._on_card:
            require_native(translated.model)
        lookups = [name for name, origin in translated.origins.items() if origin in checked.lookups]
        self._check = Check(checked.is_checked, frozenset(lookups))
        data = translated.model.SerializeToString(deterministic=True)
        self.layout = Layout(replace(translated, model=onnx.ModelProto()), graph)
        del translated  # with a copy of the weights
        self.inputs = chosen([port.position for port in self.layout.ports.inputs])
        self._known: dict[tuple[torch.Size, ...], Prepared] = {}
        self.last: Prepared | None = None
        """The call for the shapes of the last inputs: the sizes of most graphs never vary."""
        self._leaves_copies = len(data) > WORTH
        self.session = _opened(data, options, anew)
        self.ready = time.monotonic()
        self.took = self.ready - began
        self.alive: list[weakref.ref[Any]] = []
        self.generation = 0

    @property
    def next_generation(self) -> int:
        """How many before what replaces it now, itself included, were of use for a short time, one after the other."""
        return self.generation + 1 if time.monotonic() - self.ready < SOON * self.took else 0

    def run(self, args: Sequence[Any]) -> list[Any]:
        """The results for arguments of other shapes or strides than the last ones. Raises TilecError."""
        inputs = self.inputs(args)
        known = self._known.get(tuple([tensor.shape for tensor in inputs]))
        if known is not None:
            with suppress(AssertionError):
                results = known.run(inputs)
                self.last = known
                return write(results, [args[position] for position in known.left])
        return write(self._first_run(inputs), [args[position] for position in self.written])

    def _first_run(self, inputs: Sequence[torch.Tensor]) -> list[Any]:
        """The results for inputs of shapes or strides that were not seen, and a call that is prepared for these."""
        session, layout = self.session, self.layout
        views = layout.views(inputs)
        if self._on_card:
            streamed = session.streamed([tensor.shape for tensor in views])
            if streamed is None:
                raise UnsupportedError("parts of it run on a CPU alone")
            return self._prepared(StreamedShapes(streamed, layout, inputs, self._check, self.written), inputs).run(
                inputs
            )
        feeds = {port.name: array_of(tensor) for port, tensor in zip(layout.ports.inputs, views, strict=True)}
        outputs = layout.restored([tensor_of(made) for made in session.run(None, feeds)], inputs)
        call = session.addressed([array.shape for array in feeds.values()])
        if call is not None:
            known = KnownShapes(call.unchecked(self._check.lookups), layout, inputs, self._check, self.written)
            self._prepared(known, inputs)
        if self._leaves_copies:
            self._leaves_copies = False
            give_back()
        return self._check.passed(layout.ports.placed(outputs))

    def _prepared(self, call: Prepared, inputs: Sequence[torch.Tensor]) -> Prepared:
        """Keep a call for inputs of these shapes."""
        if len(self._known) >= KEPT:
            self._known.clear()
        self.last = self._known[tuple([tensor.shape for tensor in inputs])] = call
        return call


class CompiledGraph:
    """Takes a list of the arguments of the graph that it was made from, and returns the list of results.

    It compiles when it is made, for a module's parameters; those of another module, which came to share the graph,
    and parameters that were written to, are compiled when they come.  Weights that change again and again become
    arguments. The last results, from the last one on, are copied into the arguments that are `written`.
    """

    def __init__(
        self,
        module: fx.GraphModule,
        constants: Mapping[int, torch.Tensor],
        options: Options,
        written: tuple[int, ...] = (),
    ) -> None:
        self._module = module
        self._written = written
        self._options = options
        self._positions = tuple(constants)
        self._entries: dict[tuple[int, ...], Compiled] = {}
        self._lock = threading.RLock()
        self._forgotten: int | None = None
        """The generation after that of the parameters that went last, unless they were replaced since."""
        self._fixed: Compiled | None = None
        """What serves whatever the parameters are: they are arguments, or there are none."""
        self._last: Compiled | None = None
        """What served the last call."""
        self._last = self._kept(constants)
        _GRAPHS.add(self)

    def __call__(self, args: list[Any]) -> list[Any]:
        """Run once. Raises UsageError for indices that are out of range, whatever goes wrong where it compiles, and
        NotReadyError where the compiler is not waited for."""
        compiled = self._last
        if compiled is None or not (compiled.fixed or compiled.parameters.are_still(args)):
            compiled = self._found(args)
        last = compiled.last
        if last is not None:
            try:  # a context manager would take as long as the rest
                results = last.run(compiled.inputs(args))
            except AssertionError:
                pass
            else:
                return write(results, [args[position] for position in last.left]) if last.left else results
        return compiled.run(args)

    def forget(self, places: frozenset[int] | None) -> None:
        """Compile again what was made of the tensors at these places when it is next asked for (None: of all), and
        weights that became arguments as constants."""
        with self._lock:
            if self._positions and self._fixed is not None:
                self._fixed = self._last = None
            for where in [where for where in list(self._entries) if places is None or not places.isdisjoint(where)]:
                self._drop(where)

    def _found(self, args: Sequence[Any]) -> Compiled:
        """What was compiled for these parameters, compiled now unless it is there."""
        if self._fixed is not None:
            self._last = self._fixed
            return self._fixed
        constants = {position: args[position] for position in self._positions}
        where = pointers(constants.values())
        with self._lock:
            generation, self._forgotten = self._forgotten, None
            if where in self._entries:
                found = self._entries[where]
                if found.parameters.are_still(args):
                    self._last = found
                    return found
                log.info("parameters have changed: they are compiled again")
                generation = found.next_generation
                self._drop(where)
            self._last = self._kept(constants, generation)
            return self._last

    def _kept(self, constants: Mapping[int, torch.Tensor], generation: int | None = None) -> Compiled:
        """Compile for these parameters, which replace others where they have a generation, and keep it as long as they
        live."""
        if constants and (generation or 0) >= RESTLESS:
            with suppress(TilecError, UntranslatableError):
                self._fixed = self._begun({})
                self._entries.clear()
                log.info("weights change again and again: they are arguments from now on")
                return self._fixed
            generation = 0
        if not constants:
            self._fixed = self._begun({})
            return self._fixed
        compiled = self._begun(constants, generation is not None)
        compiled.generation = generation or 0
        where = compiled.parameters.pointers
        while len(self._entries) >= MODULES:
            self._drop(next(iter(self._entries)))
        self._entries[where] = compiled
        compiled.alive = when_gone(constants.values(), partial(_gone, weakref.ref(self), where))
        return compiled

    def _drop(self, where: tuple[int, ...]) -> None:
        """Free what was compiled for the parameters there."""
        compiled = self._entries.pop(where, None)
        if self._last is compiled:
            self._last = None

    def gone(self, where: tuple[int, ...]) -> None:
        """One of the parameters there is gone."""
        compiled = self._entries.get(where)
        if compiled is not None:
            self._forgotten = compiled.next_generation
        self._drop(where)

    def _begun(self, constants: Mapping[int, torch.Tensor], anew: bool = False) -> Compiled:
        """Translate and compile with these values of parameters."""
        return Compiled(self._module, constants, self._options, anew, self._written)


def refit(compiled: torch.nn.Module | None = None) -> None:
    """Have the weights of a compiled module (None: of all) read again in its next call, after writes that nothing
    sees."""
    places = None
    if compiled is not None:
        tensors = [each for each in (*compiled.parameters(), *compiled.buffers()) if each.numel()]
        places = frozenset(pointers(tensors))
    for graph in list(_GRAPHS):
        graph.forget(places)


_GRAPHS: weakref.WeakSet[CompiledGraph] = weakref.WeakSet()


def _gone(graph: weakref.ref[CompiledGraph], where: tuple[int, ...]) -> None:
    there = graph()
    if there is not None:
        there.gone(where)


def _opened(data: bytes, options: Options, anew: bool) -> InferenceSession:
    chosen = SessionOptions()
    chosen.intra_op_num_threads = options.threads or torch.get_num_threads()
    cache, folder = options.cache, None
    kind = InferenceSession
    if options.is_eager:
        kind = _MeanwhileAnew if anew else _Meanwhile
    if anew:
        folder = tempfile.mkdtemp(prefix="tilec-")
        cache = str(Cache(Path(cache) if cache is not None else cache_folder()).beside(Path(folder)).root)
    try:
        session = kind(
            data,
            chosen,
            device=options.device,
            recipe=options.recipe,
            specialize=cast("Any", options.specialize),
            cache=cache,
            while_compiling="wait",
        )
    except BaseException:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    if folder is not None:
        weakref.finalize(session, shutil.rmtree, folder, ignore_errors=True)
    return session
