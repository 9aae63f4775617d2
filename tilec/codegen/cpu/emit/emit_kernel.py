"""Tile programs to TIR functions: the CPU reader of the tile program (W31)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import MappingProxyType

from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script.builder import ir as I  # noqa: N812

from tilec.codegen.cpu.compile.compile_tir import PRINTED
from tilec.codegen.cpu.decisions import UNDECIDED, Decisions
from tilec.codegen.cpu.emit.dot_functions import dot_functions
from tilec.codegen.cpu.emit.indices import Indices
from tilec.codegen.cpu.emit.kernel_function import (
    Buffer,
    Operand,
    PrimFunc,
    Scratch,
    part_function,
    sized_kernel_function,
)
from tilec.codegen.cpu.emit.memory_access import Memories, stored
from tilec.codegen.cpu.emit.tiles import emit_tile
from tilec.codegen.cpu.emit.vector_ops import PrimExpr, bind, floor_parts, int64, register
from tilec.codegen.cpu.extents import Extent, product
from tilec.codegen.cpu.kernel_ir import (
    Array,
    CallFunction,
    For,
    Function,
    If,
    KernelIR,
    ParallelNest,
    Step,
    Tile,
    memories_of,
    tiles,
)
from tilec.codegen.cpu.passes.nontemporal_stores import nontemporal_stores, whole
from tilec.codegen.cpu.pipeline import KernelContext, Observe, lower_kernel
from tilec.codegen.cpu.target import CpuTarget
from tilec.ir.dots import DOTS
from tilec.ir.expr import Call, Var, walk
from tilec.ir.program import Program
from tilec.ir.sizes import LARGEST_SIZE, SymbolRange


@dataclass(frozen=True, slots=True)
class Kernel:
    """A printed kernel: its function, how many tasks it has and the scratch bytes that a thread needs.

    The function's operands are the program's parameters, in order, its last arguments the values of `symbols`, of which
    `tasks` and `scratch_bytes` may be expressions that are never negative; it calls `parts` by their symbols.
    """

    function: PrimFunc
    tasks: Extent
    scratch_bytes: Extent
    parts: Mapping[str, PrimFunc]
    symbols: tuple[str, ...] = ()


def emit(
    program: Program,
    target: CpuTarget,
    symbol: str | None = None,
    large: Set[str] = frozenset(),
    observe: Observe | None = None,
    decisions: Decisions = UNDECIDED,
    symbol_ranges: Mapping[str, SymbolRange] = MappingProxyType({}),
) -> Kernel:
    """The kernel of a program under a C symbol, by default the program's name, as it is decided, for sizes in ranges.

    Results that are `large`, and lie in no cache when they are read, or that are decided to be streamed begin at
    multiples of a vector. `observe` is called after every pass. Raises UnsupportedError for statements that a core
    cannot run.
    """
    kernel = lower_kernel(KernelContext(program, target, frozenset(large), decisions, symbol_ranges), observe)
    return emit_lowered(kernel, target, symbol)


def emit_lowered(kernel: KernelIR, target: CpuTarget, symbol: str | None = None) -> Kernel:
    """A kernel after all passes under a C symbol, by default its name."""
    printer = _Printer(kernel, target, symbol or kernel.name)
    return Kernel(printer.kernel(), kernel.tasks, kernel.scratch_bytes, printer.parts(), kernel.symbols)


def emit_kernel(program: Program, target: CpuTarget) -> PrimFunc:
    """The TIR function of a program."""
    return emit(program, target).function


@dataclass(frozen=True, slots=True)
class _Place:
    """What steps are printed with inside a function: its memories, and the buffers of those that it hands on."""

    memories: Memories
    buffers: Mapping[str, Buffer]


@dataclass(frozen=True, slots=True)
class _Printer:
    tree: KernelIR
    target: CpuTarget
    symbol: str

    @property
    def table(self) -> dict[str, Array]:
        """The kernel's memories by name."""
        return {memory.name: memory for memory in self.tree.memories}

    @property
    def operands(self) -> list[Operand]:
        """The parameters."""
        return [Operand(m.name, stored(m.ttype), _most(m.elements)) for m in self.tree.memories if m.kind == "operand"]

    def kernel(self) -> PrimFunc:
        """The function of the tasks."""

        def body(
            buffers: Mapping[str, Buffer], scratch: Scratch, task: PrimExpr, sizes: Mapping[str, PrimExpr]
        ) -> None:
            nests = [nest for nest in self.tree.nests if nest.tasks != 0]
            used = {name for nest in nests for name in memories_of(nest.body)}
            with self._streaming(used), self._dots(tiles(tuple(step for nest in nests for step in nest.body))):
                self._nests(nests, self._place(buffers, scratch, used, Indices(sizes)), task, sizes)

        room = _most(self.tree.scratch_bytes)
        function = sized_kernel_function(self.symbol, self.operands, body, room, self.tree.symbols)
        return function.with_attr(PRINTED, True)

    def parts(self) -> dict[str, PrimFunc]:
        """Symbol -> function of every part."""
        return {self._symbol(part.name): self._part(part) for part in self.tree.parts}

    def _symbol(self, part: str) -> str:
        return f"{self.symbol}_{part}"

    def _part(self, part: Function) -> PrimFunc:
        def body(buffers: Mapping[str, Buffer], values: Sequence[PrimExpr]) -> None:
            used = set(memories_of(part.body))
            indices = Indices(dict(zip(part.variables, values, strict=True)))
            places = dict(zip(self._apart(part.arrays), buffers.values(), strict=True))
            place = self._memories({name: places[self._where(name)] for name in part.arrays}, used)
            with self._streaming(used), self._dots(tiles(part.body)):
                self._steps(part.body, place, indices)

        arrays = [
            Operand(
                names[0], stored(self.table[names[0]].ttype), max(_most(self.table[name].elements) for name in names)
            )
            for names in self._apart(part.arrays).values()
        ]
        function = part_function(self._symbol(part.name), arrays, part.variables, body)
        return function.with_attr(PRINTED, True)

    def _where(self, name: str) -> object:
        """What is one buffer for all arrays that lie there: two would be taken as not aliased."""
        array = self.table[name]
        return name if array.offset is None else (array.kind, array.offset)

    def _apart(self, names: Sequence[str]) -> dict[object, list[str]]:
        """Arrays by the buffers that they are."""
        found: dict[object, list[str]] = {}
        for name in names:
            found.setdefault(self._where(name), []).append(name)
        return found

    def _streaming(self, used: Set[str]) -> AbstractContextManager[None]:
        past = [stored(memory.ttype) for memory in self.tree.memories if memory.name in used & self.tree.nontemporal]
        return nontemporal_stores(past, self.target.vector_bytes)

    def _dots(self, printed: Iterable[Tile]) -> AbstractContextManager[None]:
        parts = ((tile.unit, part) for tile in printed for part in walk(tile.value))
        used = {(part.fn, unit) for unit, part in parts if isinstance(part, Call) and part.fn in DOTS}
        return dot_functions(used, self.target.architecture, self.target.vector_bytes)

    def _place(self, operands: Mapping[str, Buffer], scratch: Scratch, used: Set[str], indices: Indices) -> _Place:
        """TIR buffers for the memories that a kernel's function uses, in which offsets into scratch are printed by
        `indices`. Those that share a place share a buffer."""
        buffers: dict[str, Buffer] = dict(operands)
        places: dict[Extent, int] = {}
        for memory in self.tree.memories:
            if memory.offset is not None:
                places[memory.offset] = max(places.get(memory.offset, 0), _most(memory.elements))
        made: dict[Extent, Buffer] = {}
        for memory in self.tree.memories:
            if memory.name in used and memory.offset is not None:
                if memory.offset not in made:
                    offset = indices.extent(memory.offset)
                    made[memory.offset] = scratch.buffer(offset, places[memory.offset], stored(memory.ttype))
                buffers[memory.name] = made[memory.offset]
        return self._memories(buffers, used)

    def _memories(self, buffers: Mapping[str, Buffer], used: Set[str]) -> _Place:
        """The memories that a function uses, of which registers are its own."""
        table = self.table
        pieces = {
            (name, offset, lanes): register(stored(table[name].ttype), lanes)
            for name in table
            if name in used
            for offset, lanes in table[name].pieces
        }
        vectors = {
            name: whole(stored(table[name].ttype), self.target.vector_bytes) for name in self.tree.nontemporal & used
        }
        return _Place(Memories(table, buffers, pieces, vectors, self.tree.symbols), buffers)

    def _nests(
        self, nests: Sequence[ParallelNest], place: _Place, task: PrimExpr, sizes: Mapping[str, PrimExpr]
    ) -> None:
        """The nest that a task belongs to."""
        if not nests:
            return
        first, *others = nests
        if not others:
            self._steps(first.body, place, Indices({**sizes, **_task_variables(first, task, Indices(sizes))}))
            return
        count = Indices(sizes).extent(first.tasks)
        with I.If(tirx.LT(task, count)):
            with I.Then():
                self._nests([first], place, task, sizes)
            with I.Else():
                self._nests(others, place, bind(tirx.Sub(task, count)), sizes)

    def _steps(self, steps: Sequence[Step], place: _Place, indices: Indices) -> None:
        for step in steps:
            match step:
                case Tile():
                    emit_tile(step, self.target, place.memories, indices)
                case For(name, lo, hi, body):
                    with I.serial(indices.number(lo), indices.number(hi)) as value:
                        IRBuilder.name(name, value)
                        with indices.loop(name, value):
                            self._steps(body, place, indices)
                case If(condition, yes, no):
                    with I.If(indices.condition(condition)):
                        with I.Then(), indices.scope():
                            self._steps(yes, place, indices)
                        with I.Else(), indices.scope():
                            self._steps(no, place, indices)
                case CallFunction(part, variables, arrays):
                    values = [indices.get(Var(name)) for name in variables]
                    called = next(each for each in self.tree.parts if each.name == part)
                    given = dict(zip(called.arrays, arrays, strict=True))
                    first = [given[names[0]] for names in self._apart(called.arrays).values()]
                    pointers = [_pointer(place.buffers[name], start) for name, start in first]
                    I.evaluate(tirx.call_extern("void", self._symbol(part), *pointers, *values))


