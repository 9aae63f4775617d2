"""A tile program as kernel IR: storage for every buffer, loops in versions of fixed widths, flat tiles.

Loops are cut (`peel_loops`) while buffers get storage, for the width of a window, and with it the size of an array, is
a number in the ranges of the version alone. Tiles that straddle a condition are cut here too: their iterators, in
tensor coordinates, are gone when they are flat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilec.codegen.cpu.extents import Extent, at_least_one, extent_of, product
from tilec.codegen.cpu.kernel_ir import Array, For, If, KernelIR, ParallelNest, Step, Storage, Tile, tiles
from tilec.codegen.cpu.open_sizes import NO_OPEN_SIZES, OpenSizes
from tilec.codegen.cpu.passes.buffer_uses import outside
from tilec.codegen.cpu.passes.flatten_statements import Operand, compute_tile, copy_tile, fill_tile
from tilec.codegen.cpu.passes.peel_loops import Interval, peel_loops
from tilec.codegen.cpu.passes.peel_open_loops import OpenInterval, peel_open_loop
from tilec.codegen.cpu.passes.specialize_guards import split_straddling
from tilec.codegen.cpu.passes.task_loops import TaskLoops, task_loops
from tilec.codegen.cpu.passes.window_copies import filled_copy, filled_outside
from tilec.codegen.cpu.passes.window_storage import BufferWindow, UnplacedBuffer, strides_of, viewed, written_through
from tilec.codegen.cpu.simplify_ranges import at_least, extend_ranges, simplify_in_ranges
from tilec.codegen.cpu.target import LOCAL_BYTES, CpuTarget
from tilec.errors import UnsupportedError
from tilec.ir.algebra import simplify
from tilec.ir.expr import (
    Access,
    Binary,
    Call,
    Const,
    Expr,
    Scalar,
    Var,
    accesses,
    constant_value,
    rebuild,
    substitute,
    variables,
)
from tilec.ir.known_ranges import Ranges
from tilec.ir.program import (
    Allocate,
    Barrier,
    Buffer,
    Combine,
    ComputeTile,
    Fill,
    LoadTiles,
    Loop,
    Place,
    Program,
    Statement,
    StoreTiles,
    Wait,
)
from tilec.ir.sizes import upper_bound
from tilec.ir.text import text_of
from tilec.ir.types import TTYPES

REGISTER_BYTES = 8 << 10
"""Largest buffer of the highest level that becomes a local one, which LLVM keeps in registers if it can."""

BOUNDED_BYTES = 1 << 20
"""Largest array in scratch that has room for the upper bounds of sizes; larger ones are as large as a run needs."""

TILE_EXTENT = 64
"""Largest upper bound of an extent that is a number in such an array: strides that are numbers are worth some room."""


@dataclass(slots=True)
class Life:
    """An array that is no operand, and from which to which tile it is used."""

    memory: Array
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Scope:
    """What is visible at a statement: ranges of loop variables, values of unrolled ones, live buffers."""

    ranges: Ranges
    values: Mapping[str, Expr]
    live: Mapping[str, BufferWindow]

    def expr(self, e: Expr) -> Expr:
        """An expression in the current ranges."""
        return simplify_in_ranges(substitute(e, self.values) if self.values else e, self.ranges)

    def with_loop(self, variable: str, interval: Interval) -> Scope:
        """Inside a loop; a variable that takes one value only is replaced by it."""
        if interval.last == interval.first:
            return replace(self, values={**self.values, variable: Const(interval.first)})
        return self.ranged(variable, Const(interval.first), Const(interval.last))

    def with_open_loop(self, variable: str, interval: OpenInterval) -> Scope:
        """Inside a loop whose ends depend on symbols."""
        if interval.value is not None:
            return replace(self, values={**self.values, variable: interval.value})
        return self.ranged(variable, interval.first, simplify_in_ranges(interval.last, self.ranges))

    def ranged(self, variable: str, first: Expr, last: Expr) -> Scope:
        """With a variable from `first` to `last`."""
        return replace(self, ranges=extend_ranges(self.ranges, {variable: (first, last)}))


@dataclass(slots=True)
class _Resolver:
    program: Program
    target: CpuTarget
    sizes: OpenSizes
    shapes: dict[str, tuple[Expr, ...]] = field(default_factory=dict)
    lives: dict[str, Life] = field(default_factory=dict)
    clock: int = 0
    local_bytes: int = 0

    @property
    def top(self) -> str:
        return self.program.levels[-1].name

    # -- statements ---------------------------------------------------------------------------------------

    def statements(self, body: Sequence[Statement], scope: Scope) -> tuple[Step, ...]:
        steps: list[Step] = []
        for position, statement in enumerate(body):
            match statement:
                case Allocate(buffer):
                    window = self.place(buffer, body[position + 1 :], scope)
                    scope = replace(scope, live={**scope.live, buffer.name: window})
                case Loop():
                    steps += self.loop(statement, scope)
                case Barrier() | Wait():
                    # Units of a loop inside a task run one after another: each finds what the ones before left, and
                    # what was loaded where the load stands.
                    pass
                case _:
                    steps += self.tiles(statement, scope)
        return tuple(steps)

    def loop(self, loop: Loop, scope: Scope) -> list[Step]:
        """A loop as one range or several, so that sizes inside are constant."""
        extent = scope.expr(loop.extent)
        size = constant_value(extent)
        steps: list[Step] = []
        if size is not None:
            for interval in peel_loops(loop, size, scope.ranges, scope.values):
                inner = self.body(loop.body, scope.with_loop(loop.variable, interval))
                if inner:
                    steps.append(For(loop.variable, Const(interval.first), Const(interval.last + 1), inner))
            return steps
        for part in self.open_intervals(loop, extent, scope):
            inner = self.body(loop.body, scope.with_open_loop(loop.variable, part))
            if inner:
                steps.append(For(loop.variable, part.first, part.end, inner))
        return steps

    def open_intervals(self, loop: Loop, extent: Expr, scope: Scope) -> tuple[OpenInterval, ...]:
        """The intervals of a loop whose extent is no number: several where symbols decide it."""
        if self.sizes.depends(extent):
            parts = peel_open_loop(loop, extent, scope.ranges, scope.values)
            some = [part for part in parts if not self.sizes.is_empty(Binary("-", part.end, part.first))]
            return tuple(some) or parts[:1]
        return (OpenInterval(Const(0), extent),)

    def body(self, statements: Sequence[Statement], scope: Scope) -> tuple[Step, ...]:
        """The body of a loop: memories from outside that it uses live until its last iteration ends."""
        before, known = self.clock, set(self.lives)
        inner = self.statements(statements, scope)
        for name, life in self.lives.items():
            if name in known and life.last > before:
                life.last = self.clock
        return inner

    def tiles(self, statement: Statement, scope: Scope) -> list[Step]:
        match statement:
            case Fill(name, value):
                made = self.fill(scope.live[name], value, scope)
            case LoadTiles(target, source, fill, _):
                made = self.load(scope.live[target], scope.live[source], fill, scope)
            case StoreTiles():
                made = self.store(statement, scope)
            case ComputeTile():
                made = self.compute(statement, scope)
            case _:
                raise AssertionError(statement)
        for tile in tiles(tuple(made)):
            self.clock += 1
            for name in (tile.target.tensor, *(a.tensor for a in accesses(tile.value))):
                if name in self.lives:
                    self.lives[name].last = self.clock
        return made

    def nest(self, part: TaskLoops, scope: Scope) -> ParallelNest:
        """A nest of task loops with its body."""
        spread = tuple((loop.variable, self.count(loop.extent, scope)) for loop in part.loops)
        empty = any(isinstance(extent, int) and extent <= 0 for _, extent in spread)
        stripe = part.loops[0].stripe if part.loops else 1
        return ParallelNest(spread, () if empty else self.task(part.loops, part.body, scope), stripe)

    def task(self, loops: tuple[Loop, ...], body: tuple[Statement, ...], scope: Scope) -> tuple[Step, ...]:
        """One task: versions of its loops chosen by conditions on their variables."""
        if not loops:
            return self.body(body, scope)
        loop, inner = replace(loops[0], body=(*loops[1:], *body)), loops[1:]
        steps: tuple[Step, ...] = ()
        for last, inside in reversed(self.versions(loop, scope)):
            version = self.task(inner, body, inside)
            steps = (If(Binary("<=", Var(loop.variable), last), version, steps),) if steps else version
        return steps

    def versions(self, loop: Loop, scope: Scope) -> list[tuple[Expr, Scope]]:
        """The versions of a task loop: the last value of its variable for which each stands, and what is known then."""
        extent = self.count(loop.extent, scope)
        if isinstance(extent, int):
            parts = peel_loops(loop, extent, scope.ranges, scope.values)
            return [(Const(part.last), scope.with_loop(loop.variable, part)) for part in parts]
        rest = self.open_intervals(loop, extent, scope)
        return [(scope.expr(part.last), scope.with_open_loop(loop.variable, part)) for part in rest]

    def count(self, extent: Expr, scope: Scope) -> Extent:
        """A number of tasks, never negative where it is none yet."""
        found = scope.expr(extent)
        if constant_value(found) is None and not at_least(found, Const(0), scope.ranges):
            found = scope.expr(Call("maximum", (found, Const(0))))
        return extent_of(found)

    # -- storage ------------------------------------------------------------------------------------------

    def shape(self, tensor: str, buffer: Buffer) -> tuple[Expr, ...]:
        """The shape of a tensor, that of the buffer when nothing in the program tells."""
        return self.shapes.get(tensor, buffer.hi)

    def place(self, buffer: Buffer, after: Sequence[Statement], scope: Scope) -> BufferWindow:
        lo, hi = tuple(map(scope.expr, buffer.lo)), tuple(map(scope.expr, buffer.hi))
        plain = UnplacedBuffer(buffer, lo, hi, scope.ranges)
        shape = self.shape(buffer.tensor, buffer)
        top = buffer.level == self.top
        below = viewed(plain, shape, scope.live, after) or written_through(plain, shape, scope.live, after, top)
        if below is not None:
            return BufferWindow(buffer, lo, hi, below.storage, below.shares | {buffer.name}, below.outside)
        storage = self.own(buffer, lo, top)
        return BufferWindow(buffer, lo, hi, storage, frozenset({buffer.name}), outside(buffer, after))

    def own(self, buffer: Buffer, lo: tuple[Expr, ...], top: bool) -> Storage:
        """Storage of its own for a buffer: local when it is small and of the highest level, else scratch."""
        shape = self.room(buffer)
        elements = at_least_one(product(shape))
        size = elements * TTYPES[buffer.ttype].bits // 8 if isinstance(elements, int) else None
        local = top and size is not None and size <= REGISTER_BYTES and self.local_bytes + size <= 4 * LOCAL_BYTES
        self.local_bytes += size if local and size is not None else 0
        name = f"{buffer.name}.{len(self.lives)}"
        memory = Array(name, buffer.ttype, elements, "local" if local else "scratch")
        self.lives[name] = Life(memory, self.clock, self.clock)
        return Storage(name, buffer.ttype, lo, strides_of(shape, buffer.layout))

    def room(self, buffer: Buffer) -> tuple[Extent, ...]:
        """The extents that a buffer has storage for: upper bounds; in an array that would be large, or that has none,
        expressions of sizes but for tiles."""
        exact = tuple(self.size(extent) for extent in buffer.shape)
        most = tuple(self.largest(extent) for extent in exact)
        elements = product(most)
        if isinstance(elements, int) and elements * TTYPES[buffer.ttype].bits // 8 <= BOUNDED_BYTES:
            return most
        return tuple(m if isinstance(m, int) and m <= TILE_EXTENT else e for e, m in zip(exact, most, strict=True))

    def size(self, extent: Expr) -> Extent:
        """A size of a buffer. Raises UnsupportedError for one that symbols do not decide."""
        size = extent_of(simplify(extent))
        if isinstance(size, int):
            return max(0, size)
        if not variables(size) <= self.sizes.ranges.keys():
            raise UnsupportedError(
                f"the size {text_of(size)} is not a number",
                self.program.name,
                "Bind the sizes with --shape SYMBOL=SIZE.",
            )
        return size if at_least(size, Const(0), self.sizes.known) else Call("maximum", (size, Const(0)))

    def largest(self, size: Extent) -> Extent:
        """The upper bound of a size that has one."""
        bound = size if isinstance(size, int) else upper_bound(size, self.sizes.ranges)
        return size if bound is None else max(0, bound)

    # -- tiles --------------------------------------------------------------------------------------------

    def fill(self, window: BufferWindow, value: Scalar, scope: Scope) -> list[Step]:
        box = tuple(zip(window.lo, window.hi, strict=True))
        if window.outside is None or repr(window.outside) != repr(value):
            return _present(fill_tile(window.storage, box, value, scope.ranges))
        valid = tuple((Const(0), extent) for extent in self.shape(window.buffer.tensor, window.buffer))
        return [*filled_outside(window.storage, box, valid, value, scope.ranges)]

    def load(self, target: BufferWindow, source: BufferWindow, fill: Scalar | None, scope: Scope) -> list[Step]:
        if target.storage is source.storage:
            return []
        shape = self.shape(target.buffer.tensor, target.buffer)
        zero = (Const(0),) * len(shape)
        lo = _largest(scope, source.lo, zero)
        hi = _smallest(scope, source.hi, shape)
        if source.outside is not None and fill is not None and repr(source.outside) == repr(fill):
            lo, hi = source.lo, source.hi
        box = tuple(zip(target.lo, target.hi, strict=True))
        valid = tuple(zip(lo, hi, strict=True))
        if fill is None:
            first, last = _largest(scope, target.lo, lo), _smallest(scope, target.hi, hi)
            box = tuple(zip(first, last, strict=True))
            return _present(copy_tile(target.storage, source.storage, box, scope.ranges))
        return [*filled_copy(target.storage, source.storage, box, valid, fill, scope.ranges)]

    def store(self, statement: StoreTiles, scope: Scope) -> list[Step]:
        source, target = scope.live[statement.source], scope.live[statement.target]
        if source.storage is target.storage:
            return []
        shape = self.shape(source.buffer.tensor, source.buffer)
        lo = tuple(map(scope.expr, statement.lo)) or source.lo
        hi = tuple(map(scope.expr, statement.hi)) or source.hi
        lo = _largest(scope, _largest(scope, lo, target.lo), (Const(0),) * len(shape))
        hi = _smallest(scope, _smallest(scope, hi, target.hi), shape)
        box = tuple(zip(lo, hi, strict=True))
        combine: Combine = statement.combine
        return _present(copy_tile(target.storage, source.storage, box, scope.ranges, combine))

    def compute(self, statement: ComputeTile, scope: Scope) -> list[Step]:
        box = tuple((i, scope.expr(lo), scope.expr(hi)) for i, lo, hi in statement.box)
        body = substitute(statement.expr.body, scope.values) if scope.values else statement.expr.body
        statement = replace(statement, box=box, expr=replace(statement.expr, body=body))
        cut = self.cut(statement, scope)
        if cut is not None:
            return [self.in_pieces(statement, *cut, scope)]
        operands = {tensor: _operand(scope.live[name]) for tensor, name in statement.operands}
        target = _operand(scope.live[statement.target])
        return _present(compute_tile(statement, target, operands, scope.ranges))

    def cut(self, statement: ComputeTile, scope: Scope) -> tuple[str, int] | None:
        """Along which iterator a tile is computed in pieces, and their width; never where it reads or writes what may
        stay in registers, whose places must be known."""
        memories = {scope.live[name].storage.memory for name in (statement.target, *dict(statement.operands).values())}
        if any(self.lives[name].memory.kind == "local" for name in memories & self.lives.keys()):
            return None
        sizes = {name: constant_value(simplify(Binary("-", hi, lo))) or 0 for name, lo, hi in statement.box}
        strides = zip(scope.live[statement.target].storage.strides, statement.expr.spatial, strict=True)
        near = [name for stride, name in strides if stride == 1 and name in sizes]
        return split_straddling(statement, max(near, key=sizes.__getitem__), scope.ranges) if near else None

    def in_pieces(self, statement: ComputeTile, iterator: str, width: int, scope: Scope) -> For:
        """A tile as a loop over pieces of some width along an iterator."""
        variable = f"@{iterator}"
        size = next(constant_value(simplify(Binary("-", hi, lo))) for name, lo, hi in statement.box if name == iterator)
        assert size is not None
        box = []
        for name, lo, hi in statement.box:
            if name == iterator:
                lo = Binary("+", lo, Binary("*", Var(variable), Const(width)))
                hi = Binary("+", lo, Const(width))
            box.append((name, lo, hi))
        inside = scope.with_loop(variable, Interval(0, size // width - 1))
        steps = self.compute(replace(statement, box=tuple(box)), inside)
        return For(variable, Const(0), Const(size // width), tuple(steps))


def _present(tile: Tile | None) -> list[Step]:
    return [] if tile is None else [tile]


def _operand(window: BufferWindow) -> Operand:
    return Operand(window.storage, window.lo, window.hi)


def _largest(scope: Scope, a: Sequence[Expr], b: Sequence[Expr]) -> tuple[Expr, ...]:
    return tuple(scope.expr(Call("maximum", pair)) for pair in zip(a, b, strict=True))


def _smallest(scope: Scope, a: Sequence[Expr], b: Sequence[Expr]) -> tuple[Expr, ...]:
    return tuple(scope.expr(Call("minimum", pair)) for pair in zip(a, b, strict=True))


def _shapes(program: Program) -> dict[str, tuple[Expr, ...]]:
    """Tensor -> shape, from the parameters and from the expressions that define the others."""
    found: dict[str, tuple[Expr, ...]] = {}

    def visit(body: Sequence[Statement]) -> None:
        for statement in body:
            if isinstance(statement, ComputeTile):
                found[statement.expr.tensor] = tuple(map(simplify, statement.expr.shape))
            elif isinstance(statement, Loop):
                visit(statement.body)

    visit(program.body)
    return found | {p.tensor: tuple(map(simplify, p.hi)) for p in program.parameters}


def _place(parameter: Buffer, live: Mapping[str, BufferWindow]) -> Place | None:
    """The place of a parameter, its accesses by memories and flat offsets."""
    if parameter.place is None:
        return None

    def flat(expr: Expr) -> Expr:
        made = rebuild(expr, flat)
        if not isinstance(made, Access):
            return made
        storage = live[made.tensor].storage
        return Access(storage.memory, (simplify(storage.offset(made.index)),))

    return replace(parameter.place, index=tuple(map(flat, parameter.place.index)))


def assign_storage(program: Program, target: CpuTarget, sizes: OpenSizes = NO_OPEN_SIZES) -> KernelIR:
    """The kernel IR of a program; arrays have no places yet, and those that may become registers are local.

    Raises UnsupportedError for working memory that depends on more than symbols and units without code.
    """
    resolver = _Resolver(program, target, sizes, _shapes(program))
    operands: list[Array] = []
    live: dict[str, BufferWindow] = {}
    for parameter in program.parameters:
        within = parameter.shape if parameter.place is None else parameter.place.shape
        shape = tuple(extent_of(simplify(n)) for n in within)
        operands.append(Array(parameter.name, parameter.ttype, product(shape), "operand"))
        lo, hi = tuple(map(simplify, parameter.lo)), tuple(map(simplify, parameter.hi))
        storage = Storage(
            parameter.name, parameter.ttype, lo, strides_of(shape, parameter.layout), _place(parameter, live)
        )
        live[parameter.name] = BufferWindow(parameter, lo, hi, storage, frozenset({parameter.name}))
    nests = tuple(resolver.nest(part, Scope(sizes.known, {}, live)) for part in task_loops(program))
    lives = resolver.lives.values()
    arrays = (replace(life.memory, life=(life.first, life.last)) for life in lives)
    return KernelIR(program.name, (*operands, *arrays), nests, 0, symbols=tuple(sizes.ranges))
