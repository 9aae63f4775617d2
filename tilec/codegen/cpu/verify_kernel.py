"""Verifier of the kernel IR: rules that hold between any two passes, whichever they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilec.codegen.cpu.extents import Extent
from tilec.codegen.cpu.kernel_ir import (
    Array,
    CallFunction,
    For,
    Function,
    If,
    KernelIR,
    Prefetch,
    Step,
    Tile,
    certain_accesses,
)
from tilec.codegen.cpu.kernel_text import array_text, prefetch_text, tile_text
from tilec.ir.algebra import linear_form
from tilec.ir.evaluate import integer
from tilec.ir.expr import Access, Binary, Const, Expr, Var, accesses, as_expr, constant_value, variables
from tilec.ir.text import text_of

Interval = tuple[int, int]
"""Least and greatest value of a variable."""

SAMPLES = (0, 1, 7, 130)
"""Sizes of all symbols at which places in scratch are looked at."""


def check_kernel(kernel: KernelIR) -> tuple[str, ...]:
    """The rules that a kernel breaks, empty for a legal one.

    Arrays have names of their own, lie in scratch without overlapping at `SAMPLES` of open sizes (arrays that are never
    used at once may share a place if they have one type) and are registers in disjoint pieces. Variables are bound once
    on the way to their use, and every one that is read is bound. Tiles have results of at least one point, read and
    write arrays of the kernel, and no element outside of them, where all that an offset depends on is known. Functions
    that are called exist and take such variables and arrays as they are called with.
    """
    problems = [*_arrays(kernel)]
    checker = _Checker({a.name: a for a in kernel.memories}, {f.name: f for f in kernel.parts})
    for nest in kernel.nests:
        names = [name for name, _ in nest.spread]
        problems += _twice([*kernel.symbols, *names], "task loop")
        for name, extent in nest.spread:
            problems += _unknown(variables(as_expr(extent)), kernel.symbols, f"task loop {name}")
        tasks = {name: _task_values(extent) for name, extent in nest.spread}
        problems += checker.steps(nest.body, _Scope({**dict.fromkeys(kernel.symbols), **tasks}))
    problems += _twice([part.name for part in kernel.parts], "function")
    for part in kernel.parts:
        problems += _twice(part.variables, f"variable of {part.name}")
        if not part.arrays:  # what others stand for is looked at where it is called
            problems += checker.steps(part.body, _Scope(dict.fromkeys(part.variables)))
    return tuple(problems)


def _twice(names: Sequence[str], role: str) -> Iterator[str]:
    yield from (f"{role} {name} stands twice" for name in dict.fromkeys(names) if names.count(name) > 1)


def _arrays(kernel: KernelIR) -> Iterator[str]:
    yield from _twice([array.name for array in kernel.memories], "array")
    unknown: list[str] = []
    for array in kernel.memories:
        sizes = [each for each in (array.elements, array.offset) if each is not None]
        unknown += _unknown(_variables(sizes), kernel.symbols, array_text(array))
        if isinstance(array.elements, int):
            if array.elements < (array.kind != "operand"):
                yield f"{array_text(array)}: no elements"
        elif array.kind == "local":
            yield f"{array_text(array)}: a local array has a size that is no number"
        if array.pieces and array.kind != "local":
            yield f"{array_text(array)}: only local arrays are registers"
        yield from _pieces(array)
        if array.offset is not None and array.kind != "scratch":
            yield f"{array_text(array)}: only scratch has a place"
    unknown += _unknown(_variables([kernel.scratch_bytes]), kernel.symbols, "scratch")
    yield from unknown
    if not unknown:
        problems = (problem for size in SAMPLES for problem in _places(kernel, dict.fromkeys(kernel.symbols, size)))
        yield from dict.fromkeys(problems)
    for name in sorted(kernel.nontemporal - {a.name for a in kernel.memories if a.kind == "operand"}):
        yield f"nontemporal stores to {name}, which is no operand"


def _places(kernel: KernelIR, sizes: Mapping[str, int]) -> Iterator[str]:
    """The rules of places in scratch at some sizes."""
    placed: dict[int, tuple[int, Array]] = {}
    total = _at(kernel.scratch_bytes, sizes)
    for array in kernel.memories:
        if array.offset is None:
            continue
        offset, size = _at(array.offset, sizes), _at(array.bytes, sizes)
        if offset < 0 or offset + size > total:
            yield f"{array_text(array)}: outside of the {total} bytes of scratch"
        most, first = placed.setdefault(offset, (size, array))
        if first.ttype != array.ttype:
            yield f"{array_text(array)}: in the place of {first.name}, which has another type"
        if size > most:
            placed[offset] = size, array
    end, last = 0, ""
    for offset, (size, array) in sorted(placed.items(), key=lambda each: each[0]):
        if offset < end:
            yield f"{array_text(array)}: overlaps {last}"
        end, last = offset + size, array.name


def _at(extent: Extent, sizes: Mapping[str, int]) -> int:
    return extent if isinstance(extent, int) else int(integer(extent, sizes))


def _variables(extents: Sequence[Extent]) -> frozenset[str]:
    return frozenset().union(*(variables(as_expr(extent)) for extent in extents))


def _unknown(names: Iterable[str], symbols: Sequence[str], place: str) -> Iterator[str]:
    yield from (f"{place}: {name} is no symbol of the kernel" for name in sorted(set(names) - set(symbols)))


def _task_values(extent: Extent) -> Interval | None:
    return (0, extent - 1) if isinstance(extent, int) and extent > 0 else None


def _pieces(array: Array) -> Iterator[str]:
    end = 0
    for offset, lanes in sorted(array.pieces):
        if lanes < 1 or offset < end or (isinstance(array.elements, int) and offset + lanes > array.elements):
            yield f"{array_text(array)}: the piece {offset}:+{lanes} overlaps another or leaves the array"
        end = offset + lanes


@dataclass(frozen=True, slots=True)
class _Scope:
    """Variables that are bound, with their values where these are an interval of numbers; `exact` while every
    combination of those values is reached."""

    bound: Mapping[str, Interval | None]
    exact: bool = True

    def binding(self, name: str, values: Interval | None) -> _Scope:
        return replace(self, bound={**self.bound, name: values})

    def where(self, condition: Expr) -> tuple[_Scope, _Scope]:
        """Inside the branches of a condition: `variable <= number` halves an interval."""
        match condition:
            case Binary("<=", Var(name), Const(int() as last)):
                known = self.bound.get(name)
                if known is not None and known[0] <= last < known[1]:
                    return self.binding(name, (known[0], last)), self.binding(name, (last + 1, known[1]))
        unknown = replace(self, exact=False)
        return unknown, unknown


@dataclass(frozen=True, slots=True)
class _Checker:
    arrays: Mapping[str, Array]
    functions: Mapping[str, Function]
    starts: Mapping[str, int] = field(default_factory=dict)
    """Elements before what a function is called with: they are there as well."""

    def steps(self, steps: Sequence[Step], scope: _Scope) -> Iterator[str]:
        for step in steps:
            match step:
                case For(variable, lo, hi, body):
                    place = f"for {variable} in {text_of(lo)}:{text_of(hi)}"
                    yield from self._bound((lo, hi), scope, place)
                    if variable in scope.bound:
                        yield f"{place}: {variable} is bound already"
                    yield from self.steps(body, scope.binding(variable, _interval(lo, hi)))
                case If(condition, yes, no):
                    yield from self._bound((condition,), scope, f"if {text_of(condition)}")
                    inside, outside = scope.where(condition)
                    yield from self.steps(yes, inside)
                    yield from self.steps(no, outside)
                case CallFunction(name, names, arrays):
                    place = f"{name}({', '.join((*names, *(array for array, _ in arrays)))})"
                    function = self.functions.get(name)
                    if function is None or len(function.variables) != len(names):
                        yield f"{place}: there is no such function"
                    else:
                        yield from (f"{place}: {text}" for text in self._arguments(function, arrays))
                    yield from self._bound(map(Var, names), scope, place)
                case Tile():
                    yield from self._tile(step, scope)

    def _arguments(self, function: Function, arrays: Sequence[tuple[str, int]]) -> Iterator[str]:
        """Arrays that cannot stand for those of a function."""
        if len(arrays) != len(function.arrays) or any(name not in self.arrays for name, _ in arrays):
            yield "it takes other arrays"
            return
        shifted: dict[str, Array] = {}
        starts: dict[str, int] = {}
        for formal, (name, start) in zip(function.arrays, arrays, strict=True):
            own, given = self.arrays[formal], self.arrays[name]
            if (own.ttype, own.kind) != (given.ttype, given.kind):
                yield f"{name} is no {own.ttype} {own.kind} array"
            elements = given.elements - start if isinstance(given.elements, int) else given.elements
            shifted[formal], starts[formal] = replace(given, elements=elements), self.starts.get(name, 0) + start
        inside = replace(self, arrays={**self.arrays, **shifted}, starts=starts)
        yield from inside.steps(function.body, _Scope(dict.fromkeys(function.variables)))

    def _bound(self, exprs: Iterable[Expr], scope: _Scope, place: str) -> Iterator[str]:
        names = {name for expr in exprs for name in variables(expr)} - scope.bound.keys()
        yield from (f"{place}: {name} is not bound" for name in sorted(names))

    def _tile(self, tile: Tile, scope: _Scope) -> Iterator[str]:
        place = tile_text(tile)
        yield from self._bound((dim.extent for dim in tile.dims), scope, place)
        for dim in tile.dims:
            if dim.name in scope.bound:
                yield f"{place}: {dim.name} is bound already"
            if dim.size is not None and dim.size < (dim in tile.spatial):
                yield f"{place}: {dim.name} has {dim.size} points"
            if dim.size == 0:  # a reduction over nothing reads nothing
                scope = replace(scope, exact=False)
            scope = scope.binding(dim.name, _interval(Const(0), dim.extent))
        if (tile.reducer is None) != (not tile.reduce):
            yield f"{place}: reduced by {tile.reducer} over {len(tile.reduce)} dimensions"
        if {d.name for d in tile.reduce} & variables(tile.target):
            yield f"{place}: the place of the result depends on a reduction"
        for access in (tile.target, *accesses(tile.value)):
            if access.tensor not in self.arrays:
                yield f"{place}: {access.tensor} is no array of the kernel"
            elif len(access.index) != 1:
                yield f"{place}: {text_of(access)} has {len(access.index)} offsets"
        yield from self._bound((tile.target, tile.value), scope, place)
        for access in (tile.target, *certain_accesses(tile.value)):
            yield from (f"{place}: {text}" for text in self._offset(access, scope))
        for ahead in tile.ahead:
            yield from self._prefetch(ahead, scope)

    def _offset(self, access: Access, scope: _Scope) -> Iterator[str]:
        """Whether an access that every combination of variables reaches stays inside its array."""
        array = self.arrays.get(access.tensor)
        if array is None or not isinstance(array.elements, int) or not scope.exact:
            return
        terms, low = linear_form(access.index[0])
        high = low
        for atom, factor in terms.items():
            known = scope.bound.get(atom.name) if isinstance(atom, Var) else None
            if known is None:
                return
            low += factor * known[factor < 0]
            high += factor * known[factor > 0]
        if low < -self.starts.get(access.tensor, 0) or high >= array.elements:
            yield f"{text_of(access)} reaches elements {low} to {high} of {array.elements}"

    def _prefetch(self, ahead: Prefetch, scope: _Scope) -> Iterator[str]:
        place = prefetch_text(ahead)
        if ahead.memory not in self.arrays or self.arrays[ahead.memory].kind != "operand":
            yield f"{place}: {ahead.memory} is no operand"
        if min(ahead.run, ahead.count, ahead.pitch) < 1:
            yield f"{place}: no elements"
        yield from self._bound((ahead.first, *(Var(name) for name, _, _ in ahead.loops)), scope, place)


def _interval(lo: Expr, hi: Expr) -> Interval | None:
    first, end = constant_value(lo), constant_value(hi)
    return (first, end - 1) if first is not None and end is not None and first < end else None
