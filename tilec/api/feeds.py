"""Feeds of a session: lists and numbers become arrays, sizes are read off, errors name the input that does not fit."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilec.api.elements import tensor_dtype
from tilec.api.header import Described
from tilec.api.values import plain
from tilec.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from tilec.ir.expr import Expr

Feeds = Mapping[str, Any]

ShapeKey = tuple[tuple[int, ...], ...]
"""The shapes of those inputs that decide the sizes."""


class FeedError(UsageError, RuntimeError, ValueError):
    """A run was asked for what the model does not take or give; onnxruntime's users catch the other two."""


def arrays(feeds: Feeds, types: Mapping[str, str]) -> dict[str, Any]:
    """The feeds with every tensor as an array; `types` maps inputs to their types.

    Lists and Python numbers take the type of the input. Raises FeedError for what makes no array.
    """
    return {name: _array(name, plain(value), types.get(name, "")) for name, value in feeds.items()}


def _array(name: str, value: Any, type_text: str) -> Any:
    dtype = tensor_dtype(type_text)
    if dtype is None or value is None or isinstance(value, np.ndarray):
        return value
    try:
        found = np.asarray(value)
        if not isinstance(value, list | tuple | bool | int | float | str):
            return found
        if found.dtype.kind in "fc" and dtype.kind in "iub":
            raise ValueError(f"{found.dtype.name} numbers would be cut")
        return np.asarray(value, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise FeedError(f"input {name!r} is no {type_text}: {error}") from error


def check(feeds: Feeds, inputs: Sequence[Described], optional: Collection[str] = ()) -> None:
    """Raise FeedError that says which feed does not fit, and how; `optional` names inputs that may be left out."""
    known = {port.name: port for port in inputs}
    for name in feeds:
        if name not in known and name not in optional:
            near = did_you_mean(name, known)
            hint = f"Did you mean {near!r}?" if near else f"The inputs are {_listed(inputs)}."
            raise FeedError(f"the model has no input {name!r}", hint=hint)
    for port in inputs:
        if feeds.get(port.name) is None and not port.type.startswith("optional("):
            raise FeedError(f"input {port.name!r} is missing", hint=f"It is {described(port)}.")
        _check_one(port, feeds.get(port.name))


def _check_one(port: Described, value: Any) -> None:
    dtype = tensor_dtype(port.type)
    if dtype is None or not isinstance(value, np.ndarray):
        return
    if dtype.kind != "O" and value.dtype.newbyteorder("=") != dtype:
        raise FeedError(
            f"input {port.name!r} has element type {value.dtype.name}, the model has {dtype.name}",
            hint=f"Pass array.astype({dtype.name!r}).",
        )
    if port.shape is not None and not _fits(port.shape, value.shape):
        raise FeedError(
            f"input {port.name!r} has shape {list(value.shape)}, the model has {described(port).partition(')')[2]}"
        )


def _fits(shape: Sequence[int | str | None], found: Sequence[int]) -> bool:
    return len(shape) == len(found) and all(
        not isinstance(extent, int) or extent == size for extent, size in zip(shape, found, strict=True)
    )


def described(port: Described) -> str:
    """An input as text, e.g. tensor(float)[batch, 16]."""
    if port.shape is None:
        return port.type
    return f"{port.type}[{', '.join('?' if extent is None else str(extent) for extent in port.shape)}]"


def _listed(inputs: Sequence[Described]) -> str:
    return ", ".join(repr(port.name) for port in inputs) or "none"


class Sizes:
    """Reads the sizes of symbols off the shapes of feeds; `fixed` are those that are known beforehand."""

    def __init__(self, inputs: Iterable[Described], fixed: Mapping[str, int]) -> None:
        self.fixed = dict(fixed)
        self._extents: list[tuple[str, int, Expr]] = []
        self.names: tuple[str, ...] = ()
        # `check` compares what is a number.
        open_ = [(p.name, axis, t) for p in inputs for axis, t in enumerate(p.extents or ()) if not t.isdigit()]
        if open_:
            self._read_extents(open_)

    def _read_extents(self, extents: Sequence[tuple[str, int, str]]) -> None:
        from tilec.ir.algebra import simplify
        from tilec.ir.expr import Const, Var, constant_value, substitute
        from tilec.ir.text import parse_expr

        values: dict[str, Expr] = {symbol: Const(size) for symbol, size in self.fixed.items()}
        self._extents = [(name, axis, simplify(substitute(parse_expr(text), values))) for name, axis, text in extents]
        # Symbols that stand alone are read first: the others are expressions of them.
        self._extents.sort(key=lambda entry: not isinstance(entry[2], Var))
        self.names = tuple(dict.fromkeys(name for name, _, extent in self._extents if constant_value(extent) is None))

    def key(self, feeds: Feeds) -> ShapeKey | None:
        """The shapes that decide the sizes; None when a feed is missing or no array."""
        try:
            return tuple([feeds[name].shape for name in self.names])
        except (KeyError, AttributeError):
            return None

    def read(self, feeds: Feeds) -> dict[str, int]:
        """Symbol -> size, for feeds that `check` has passed. Raises FeedError where two inputs disagree."""
        return self._read({name: np.shape(feeds[name]) for name in dict.fromkeys(name for name, _, _ in self._extents)})

    def of(self, key: ShapeKey) -> dict[str, int]:
        """Symbol -> size, for the shapes of feeds that a run has taken."""
        return self._read(dict(zip(self.names, key, strict=True)))

    def _read(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        if not self._extents:
            return dict(self.fixed)
        from tilec.ir.algebra import simplify
        from tilec.ir.expr import Const, Var, constant_value, substitute, variables

        sizes = dict(self.fixed)
        origin: dict[str, str] = {}
        for name, axis, extent in self._extents:
            if name not in shapes:
                continue
            size = int(shapes[name][axis])
            if isinstance(extent, Var) and extent.name not in sizes:
                sizes[extent.name], origin[extent.name] = size, name
                continue
            expected = constant_value(simplify(substitute(extent, {s: Const(v) for s, v in sizes.items()})))
            if expected is not None and expected != size:
                named = sorted(variables(extent) & origin.keys())
                because = ", ".join(f"{symbol} is {sizes[symbol]} by input {origin[symbol]!r}" for symbol in named)
                raise FeedError(
                    f"input {name!r} has size {size} along dimension {axis}, expected was {expected}",
                    hint=f"{because[0].upper()}{because[1:]}." if because else None,
                )
        return sizes


def checked_sizes(sizes: Sizes, feeds: Feeds, inputs: Sequence[Described], optional: Collection[str]) -> dict[str, int]:
    """The sizes of feeds, which are checked first. Raises FeedError."""
    check(feeds, inputs, optional)
    return sizes.read(feeds)


def choose(names: Sequence[str] | None, known: Sequence[str]) -> Sequence[str]:
    """The outputs that are asked for; all when none is named. Raises FeedError for one that is not there."""
    for name in names or ():
        if name not in known:
            near = did_you_mean(name, known)
            hint = f"Did you mean {near!r}?" if near else f"The outputs are {', '.join(map(repr, known))}."
            raise FeedError(f"the model has no output {name!r}", hint=hint)
    return names or known