def _pointer(buffer: Buffer, start: int) -> PrimExpr:
    """The address of an element."""
    return tirx.address_of(buffer[int64(start)]) if start else buffer.data


def _most(extent: Extent) -> int:
    """An extent for TIR, which takes those of open size for large."""
    return extent if isinstance(extent, int) else LARGEST_SIZE


def _task_variables(nest: ParallelNest, task: PrimExpr, sizes: Indices) -> dict[str, PrimExpr]:
    """The variables of a nest's loops, under their names, from the number of the task."""
    values: dict[str, PrimExpr] = {}
    rest, along = task, None
    if len(nest.spread) > 1 and nest.stripe > 1:
        rest, along = _striped(nest, task, sizes)
    for name, extent in reversed(nest.spread[1:]):
        rest, values[name] = floor_parts(rest, sizes.extent(extent))
    if nest.spread:
        values[nest.spread[0][0]] = rest if along is None else tirx.Add(tirx.Mul(rest, int64(nest.stripe)), along)
    return {name: IRBuilder.name(name, I.Bind(values[name])) for name, _ in nest.spread}


def _striped(nest: ParallelNest, task: PrimExpr, sizes: Indices) -> tuple[PrimExpr, PrimExpr]:
    """The number of a task as if every stripe were one iteration of the outermost loop, and its place along the
    stripe; the last stripe may be narrower."""
    (_, first), *others = nest.spread
    inner = product(extent for _, extent in others)
    stripe, within = floor_parts(task, sizes.extent(product((nest.stripe, inner))))
    stripe, within = bind(stripe), bind(within)
    height = bind(tirx.Min(int64(nest.stripe), tirx.Sub(sizes.extent(first), tirx.Mul(stripe, int64(nest.stripe)))))
    column = bind(tirx.Div(within, height))
    along = tirx.Sub(within, tirx.Mul(column, height))
    return tirx.Add(tirx.Mul(stripe, sizes.extent(inner)), column), along
