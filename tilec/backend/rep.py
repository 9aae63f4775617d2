"""A prepared model: compiled once for all sizes, or for each set of input shapes and values that compilation needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import BackendRep, namedtupledict

from tilec.backend.build import Compiled, compiled
from tilec.errors import ConfigError, UnsupportedError, UsageError
from tilec.importer import UnsupportedModelError
from tilec.importer.specialise import frozen, open_inputs, shaped
from tilec.ir.graph import Placement

MOST_VARIANTS = 16
"""Limit of compiled variants in memory."""

LARGEST_VALUE = 1024
"""Elements of the largest input whose value is compiled into a variant."""

Feeds = dict[str, Any]
"""Arrays by input; lists for sequences, None for an empty optional."""


class TilecRep(BackendRep):
    """A model that is compiled, or is compiled on its first run because compilation depends on its inputs.

    The temporary folders of the variants are removed with this object.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        """Compile the model unless compilation depends on its inputs. Raises TilecError."""
        self._model = model
        stored = {tensor.name for tensor in model.graph.initializer}
        self._inputs = [info.name for info in model.graph.input if info.name not in stored]
        self._outputs = [info.name for info in model.graph.output]
        self._open = open_inputs(model)
        self._any_size: Compiled | None = None
        self._needed: dict[Any, tuple[str, ...]] = {}
        self._variants: dict[Any, Compiled] = {}
        self._last: Compiled | None = None
        if self._open:
            self._prepare_any_size()
        else:
            self._prepare()

    @property
    def placement(self) -> Placement | None:
        """Placement of the model's nodes in the last run; None before the first, if compilation depends on inputs."""
        return None if self._last is None else self._last.placement

    @property
    def native(self) -> bool | None:
        """Whether the whole model is compiled, so that no onnxruntime session exists; None as for `placement`."""
        return None if self._last is None else not self._last.placement.fallback

    def run(self, inputs: Any, **_options: Any) -> tuple[Any, ...]:
        """Run once; returns a named tuple of the outputs.

        `inputs`: arrays in the order of the model's inputs, or by name; a single array when there is one. A sequence is
        a list of arrays, an empty optional None. Raises UsageError for inputs that do not fit, TilecError for a model
        that cannot be compiled.
        """
        feeds = self._feeds(inputs)
        self._last = self._variant(feeds)
        wanted = {spec.name for spec in self._last.session.inputs}
        results = self._last.session.run({name: value for name, value in feeds.items() if name in wanted})
        return namedtupledict("Outputs", self._outputs)(*(results[name] for name in self._outputs))

    def _prepare_any_size(self) -> None:
        """Compile for all shapes, unless compilation needs them: then each is compiled on its first run."""
        try:
            self._last = self._any_size = compiled(self._model, strict=True)
        except (UnsupportedError, ConfigError):
            self._any_size = None

    def _prepare(self) -> None:
        """Compile now, unless compilation needs input values."""
        try:
            self._last = self._variants[(), ()] = compiled(self._model, strict=True)
            self._needed[()] = ()
        except UnsupportedError as error:
            if not _needed_inputs(error):
                self._last = self._variants[(), ()] = compiled(self._model, strict=False)
                self._needed[()] = ()

    def _feeds(self, inputs: Any) -> Feeds:
        if isinstance(inputs, Mapping):
            return {name: _value(value) for name, value in inputs.items()}
        given = inputs if isinstance(inputs, list | tuple) else [inputs]
        if len(given) != len(self._inputs):
            names = ", ".join(self._inputs) or "none"
            raise UsageError(f"{len(given)} inputs, the model has {len(self._inputs)}", hint=f"They are: {names}.")
        return {name: _value(value) for name, value in zip(self._inputs, given, strict=True)}

    def _variant(self, feeds: Feeds) -> Compiled:
        """The variant for the shapes and values of these inputs."""
        for name in self._inputs:
            if name not in feeds:
                raise UsageError(f"input {name!r} is missing")
        if self._any_size is not None:
            return self._any_size
        shapes = tuple(feeds[name].shape for name in self._open)
        if shapes not in self._needed:
            self._specialise(shapes, feeds)
        key = shapes, _values(self._needed[shapes], feeds)
        if key not in self._variants:
            self._specialise(shapes, feeds)
            key = shapes, _values(self._needed[shapes], feeds)
        return self._variants[key]

    def _specialise(self, shapes: tuple[tuple[int, ...], ...], feeds: Feeds) -> None:
        """Compile a variant with these shapes and as many values as compilation needs; without values where they do not
        help."""
        model = shaped(self._model, dict(zip(self._open, shapes, strict=True))) if shapes else self._model
        needed = self._needed.get(shapes, ())
        variant = None
        while variant is None:
            try:
                variant = compiled(frozen(model, {name: feeds[name] for name in needed}), strict=True)
            except UnsupportedError as error:
                more = tuple(name for name in _needed_inputs(error) if name not in needed)
                if not more or any(feeds[name].size > LARGEST_VALUE for name in more):
                    variant, needed = compiled(model, strict=False), ()
                else:
                    needed += more
        self._needed[shapes] = needed
        while len(self._variants) >= MOST_VARIANTS:
            del self._variants[next(iter(self._variants))]
        self._variants[shapes, _values(needed, feeds)] = variant


def _value(value: Any) -> Any:
    return value if value is None or isinstance(value, list) else np.asarray(value)


def _needed_inputs(error: UnsupportedError) -> tuple[str, ...]:
    """The inputs whose values compilation needs."""
    return error.needed if isinstance(error, UnsupportedModelError) else ()


def _values(names: tuple[str, ...], feeds: Feeds) -> tuple[Any, ...]:
    """The contents of inputs as a cache key."""
    return tuple((feeds[name].dtype.str, feeds[name].shape, feeds[name].tobytes()) for name in names)
