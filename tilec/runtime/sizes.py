"""Sizes of one run: symbols read off the shapes of inputs and of results of calls, checked, and the numbers that follow
(B01, B04)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tilec.abi.manifest import IndexSpec, Manifest, PortSpec, TensorSpec
from tilec.abi.shape_program import ShapeProgram, SymbolSpec
from tilec.errors import UsageError
from tilec.runtime.feeds import missing_input

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

KEPT = 64
"""Number of sets of sizes whose numbers a session keeps."""

Evaluate = Callable[["NDArray[np.int64]", int], None]
"""Computes the numbers of a part from those before."""

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BoundPorts:
    """Inputs, outputs and ranges of indices as they are in one run. `numbers` are those of part 0 (None in a model
    whose sizes are known). Outputs of the numbers in `later` have the shapes that calls report; ranges whose extents
    calls report are left out."""

    inputs: tuple[PortSpec, ...]
    outputs: tuple[PortSpec, ...]
    ranges: tuple[IndexSpec, ...]
    numbers: NDArray[np.int64] | None = None
    later: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class _Given:
    """A tensor whose shape is looked at: an input, or a result of a call."""

    role: str
    spec: TensorSpec
    shape: Shape

    @property
    def name(self) -> str:
        return f"{self.role} {self.spec.name!r}"


class SizeReader:
    """Binds the ports of a model to the sizes of its inputs; keeps what it found for the last `KEPT` of them."""

    def __init__(self, manifest: Manifest, evaluate: Evaluate | None) -> None:
        self._manifest = manifest
        self._evaluate = evaluate
        self._plain = BoundPorts(manifest.inputs, manifest.outputs, manifest.ranges)
        self._tensors = [(spec.name, spec) for spec in manifest.inputs if isinstance(spec, TensorSpec)]
        self._bound = lru_cache(KEPT)(partial(bound_ports, manifest, evaluate)) if evaluate is not None else None

    def bind(self, feeds: Mapping[str, ArrayLike]) -> BoundPorts:
        """The ports at the sizes of the feeds. Raises UsageError for sizes that do not fit."""
        return self._plain if self._bound is None else self._bound(self.shapes(feeds))

    def shapes(self, feeds: Mapping[str, ArrayLike]) -> tuple[Shape, ...]:
        """The shapes that the ports depend on: none where sizes are known. Raises UsageError for a missing input."""
        if self._bound is None:
            return ()
        return tuple([_shape_of(feeds, name, spec) for name, spec in self._tensors])

    def bind_shapes(self, shapes: tuple[Shape, ...]) -> BoundPorts:
        """The ports for inputs, all of them tensors, of these shapes. Raises UsageError for sizes that do not fit."""
        return self._plain if self._bound is None else self._bound(shapes)

    def complete(self, numbers: NDArray[np.int64], part: int, results: Sequence[Any]) -> None:
        """Compute the numbers of a part once its call has returned all `results` up to now. Raises UsageError for sizes
        that do not fit."""
        sizes, evaluate = self._manifest.sizes, self._evaluate
        assert sizes is not None
        assert evaluate is not None
        given: dict[int, _Given] = {}
        for output in self._manifest.calls[part - 1].outputs:
            if output.tensor is not None:
                given[output.at] = _Given("result", output.tensor, results[output.at].shape)
        _read_symbols(sizes, given, "result", numbers)
        evaluate(numbers, part)
        _check_sizes(sizes, part, given.values(), numbers.tolist(), self._manifest)

    def ranges(self, numbers: NDArray[np.int64], part: int) -> tuple[IndexSpec, ...]:
        """The ranges of indices whose extents are known from a part on."""
        return bound_ranges(self._manifest, numbers.tolist(), part) if self._manifest.ranges else ()

    def outputs(self, numbers: NDArray[np.int64], part: int) -> Iterator[tuple[int, PortSpec]]:
        """The outputs whose shapes are known from a part on, by their number."""
        sizes = self._manifest.sizes
        assert sizes is not None
        for number, spec in enumerate(self._manifest.outputs):
            if isinstance(spec, TensorSpec) and sizes.shape_part(spec.shape) == part:
                yield number, _bound(spec, sizes, numbers.tolist())


def bound_ports(manifest: Manifest, evaluate: Evaluate, shapes: tuple[Shape, ...]) -> BoundPorts:
    """The ports at these shapes of the inputs that are tensors. Raises UsageError for sizes that do not fit."""
    sizes = manifest.sizes
    assert sizes is not None
    tensors = [(n, spec) for n, spec in enumerate(manifest.inputs) if isinstance(spec, TensorSpec)]
    given = {n: _Given("input", spec, shape) for (n, spec), shape in zip(tensors, shapes, strict=True)}
    numbers = np.zeros(len(sizes.numbers), np.int64)
    _read_symbols(sizes, given, "input", numbers)
    evaluate(numbers, 0)
    values = numbers.tolist()
    _check_sizes(sizes, 0, given.values(), values, manifest)
    inputs = [_bound(spec, sizes, values) for spec in manifest.inputs]
    parts = [sizes.shape_part(spec.shape) if isinstance(spec, TensorSpec) else 0 for spec in manifest.outputs]
    outputs = [
        spec if part else _bound(spec, sizes, values) for spec, part in zip(manifest.outputs, parts, strict=True)
    ]
    later = frozenset(number for number, part in enumerate(parts) if part)
    return BoundPorts(tuple(inputs), tuple(outputs), bound_ranges(manifest, values, 0), numbers, later)


def bound_ranges(manifest: Manifest, values: Sequence[int], part: int) -> tuple[IndexSpec, ...]:
    """The ranges of indices whose extents are known from a part on."""
    sizes = manifest.sizes
    assert sizes is not None
    known = [each for each in manifest.ranges if sizes.shape_part((each.extent,)) == part]
    return tuple(replace(each, extent=_value(each.extent, sizes, values)) for each in known)


def largest_arenas(sizes: ShapeProgram, evaluate: Evaluate) -> tuple[int, ...] | None:
    """The bytes of every arena at the upper ends of all symbols; None where one has none, or calls tell sizes."""
    if any(symbol.high is None for symbol in sizes.symbols) or any(sizes.parts):
        return None
    numbers = np.zeros(len(sizes.numbers), np.int64)
    for number, symbol in enumerate(sizes.symbols):
        numbers[number] = (symbol.high or 0) // symbol.divisor * symbol.divisor
    evaluate(numbers, 0)
    return tuple(int(numbers[position]) for position in sizes.arenas)


def bound_shape(spec: TensorSpec, sizes: ShapeProgram | None, numbers: NDArray[np.int64] | None) -> Shape:
    """The shape of a tensor in a run."""
    if sizes is None or numbers is None:
        return spec.bound_shape
    return tuple(_value(extent, sizes, numbers) for extent in spec.shape)


def _shape_of(feeds: Mapping[str, ArrayLike], name: str, spec: TensorSpec) -> Shape:
    if name not in feeds:
        raise missing_input(spec)
    value = feeds[name]
    shape: Shape | None = getattr(value, "shape", None)
    return np.shape(value) if shape is None else shape


def _value(extent: int | str, sizes: ShapeProgram, values: Sequence[int] | NDArray[np.int64]) -> int:
    return extent if isinstance(extent, int) else int(values[sizes.extents[extent]])


def _bound(spec: PortSpec, sizes: ShapeProgram, values: Sequence[int]) -> PortSpec:
    if not isinstance(spec, TensorSpec):
        return spec
    return replace(spec, shape=tuple(_value(extent, sizes, values) for extent in spec.shape))


def _read_symbols(sizes: ShapeProgram, given: Mapping[int, _Given], space: str, numbers: NDArray[np.int64]) -> None:
    """Enter the symbols that dimensions of tensors define. Raises UsageError for another rank and for a size that is
    not allowed."""
    for each in given.values():
        same = len(each.shape) == len(each.spec.shape)
        if not same or any(isinstance(a, int) and a != b for a, b in zip(each.spec.shape, each.shape, strict=True)):
            expected = f"[{', '.join(map(str, each.spec.shape))}]"
            raise UsageError(f"{each.name} has shape {list(each.shape)}, the model has {expected}")
    for number, symbol in enumerate(sizes.symbols):
        if symbol.space != space or symbol.at not in given:
            continue
        size = symbol.size_of(given[symbol.at].shape[symbol.dim])
        if size is None or not symbol.holds(size):
            raise UsageError(_refusal(symbol, given[symbol.at], size))
        numbers[number] = size


def _refusal(symbol: SymbolSpec, tensor: _Given, size: int | None) -> str:
    """Why a dimension tells no size of a symbol that is allowed."""
    extent, there = tensor.shape[symbol.dim], tensor.spec.shape[symbol.dim]
    text = f"{tensor.name} has {extent} along dimension {symbol.dim}, "
    if there != symbol.name:
        text += f"the model has {there} there: " + ("" if size is None else f"{symbol.name} is {size}, ")
    if size is None:
        return f"{text}no integer {symbol.name} makes that {extent}"
    origin = f" ({symbol.origin})" if symbol.origin else ""
    return f"{text}the model takes {symbol.allowed} for {symbol.name}{origin}"


def _check_sizes(
    sizes: ShapeProgram, part: int, given: Iterable[_Given], values: Sequence[int], manifest: Manifest
) -> None:
    """Raise UsageError for a dimension of a tensor that is not what its extent says, and for a constraint of this part
    that does not hold."""
    for each in given:
        for dim, (extent, size) in enumerate(zip(each.spec.shape, each.shape, strict=True)):
            expected = _value(extent, sizes, values)
            if size != expected:
                there = _because(str(extent), expected, sizes, values, manifest)
                raise UsageError(f"{each.name} has {size} along dimension {dim}, {there}")
    for constraint in sizes.constraints:
        if sizes.part(constraint.number) == part and not values[constraint.number]:
            origin = f" ({constraint.origin})" if constraint.origin else ""
            named = [symbol for symbol in sizes.symbols if symbol.name in _names(constraint.holds)]
            there = ", ".join(_definition(symbol, values[sizes.extents[symbol.name]], manifest) for symbol in named)
            raise UsageError(f"the model demands {constraint.holds}{origin}{': ' + there if there else ''}")


def _because(extent: str, expected: int, sizes: ShapeProgram, values: Sequence[int], manifest: Manifest) -> str:
    """The reason for an extent: the dimension that it must be equal to, or the sizes that it follows from."""
    named = [symbol for symbol in sizes.symbols if symbol.name in _names(extent)]
    there = ", ".join(_definition(symbol, values[sizes.extents[symbol.name]], manifest) for symbol in named)
    if [symbol.name for symbol in named] == [extent]:
        return f"{there}: both are {extent}"
    return f"the model has {extent} = {expected} there: {there}"


def _definition(symbol: SymbolSpec, size: int, manifest: Manifest) -> str:
    """`input 'ids' has 5 along dimension 1`."""
    if symbol.space == "input":
        name = f"input {manifest.inputs[symbol.at].name!r}"
    else:
        name = f"result {next(o.name for call in manifest.calls for o in call.outputs if o.at == symbol.at)!r}"
    return f"{name} has {size} along dimension {symbol.dim}"


def _names(text: str) -> frozenset[str]:
    """Names that occur in the text of an expression."""
    return frozenset(re.findall(r"\w+", text))
