"""Executes a tile program statement by statement: what it computes, moves and holds is measured, not predicted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from tilec.ir.evaluate import Points, Window, evaluate_box, integer
from tilec.ir.expr import Expr, TensorExpr
from tilec.ir.lifetimes import Lifetimes, lifetimes, statements
from tilec.ir.lockstep import turns
from tilec.ir.moved import Moved
from tilec.ir.numpy_scalars import Array, cast, widen
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
)
from tilec.ir.program_text import statement_text
from tilec.ir.scopes import scope_ranks
from tilec.ir.types import numpy_dtype
from tilec.machine.errors import MachineError
from tilec.machine.memory import Held, Meter, Region, bytes_of, overlap, reserve, volume
from tilec.machine.reads import defined, followed
from tilec.machine.units import Lane, instance, instances, values

_NO_SYMBOLS: Mapping[str, int] = MappingProxyType({})
_COMBINE: dict[str, Callable[..., Array]] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}
_WIDE = {"f16": "f32", "bf16": "f32"}


@dataclass(frozen=True, slots=True)
class Result:
    """Outputs by parameter name; bytes moved and most bytes alive in one instance, by level."""

    outputs: Mapping[str, Array]
    moved: Mapping[str, Moved]
    peak: Mapping[str, int]


def execute(program: Program, arrays: Mapping[str, Array], symbols: Mapping[str, int] = _NO_SYMBOLS) -> Result:
    """Run a program on `arrays`, the parameters that it does not store, by name.

    Buffers are poisoned until written, explicit levels bounded, spread loops run in lockstep.  Raises MachineError
    when a tile reads what was not written, leaves a window or overflows a level, when an output is not stored, or
    an array or a symbol is missing.
    """
    if unbound := [name for name in program.symbols if name not in symbols]:
        raise MachineError(f"symbol {unbound[0]} has no value")
    machine = _Machine(program, symbols)
    for parameter in program.parameters:
        machine.admit(parameter, None if parameter.name in program.outputs else arrays.get(parameter.name))
    machine.run(program.body, {}, [()])
    return machine.result()


@contextmanager
def _place(statement: Statement) -> Iterator[None]:
    try:
        yield
    except MachineError as error:
        if error.place is not None:
            raise
        raise MachineError(error.message, statement_text(statement), error.hint) from None
    except (KeyError, TypeError, ValueError) as error:
        raise MachineError(f"{type(error).__name__}: {error}", statement_text(statement)) from error


class _Machine:
    def __init__(self, program: Program, symbols: Mapping[str, int]) -> None:
        self._program = program
        self._symbols = dict(symbols)
        self._rank = {level.name: position for position, level in enumerate(program.levels)}
        self._scopes = scope_ranks(program.levels)
        self._meter = Meter(program.levels)
        self._turns = turns(program.body, program.levels)
        self._lives: dict[int, Lifetimes] = {}
        self._memory: dict[tuple[str, Lane], Held] = {}
        self._buffers = {b.name: b for b in program.parameters}
        inner = (s.expr for s in statements(program.body) if isinstance(s, ComputeTile))
        extents = {expr.tensor: expr.shape for expr in inner} | {b.tensor: b.hi for b in program.parameters}
        self._whole = {t: tuple((0, n) for n in self._ints(shape, {})) for t, shape in extents.items()}

    def admit(self, parameter: Buffer, array: Array | None) -> None:
        """Hold a parameter: given elements, or poison for one that the program stores."""
        held = reserve(parameter, self._window(parameter, {}), self._ints(parameter.shape, {}))
        if parameter.name not in self._program.outputs:
            if array is None:
                raise MachineError(f"no array for parameter {parameter.name}")
            if array.shape != held.array.shape or array.dtype != held.array.dtype:
                expected = f"{held.array.dtype}{list(held.array.shape)}"
                raise MachineError(f"{parameter.name} is {expected}, not {array.dtype}{list(array.shape)}")
            held.array[...] = array
            held.written[...] = True
        self._memory[parameter.name, ()] = held

    def result(self) -> Result:
        """What the run left behind. Raises MachineError for an output that is not stored whole."""
        outputs = {}
        for name in self._program.outputs:
            held = self._memory[name, ()]
            if not held.written.all():
                missing = int(held.written.size - held.written.sum())
                raise MachineError(f"{missing} of {held.written.size} elements of output {name} are never stored")
            outputs[name] = held.array
        return Result(outputs, self._meter.moved, self._meter.peak)

    def run(self, body: tuple[Statement, ...], serial: Mapping[str, int], lanes: Sequence[Lane]) -> None:
        """Statement after statement, each by all lanes before the next one begins."""
        life = self._lives.get(id(body)) or self._lives.setdefault(id(body), lifetimes(body))
        own = {s.buffer.name: s.buffer for s in body if isinstance(s, Allocate)}
        sizes = {name: self._bytes(buffer) for name, buffer in own.items()}
        for statement, born, dying in zip(body, life.born, life.dying, strict=True):
            with _place(statement):
                for name in born:
                    self._meter.born(own[name].level, name, sizes[name])
                self._step(statement, serial, lanes)
                for name in dying:
                    self._meter.dies(own[name].level, sizes[name])
        for key in [key for key in self._memory if key[0] in own]:
            del self._memory[key]

    def _step(self, statement: Statement, serial: Mapping[str, int], lanes: Sequence[Lane]) -> None:
        match statement:
            case Loop():
                self._loop(statement, serial, lanes)
            case Barrier(scope):
                if scope not in self._scopes:
                    raise MachineError(f"no level has the scope {scope}")
            case Allocate(buffer):
                self._buffers[buffer.name] = buffer
                self._each(buffer.level, serial, lanes, lambda env, lane: self._allocate(buffer, env, lane))
            case Fill(name, value):
                self._each(self._level(name), serial, lanes, lambda _, lane: self._fill(self._held(name, lane), value))
            case LoadTiles():
                self._each(self._level(statement.target), serial, lanes, lambda _, lane: self._load(statement, lane))
            case StoreTiles():
                level = self._level(statement.source)
                self._each(level, serial, lanes, lambda env, lane: self._store(statement, env, lane))
            case ComputeTile():
                level = self._level(statement.target)
                self._each(level, serial, lanes, lambda env, lane: self._compute(statement, env, lane))

    def _each(
        self,
        level: str,
        serial: Mapping[str, int],
        lanes: Sequence[Lane],
        act: Callable[[Mapping[str, int], Lane], None],
    ) -> None:
        for lane in instances(lanes, self._rank[level]):
            act({**self._symbols, **serial, **values(lane)}, lane)

    def _loop(self, loop: Loop, serial: Mapping[str, int], lanes: Sequence[Lane]) -> None:
        counts = [int(integer(loop.extent, {**self._symbols, **serial, **values(lane)})) for lane in lanes]
        if loop.kind == "spread":
            if loop.scope not in self._scopes:
                raise MachineError(f"no level has the scope {loop.scope}")
            scope = self._scopes[loop.scope]
            inner = [
                (*lane, (loop.variable, i, scope))
                for lane, count in zip(lanes, counts, strict=True)
                for i in range(count)
            ]
            if inner:
                self.run(loop.body, serial, inner)
            return
        for i in range(max(counts, default=0)):
            active = [lane for lane, count in zip(lanes, counts, strict=True) if i < count]
            self.run(loop.body, {**serial, loop.variable: i}, active)

    def _level(self, name: str) -> str:
        return self._buffers[name].level

    def _held(self, name: str, lane: Lane) -> Held:
        """The buffer as this lane sees it: its own, or the one below that it shares."""
        held = self._memory.get((name, instance(lane, self._rank[self._level(name)])))
        if held is None:
            raise MachineError(f"{name} at {self._level(name)} does not exist here")
        return held

    def _ints(self, exprs: Sequence[Expr], env: Mapping[str, int]) -> tuple[int, ...]:
        values = {**self._symbols, **env}
        return tuple(int(integer(e, values)) for e in exprs)

    def _window(self, buffer: Buffer, env: Mapping[str, int]) -> Region:
        return tuple(zip(self._ints(buffer.lo, env), self._ints(buffer.hi, env), strict=True))

    def _bytes(self, buffer: Buffer) -> int:
        elements = volume(tuple((0, n) for n in self._ints(buffer.shape, {})))
        often = int(integer(self._turns[buffer.name], self._symbols)) if buffer.name in self._turns else 1
        return bytes_of(buffer.ttype, elements) * buffer.copies * often

    def _allocate(self, buffer: Buffer, env: Mapping[str, int], lane: Lane) -> None:
        self._memory[buffer.name, lane] = reserve(buffer, self._window(buffer, env), self._ints(buffer.shape, {}))

    def _fill(self, held: Held, value: float) -> None:
        held.array[...] = cast(np.asarray(value), held.array.dtype)
        held.written[...] = True

    def _load(self, statement: LoadTiles, lane: Lane) -> None:
        target, source = self._held(statement.target, lane), self._held(statement.source, lane)
        tensor = self._whole[target.buffer.tensor]
        if statement.fill is not None:
            inside = target.part(overlap(target.window, tensor))
            outside = np.ones(target.array.shape, bool)
            if volume(overlap(target.window, tensor)):
                outside[inside] = False
            target.array[outside] = cast(np.asarray(statement.fill), target.array.dtype)
            target.written[outside] = True
        region = overlap(target.window, source.window, tensor)
        if volume(region):
            target.array[target.part(region)] = _converted(source, source.part(region), target.buffer.ttype)
            target.written[target.part(region)] = source.written[source.part(region)]
            self._meter.reads(target.buffer.level, bytes_of(target.buffer.ttype, volume(region)))

    def _store(self, statement: StoreTiles, env: Mapping[str, int], lane: Lane) -> None:
        target, source = self._held(statement.target, lane), self._held(statement.source, lane)
        owned = source.window
        if statement.lo:
            owned = tuple(zip(self._ints(statement.lo, env), self._ints(statement.hi, env), strict=True))
        region = overlap(owned, target.window, self._whole[source.buffer.tensor])
        if not volume(region):
            return
        if region != overlap(region, source.window):
            raise MachineError(f"stores {list(region)}, the window of {statement.source} is {list(source.window)}")
        there, here = target.part(region), source.part(region)
        if not source.written[here].all():
            raise MachineError(f"stores elements of {statement.source} that were never written")
        value = _converted(source, here, target.buffer.ttype)
        if statement.combine != "none":
            if not target.written[there].all():
                raise MachineError(f"combines with elements of {statement.target} that were never written")
            value = _COMBINE[statement.combine](target.array[there], value)
        target.array[there] = value
        target.written[there] = True
        self._meter.writes(source.buffer.level, bytes_of(source.buffer.ttype, volume(region)))

    def _compute(self, statement: ComputeTile, env: Mapping[str, int], lane: Lane) -> None:
        expr, target = statement.expr, self._held(statement.target, lane)
        extents = dict(zip(expr.iterators, self._ints(expr.extents, {}), strict=True))
        box = {i: (int(integer(lo, env)), int(integer(hi, env))) for i, lo, hi in statement.box}
        region = tuple(box[i] for i in expr.spatial)
        if not volume(region):
            return
        if any(lo < hi and (lo < 0 or hi > extents[i]) for i, (lo, hi) in box.items()):
            raise MachineError(f"the box {box} leaves the extents {extents}")
        if region != overlap(region, target.window):
            raise MachineError(f"computes {list(region)}, the window of {statement.target} is {list(target.window)}")
        held = {tensor: self._held(name, lane) for tensor, name in statement.operands}
        windows = {t: Window(h.array, tuple(lo for lo, _ in h.window)) for t, h in held.items()}
        points = Points(box, windows, env)
        if not defined(expr.value, points, held).all():
            raise MachineError("reads elements that were never written")
        self._gather(expr, points, held, self._rank[target.buffer.level])
        here = target.part(region)
        ttype = target.buffer.ttype
        value = evaluate_box(expr, points, _WIDE.get(ttype, ttype) if statement.accumulate else ttype)
        if statement.accumulate:
            if not target.written[here].all():
                raise MachineError(f"accumulates into elements of {statement.target} that were never written")
            value = _COMBINE[str(expr.reducer)](widen(target.array[here]), value)
        target.array[here] = cast(value, numpy_dtype(ttype))
        target.written[here] = True

    def _gather(self, expr: TensorExpr, points: Points, held: Mapping[str, Held], rank: int) -> None:
        """Count what data index and a tile reads from a lower level, element by element, at the level above that."""
        for tensor, elements in followed(expr, points, held).items():
            source = held[tensor].buffer
            if self._rank[source.level] < rank:
                above = self._program.levels[self._rank[source.level] + 1].name
                self._meter.reads(above, bytes_of(source.ttype, elements))


def _converted(held: Held, part: tuple[slice, ...], ttype: str) -> Array:
    return cast(held.array[part], numpy_dtype(ttype))
