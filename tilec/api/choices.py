"""A model whose inputs choose branches, as optimum merges decoders: a compiled model for each value, by call."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilec.api.after_fork import renew
from tilec.api.feeds import FeedError, Feeds, check
from tilec.api.header import Header
from tilec.api.model import Model


class Choices:
    """A model as `Model` is one. Its `choices` are inputs of one bool that an If takes as its condition: each value
    that a call has gets a model in which it is a constant, made by `made` at the first call with it."""

    fixed = None

    def __init__(self, header: Header, made: Callable[[Mapping[str, bool]], Model]) -> None:
        self.types = {port.name: port.type for port in (*header.inputs, *header.overridable)}
        self.defaults = frozenset(port.name for port in header.overridable)
        self.count = len(header.inputs)
        self._header = header
        self._made = made
        self._models: dict[tuple[bool, ...], Model] = {}
        self._lock = threading.Lock()
        renew(self)

    def after_fork(self) -> None:
        """The lock may be held by a thread that is not in a copied process."""
        self._lock = threading.Lock()

    def run(self, feeds: Feeds, out: Feeds | None = None) -> dict[str, Any]:
        """All outputs by name, those in `out` in its arrays. Raises FeedError, and what `Model.run` raises."""
        names = self._header.choices
        values = {name: value for name in names if (value := _one_bool(feeds.get(name))) is not None}
        if len(values) < len(names):
            check(feeds, self._header.inputs, self.defaults)
            raise FeedError(f"input {next(n for n in names if n not in values)!r} is not one bool")
        rest = {name: value for name, value in feeds.items() if name not in values}
        return self._model(values).run(rest, out)

    def addressed(self, _shapes: Any) -> None:
        """Addresses say nothing of values, which choose what runs."""

    def streamed(self, _shapes: Any) -> None:
        """As `addressed`."""

    def _model(self, values: Mapping[str, bool]) -> Model:
        key = tuple(values.values())
        with self._lock:
            model = self._models.get(key)
            if model is None:
                model = self._models[key] = self._made(values)
            return model


def _one_bool(value: Any) -> bool | None:
    """The only element of an array of bools; None for anything else."""
    fits = isinstance(value, np.ndarray) and value.dtype == np.bool_ and value.size == 1
    return bool(value.flat[0]) if fits else None
