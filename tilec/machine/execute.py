"""Execution of a tile program statement by statement: results, traffic and footprint are measured, not predicted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from tilec.ir.algebra import bounds_of
from tilec.ir.concurrency import iterations_per_unit, waits_for_all
from tilec.ir.evaluate import integer
from tilec.ir.expr import Const, Expr
from tilec.ir.lifetimes import Lifetimes, is_asynchronous, lifetimes, statements
from tilec.ir.numpy_scalars import Array
from tilec.ir.program import (
    Allocate,
    Barrier,
    Buffer,
    ComputeTile,
    Fill,
    LoadTiles,
    Loop,
    Program,
    Statement,
    StoreTiles,
    Wait,
)
from tilec.ir.program_text import statement_text
from tilec.ir.scopes import scope_ranks
from tilec.ir.storage import stored_shape
from tilec.ir.traffic import Traffic
from tilec.ir.types import numpy_dtype
from tilec.machine.compute import compute
from tilec.machine.errors import MachineError
from tilec.machine.memory import BufferInstances, BufferView, Meter, bytes_of, reserve
from tilec.machine.moves import fill, load, store
from tilec.machine.places import Places
from tilec.machine.repeated_loops import is_repeated
from tilec.machine.units import Lanes, integers, volumes

_NO_SYMBOLS: Mapping[str, int] = MappingProxyType({})
WAVE = 1 << 30
"""Maximal bytes of buffers of iterations that run at once without waiting for each other; more iterations run one after
another, as on a device with fewer units."""


@dataclass(frozen=True, slots=True)
class Result:
    """Outputs by parameter name; traffic, and peak bytes live in one instance, by level."""

    outputs: Mapping[str, Array]
    moved: Mapping[str, Traffic]
    peak: Mapping[str, int]


def execute(program: Program, arrays: Mapping[str, Array], symbols: Mapping[str, int] = _NO_SYMBOLS) -> Result:
    """Run a program on `arrays`, the input parameters by name.

    Buffers are poisoned until written, explicit levels limited to their capacity, spread loops run in lockstep. A write
    poisons the buffers whose places it overlaps, and its own target where no barrier keeps it apart from accesses of
    other units to them. Raises MachineError when a tile reads an element that was not written, leaves a window or
    overflows a level, when an output is not stored, or an array or a symbol is missing.
    """
    if unbound := [name for name in program.symbols if name not in symbols]:
        raise MachineError(f"symbol {unbound[0]} has no value")
    machine = _Machine(program, symbols)
    for parameter in program.parameters:
        machine.admit(parameter, None if parameter.name in program.outputs else arrays.get(parameter.name))
    machine.run(program.body, {}, Lanes())
    return machine.result()


@contextmanager
def _place(statement: Statement, places: Places) -> Iterator[None]:
    try:
        yield
    except MachineError as error:
        if error.place is not None:
            raise
        hint = error.hint or places.cause(statement)
        raise MachineError(error.message, statement_text(statement), hint) from None
    except (KeyError, TypeError, ValueError) as error:
        raise MachineError(f"{type(error).__name__}: {error}", statement_text(statement)) from error


class _Machine:
    def __init__(self, program: Program, symbols: Mapping[str, int]) -> None:
        self._program = program
        self._symbols = dict(symbols)
        self._rank = {level.name: position for position, level in enumerate(program.levels)}
        self._scopes = scope_ranks(program.levels)
        self._meter = Meter(program.levels)
        self._turns = iterations_per_unit(program.body, program.levels)
        self._places = Places(program, symbols, self._turns)
        self._lives: dict[int, Lifetimes] = {}
        self._same: dict[tuple[int, frozenset[str]], bool] = {}
        self._memory: dict[str, BufferInstances] = {}
        self._coming: dict[str, LoadTiles] = {}
        self._buffers = {b.name: b for b in program.parameters}
        inner = (s.expr for s in statements(program.body) if isinstance(s, ComputeTile))
        extents = {expr.tensor: expr.shape for expr in inner} | {b.tensor: b.hi for b in program.parameters}
        self._whole = {tensor: integers(shape, self._symbols, 1)[0] for tensor, shape in extents.items()}

    def admit(self, parameter: Buffer, array: Array | None) -> None:
        """Allocate a parameter: with the elements of `array`, or poisoned for one that the program stores."""
        instances = self._reserved(parameter, {}, Lanes())
        if parameter.name not in self._program.outputs:
            if array is None:
                raise MachineError(f"no array for parameter {parameter.name}")
            (elements,) = instances.array
            if array.shape != elements.shape or array.dtype != elements.dtype:
                expected = f"{elements.dtype}{list(elements.shape)}"
                raise MachineError(f"{parameter.name} is {expected}, not {array.dtype}{list(array.shape)}")
            instances.array[0] = array
            instances.written[...] = True
        self._memory[parameter.name] = instances

    def result(self) -> Result:
        """The result of the run. Raises MachineError for an output that is not stored completely."""
        outputs = {}
        for name in self._program.outputs:
            instances = self._memory[name]
            if not instances.is_complete():
                missing = int(instances.written.size - instances.written.sum())
                raise MachineError(f"{missing} of {instances.written.size} elements of output {name} are never stored")
            outputs[name] = instances.array[0]
        return Result(outputs, self._meter.moved, self._meter.peak)

    def run(self, body: tuple[Statement, ...], serial: Mapping[str, int], lanes: Lanes) -> None:
        """Run statement after statement, each in all lanes before the next one begins."""
        life = self._lives.get(id(body)) or self._lives.setdefault(id(body), lifetimes(body))
        allocated = {s.buffer.name: s.buffer for s in body if isinstance(s, Allocate)}
        sizes = {name: self._bytes(buffer) for name, buffer in allocated.items()}
        for statement, born, dying in zip(body, life.born, life.dying, strict=True):
            with _place(statement, self._places):
                for name in born:
                    self._meter.born(allocated[name].level, name, sizes[name], *self._places.end(name))
                self._step(statement, serial, lanes)
                for name in self._places.lost(statement):
                    if name in self._memory:
                        self._memory[name].lose()
                for name in dying:
                    self._meter.dies(allocated[name].level, sizes[name])
        for name in allocated:
            self._memory.pop(name, None)

    def _step(self, statement: Statement, serial: Mapping[str, int], lanes: Lanes) -> None:
        match statement:
            case Loop():
                self._loop(statement, serial, lanes)
            case Barrier(scope):
                if scope not in self._scopes:
                    raise MachineError(f"no level has the scope {scope}")
            case Allocate(buffer):
                self._buffers[buffer.name] = buffer
                self._memory[buffer.name] = self._reserved(buffer, serial, self._acting(buffer.name, lanes))
            case Fill(name, value):
                fill(self._view(name, self._acting(name, lanes)), value)
            case LoadTiles(name):
                if is_asynchronous(statement):
                    self._coming[name] = statement
                else:
                    self._load(statement, lanes)
            case Wait(names):
                for name in names:
                    if name not in self._coming:
                        raise MachineError(f"nothing is loaded into {name} that could be waited for")
                    self._load(self._coming.pop(name), lanes)
            case StoreTiles(below, name, lo, hi, combine):
                acting = self._acting(name, lanes)
                target, source = self._view(below, acting), self._view(name, acting)
                values = {**self._symbols, **serial, **acting.values}
                owned = (integers(lo, values, acting.count), integers(hi, values, acting.count)) if lo else None
                store(target, source, owned, self._whole[source[0].buffer.tensor], combine, self._meter)
            case ComputeTile():
                acting = self._acting(statement.target, lanes)
                values = {**self._symbols, **serial, **acting.values}
                operands = {tensor: self._view(name, acting) for tensor, name in statement.operands}
                target = self._view(statement.target, acting)
                compute(statement, acting.count, values, target, operands, self._whole, self._counted)

    def _load(self, statement: LoadTiles, lanes: Lanes) -> None:
        acting = self._acting(statement.target, lanes)
        target, source = self._view(statement.target, acting), self._view(statement.source, acting)
        load(target, source, self._whole[target[0].buffer.tensor], statement.fill, self._meter)

    def _loop(self, loop: Loop, serial: Mapping[str, int], lanes: Lanes) -> None:
        if loop.kind == "spread":
            self._spread(loop, serial, lanes)
            return
        counts = self._counts(loop, serial, lanes)
        for i in range(max(counts.tolist(), default=0)):
            active = lanes if (i < counts).all() else lanes.chosen(i < counts)
            self.run(loop.body, {**serial, loop.variable: i}, active)

    def _counts(self, loop: Loop, serial: Mapping[str, int], lanes: Lanes) -> Array:
        """Trip count of a loop in each lane."""
        return integers([loop.extent], {**self._symbols, **serial, **lanes.values}, lanes.count)[:, 0]

    def _spread(self, loop: Loop, serial: Mapping[str, int], lanes: Lanes) -> None:
        if loop.scope not in self._scopes:
            raise MachineError(f"no level has the scope {loop.scope}")
        rank = self._scopes[loop.scope]
        often = self._repeats(loop, lanes, rank)
        acting = lanes.instances(rank - 1) if often > 1 else lanes
        inner = acting.spread(loop.variable, np.maximum(self._counts(loop, serial, acting), 0), rank)
        with self._meter.counting(often):
            for wave in self._places.each(self._waves(loop, serial, inner) if inner.count else ()):
                self.run(loop.body, serial, wave)

    def _repeats(self, loop: Loop, lanes: Lanes, rank: int) -> int:
        """Number of lanes with identical effects in a spread loop: all that share the memory below the level of its
        units, or 1."""
        private = lanes.values.keys() - set(lanes.names(rank - 1))
        if not private or not lanes.count:
            return 1
        key = (id(loop), frozenset(private))
        if key not in self._same:
            shared = [name for name, buffer in self._buffers.items() if self._rank[buffer.level] < rank]
            self._same[key] = is_repeated(loop, private, shared)
        sharing = np.unique(lanes.codes(rank - 1), return_counts=True)[1] if self._same[key] else np.ones(1, np.int64)
        return int(sharing[0]) if (sharing == sharing[0]).all() else 1

    def _waves(self, loop: Loop, serial: Mapping[str, int], lanes: Lanes) -> Iterator[Lanes]:
        """The iterations of a spread loop that run at once: all, or as many as fit in `WAVE` bytes."""
        most = lanes.count
        homes = {name: self._rank[buffer.level] for name, buffer in self._buffers.items()}
        if not waits_for_all(loop, homes, self._program.levels):
            known = {**self._symbols, **serial, **{name: int(each.max()) for name, each in lanes.values.items()}}
            ranges = {name: (Const(0), Const(value)) for name, value in known.items()}
            most = max(1, WAVE // max(1, self._room(loop.body, ranges)))
        if most >= lanes.count:
            yield lanes
            return
        for begin in range(0, lanes.count, most):
            yield lanes.chosen(np.arange(begin, min(begin + most, lanes.count)))

    def _room(self, body: tuple[Statement, ...], ranges: Mapping[str, tuple[Expr, Expr]]) -> int:
        """Upper limit of the bytes of a body's buffers on all units that run it."""
        total = 0
        for statement in body:
            if isinstance(statement, Allocate):
                buffer = statement.buffer
                elements = int(volumes(integers(buffer.shape, self._symbols, 1))[0])
                total += (numpy_dtype(buffer.ttype).itemsize + 1) * elements
            elif isinstance(statement, Loop):
                most = max(1, bounds_of(statement.extent, ranges)[1] or 1)
                inner = self._room(statement.body, {**ranges, statement.variable: (Const(0), Const(most - 1))})
                total += inner * (most if statement.kind == "spread" else 1)
        return total

    def _acting(self, name: str, lanes: Lanes) -> Lanes:
        """The lanes that execute a statement acting on this buffer: one for every instance of its level."""
        return lanes.instances(self._rank[self._buffers[name].level])

    def _view(self, name: str, lanes: Lanes) -> BufferView:
        """The buffer, and for each lane the unit whose instance it accesses: its own, or a shared one below."""
        level = self._buffers[name].level
        if name not in self._memory:
            raise MachineError(f"{name} at {level} does not exist here")
        rank = self._rank[level]
        return self._memory[name], self._memory[name].rows(lanes.names(rank), lanes.codes(rank))

    def _counted(self, source: Buffer, target: Buffer, elements: Array, gathered: bool) -> None:
        """Count elements that tiles read in place, at every level from the one above the source's up to the target's.

        What caches on the way keep is not known here: they do not count, but for gathered elements the first level.
        """
        first, last = self._rank[source.level] + 1, self._rank[target.level]
        each, often = np.unique(elements, return_counts=True)
        size = sum(bytes_of(source.ttype, n) * times for n, times in zip(each.tolist(), often.tolist(), strict=True))
        for place in range(first, last + 1):
            level = self._program.levels[place]
            if level.managed == "explicit" or place == last or (gathered and place == first):
                self._meter.reads(level.name, size)

    def _bytes(self, buffer: Buffer) -> int:
        elements = int(volumes(integers(stored_shape(buffer), self._symbols, 1))[0])
        often = int(integer(self._turns[buffer.name], self._symbols)) if buffer.name in self._turns else 1
        return bytes_of(buffer.ttype, elements) * buffer.copies * often

    def _reserved(self, buffer: Buffer, serial: Mapping[str, int], lanes: Lanes) -> BufferInstances:
        values = {**self._symbols, **serial, **lanes.values}
        lo, hi = (integers(ends, values, lanes.count) for ends in (buffer.lo, buffer.hi))
        rank = self._rank[buffer.level]
        (shape,) = integers(buffer.shape, self._symbols, 1).tolist()
        return reserve(buffer, lanes.names(rank), lanes.codes(rank), lo, hi, shape)
