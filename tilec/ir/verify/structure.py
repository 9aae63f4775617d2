"""Structural verifier of tile programs, independent of sizes: names, levels, units, operands, types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tilec.ir.algebra import simplify
from tilec.ir.expr import (
    COMPARISONS,
    Binary,
    Call,
    Const,
    Expr,
    Reduce,
    Var,
    accesses,
    constant_value,
    operands,
    variables,
    walk,
)
from tilec.ir.lifetimes import is_asynchronous, reads, statements, writes
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
from tilec.ir.scalars import fits, type_of
from tilec.ir.scopes import scope_ranks
from tilec.ir.storage import SWIZZLES, panel_width, row_dimension
from tilec.ir.text import text_of
from tilec.ir.types import TTYPES, is_float

_INTEGER = frozenset({"+", "-", "*", "//", "%", "and", "or", *COMPARISONS})


def is_integer(expr: Expr) -> bool:
    """Whether an expression is made of variables, integers and operations of `tilec.ir.evaluate.integer`."""
    match expr:
        case Var():
            return True
        case Const(value):
            return isinstance(value, int)
        case Binary("//" | "%", left, Const(value)):
            return value != 0 and is_integer(left) and is_integer(Const(value))
        case Binary(op, left, right):
            return op in _INTEGER and is_integer(left) and is_integer(right)
        case Call("minimum" | "maximum", (left, right)):
            return is_integer(left) and is_integer(right)
        case Call("where", (condition, yes, no)):
            return is_integer(condition) and is_integer(yes) and is_integer(no)
        case Call("neg" | "not", (operand,)):
            return is_integer(operand)
    return False


@dataclass(slots=True)
class _Position:
    """Position of a statement: the loops around it, and the buffers in scope with the loops around their allocation."""

    loops: tuple[Loop, ...]
    buffers: dict[str, tuple[Buffer, tuple[Loop, ...]]]


@dataclass(slots=True)
class Structure:
    """Structural check of one program; `problems` collects (statement, problem)."""

    program: Program
    ranks: Mapping[str, int]
    levels: dict[str, int] = field(init=False)
    scopes: dict[str, int] = field(init=False)
    known: set[str] = field(init=False)
    reducers: dict[str, set[str]] = field(init=False)
    taken: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.levels = {level.name: i for i, level in enumerate(self.program.levels)}
        self.known = {p.tensor for p in self.program.parameters if p.name not in self.program.outputs}
        self.known |= {s.expr.tensor for s in statements(self.program.body) if isinstance(s, ComputeTile)}
        self.reducers = {}
        for s in statements(self.program.body):
            if isinstance(s, ComputeTile) and s.expr.reducer is not None:
                self.reducers.setdefault(s.expr.tensor, set()).add(s.expr.reducer)
        self.scopes = scope_ranks(self.program.levels)

    def check(self) -> list[str]:
        """All problems, in the order of the program."""
        program = self.program
        if not program.levels:
            return ["the program has no levels"]
        if len(self.levels) != len(program.levels):
            self.problems.append("two levels have one name")
        self.taken |= set(program.symbols)
        visible: dict[str, tuple[Buffer, tuple[Loop, ...]]] = {}
        for parameter in program.parameters:
            place = f"parameter {parameter.name}"
            self._name(place, parameter.name)
            self._buffer(place, parameter, ())
            if parameter.level != program.levels[0].name:
                self._say(place, f"is at {parameter.level}, parameters are at {program.levels[0].name}")
            elif parameter.offset is not None:
                self._say(place, "has an offset, but the caller passes its address")
            elif any(lo != Const(0) for lo in parameter.lo) or parameter.hi != parameter.shape:
                self._say(place, "is not its whole tensor")
            visible[parameter.name] = (parameter, ())
        for name in program.outputs:
            if name not in visible:
                self._say(f"output {name}", "is no parameter")
        self._body(program.body, _Position((), visible))
        return list(dict.fromkeys(self.problems))

    def _say(self, place: str | Statement, problem: str) -> None:
        where = place if isinstance(place, str) else statement_text(place)
        self.problems.append(f"{where}: {problem}")

    def _name(self, place: str | Statement, name: str) -> None:
        if name in self.taken:
            self._say(place, f"the name {name} is bound twice")
        self.taken.add(name)

    def _body(self, body: tuple[Statement, ...], position: _Position) -> None:
        inner = _Position(position.loops, dict(position.buffers))
        self._waits(body, position.loops)
        for statement in body:
            match statement:
                case Loop():
                    self._loop(statement, inner)
                case Barrier(scope):
                    if scope not in self.scopes:
                        self._say(statement, f"no level has the scope {scope}")
                case Allocate(buffer):
                    self._name(statement, buffer.name)
                    self._buffer(statement, buffer, inner.loops)
                    inner.buffers[buffer.name] = (buffer, inner.loops)
                case _ if self._visible(statement, inner):
                    self._statement(statement, inner)

    def _waits(self, body: tuple[Statement, ...], loops: tuple[Loop, ...]) -> None:
        """Asynchronous loads stand in a serial loop, read what nobody writes, have one number of stages, as many copies
        as that, and are waited for once."""
        coming: dict[str, LoadTiles] = {}
        inputs = {p.name for p in self.program.parameters} - set(self.program.outputs)
        copies = {s.buffer.name: s.buffer.copies for s in body if isinstance(s, Allocate)}
        for statement in body:
            match statement:
                case LoadTiles(target, source, _, stages) if is_asynchronous(statement):
                    if not loops or loops[-1].kind != "serial":
                        self._say(statement, "is asynchronous, but stands in no serial loop")
                    if source not in inputs:
                        self._say(statement, f"is asynchronous, but {source} is no input")
                    if copies.get(target) != stages:
                        self._say(statement, f"{target} has {copies.get(target, 'no')} copies in this loop")
                    if any(other.stages != stages for other in coming.values()):
                        self._say(statement, "loads of one loop have several numbers of stages")
                    coming[target] = statement
                case Wait(names):
                    for name in names:
                        if coming.pop(name, None) is None:
                            self._say(statement, f"no asynchronous load of {name} stands in front of it")
        for statement in coming.values():
            self._say(statement, "is asynchronous, and nothing waits for it")

    def _loop(self, loop: Loop, position: _Position) -> None:
        self._name(loop, loop.variable)
        self._integers(loop, (loop.extent,), position.loops)
        if loop.kind not in ("serial", "spread"):
            self._say(loop, f"runs {loop.kind}, neither serial nor spread")
        if loop.stripe < 1 or (loop.stripe > 1 and loop.kind != "spread"):
            self._say(loop, f"has a stripe of {loop.stripe}: spread loops have one of 1 or more, others none")
        if loop.kind == "spread" and loop.scope not in self.scopes:
            self._say(loop, f"no level has the scope {loop.scope}")
            return
        self._body(loop.body, _Position((*position.loops, loop), position.buffers))

    def _integers(self, place: str | Statement, exprs: Iterable[Expr], loops: tuple[Loop, ...]) -> bool:
        known = set(self.program.symbols) | {loop.variable for loop in loops}
        sound = True
        for expr in exprs:
            unknown = sorted(variables(expr) - known)
            if unknown:
                self._say(place, f"{unknown[0]} is not bound here")
            elif not is_integer(expr):
                self._say(place, "a size or an index is no integer expression")
            sound = sound and not unknown and is_integer(expr)
        return sound

    def _buffer(self, place: str | Statement, b: Buffer, loops: tuple[Loop, ...]) -> None:
        rank = self.ranks.get(b.tensor, len(b.shape))
        if not len(b.lo) == len(b.hi) == len(b.shape) == rank:
            self._say(place, f"{b.tensor} has {rank} dimensions, the window {len(b.lo)}, {len(b.hi)}, {len(b.shape)}")
        if b.tensor not in self.known:
            self._say(place, f"nothing computes {b.tensor}")
        if b.ttype not in TTYPES:
            self._say(place, f"unknown tType {b.ttype}")
        if b.layout and sorted(b.layout) != list(range(rank)):
            self._say(place, f"layout {list(b.layout)} is no order of {rank} dimensions")
        if b.pad < 0:
            self._say(place, f"padding of {b.pad} elements")
        if b.swizzle and b.ttype in TTYPES:
            self._swizzle(place, b)
        if b.copies < 1:
            self._say(place, f"{b.copies} copies")
        self._integers(place, b.shape if b.offset is None else (*b.shape, b.offset), ())
        self._integers(place, (*b.lo, *b.hi), loops)
        if b.level not in self.levels:
            self._say(place, f"unknown level {b.level}")
            return
        self._collective(place, b.level, (*b.lo, *b.hi), loops)

    def _swizzle(self, place: str | Statement, b: Buffer) -> None:
        if b.swizzle not in SWIZZLES:
            self._say(place, f"swizzle of {b.swizzle} bytes, not of {', '.join(map(str, sorted(SWIZZLES)))}")
            return
        row = b.shape[row_dimension(b)] if b.shape else Const(1)
        bits = TTYPES[b.ttype].bits
        if bits % 8 or constant_value(simplify(Binary("%", row, Const(panel_width(b))))) != 0:
            self._say(place, f"rows of {text_of(row)} elements are no whole panels of {b.swizzle} bytes")
        if b.pad:
            self._say(place, "swizzled rows have no padding")

    def _units(self, loops: tuple[Loop, ...], above: int) -> Iterator[Loop]:
        """Spread loops over units of levels higher than `above`."""
        return (loop for loop in loops if loop.kind == "spread" and self.scopes.get(loop.scope, -1) > above)

    def _collective(self, place: str | Statement, level: str, exprs: Iterable[Expr], loops: tuple[Loop, ...]) -> None:
        used = frozenset[str]().union(*(variables(e) for e in exprs))
        for loop in self._units(loops, self.levels[level]):
            if loop.variable in used:
                self._say(place, f"{level} is shared by the units of {loop.scope}, but {loop.variable} is one unit's")

    def _visible(self, statement: Statement, position: _Position) -> bool:
        sound = True
        for name in dict.fromkeys((*reads(statement), *writes(statement))):
            if name not in position.buffers:
                self._say(statement, f"{name} is not allocated here")
                sound = False
                continue
            buffer, around = position.buffers[name]
            level = self.levels.get(buffer.level)
            if level is None:
                return False
            for loop in position.loops[len(around) :]:
                if loop.kind == "spread" and self.scopes.get(loop.scope, level + 1) <= level:
                    self._say(statement, f"{name} at {buffer.level} is allocated outside the loop over {loop.scope}")
                    sound = False
        return sound

    def _statement(self, statement: Statement, position: _Position) -> None:
        inputs = {p.name for p in self.program.parameters} - set(self.program.outputs)
        for name in writes(statement):
            if name in inputs:
                self._say(statement, f"{name} is an input")
        match statement:
            case Fill(name, value):
                self._literal(statement, value, position.buffers[name][0])
            case LoadTiles(target, source, fill, stages):
                to, from_ = position.buffers[target][0], position.buffers[source][0]
                self._transfer(statement, lower=from_, upper=to)
                if fill is not None:
                    self._literal(statement, fill, to)
                if stages < 1:
                    self._say(statement, f"{stages} stages")
            case StoreTiles(target, source, lo, hi, combine):
                to, from_ = position.buffers[target][0], position.buffers[source][0]
                if combine not in ("none", *self.reducers.get(from_.tensor, ())):
                    self._say(statement, f"{from_.tensor} is not summed up by {combine}")
                self._transfer(statement, lower=to, upper=from_)
                if len(lo) != len(hi) or len(lo) not in (0, len(from_.lo)):
                    self._say(statement, f"{source} has {len(from_.lo)} dimensions, not {len(lo)} and {len(hi)}")
                self._integers(statement, (*lo, *hi), position.loops)
                self._collective(statement, from_.level, (*lo, *hi), position.loops)
            case ComputeTile():
                self._compute(statement, position)

    def _literal(self, statement: Statement, value: bool | int | float, buffer: Buffer) -> None:
        if buffer.ttype in TTYPES and not fits(f"weak {type(value).__name__}", buffer.ttype):
            self._say(statement, f"{value!r} is no {buffer.ttype}")

    def _transfer(self, statement: Statement, lower: Buffer, upper: Buffer) -> None:
        if lower.tensor != upper.tensor:
            self._say(statement, f"{lower.name} holds {lower.tensor}, {upper.name} {upper.tensor}")
        if self.levels[lower.level] >= self.levels[upper.level]:
            self._say(statement, f"{lower.level} is not below {upper.level}")
        if not _converts(lower.ttype, upper.ttype):
            self._say(statement, f"{lower.ttype} meets {upper.ttype}")

    def _compute(self, statement: ComputeTile, position: _Position) -> None:
        expr, target = statement.expr, position.buffers[statement.target][0]
        names = [i for i, _, _ in statement.box]
        if sorted(names) != sorted(expr.iterators):
            self._say(statement, f"the box has the iterators {names}, the expression {list(expr.iterators)}")
        ends = [end for _, lo, hi in statement.box for end in (lo, hi)]
        self._integers(statement, ends, position.loops)
        self._collective(statement, target.level, ends, position.loops)
        self._integers(statement, expr.extents, ())
        if target.tensor != expr.tensor or len(target.lo) != len(expr.spatial):
            self._say(statement, f"{target.name} holds {target.tensor}, the tile is one of {expr.tensor}")
        if statement.accumulate and expr.reducer is None:
            self._say(statement, "accumulates without a reduction")
        unknown = sorted(variables(expr.value) - set(expr.iterators) - set(self.program.symbols))
        if unknown:
            self._say(statement, f"unknown iterator {unknown[0]}")
        if any(isinstance(e, Reduce) for e in walk(expr.value)):
            self._say(statement, "a reduction stands below the root")
        if sorted(t for t, _ in statement.operands) != sorted(operands(expr)):
            self._say(statement, f"its operands are not those of the expression, {', '.join(operands(expr))}")
            return
        self._reads(statement, target, {t: position.buffers[b][0] for t, b in statement.operands}, position)

    def _reads(self, statement: ComputeTile, target: Buffer, from_: Mapping[str, Buffer], position: _Position) -> None:
        expr = statement.expr
        identity = tuple(Var(i) for i in expr.spatial)
        for access in accesses(expr):
            buffer = from_[access.tensor]
            if buffer.tensor != access.tensor or len(buffer.lo) != len(access.index):
                self._say(statement, f"{buffer.name} holds {buffer.tensor}, not {text_of(access)}")
            if buffer.name == target.name and (access.index != identity or expr.reducer is not None):
                self._say(statement, f"reads other elements of {target.name} than the one it writes")
        for buffer in from_.values():
            for loop in self._units(position.loops, self.levels[target.level]):
                if self.levels[buffer.level] >= self.scopes[loop.scope]:
                    self._say(statement, f"{target.level} is shared by the units of {loop.scope}, {buffer.name} is not")
        self._types(statement, target, {t: b.ttype for t, b in from_.items()})

    def _types(self, statement: ComputeTile, target: Buffer, types: Mapping[str, str]) -> None:
        if not all(t in TTYPES for t in (target.ttype, *types.values())):
            return
        try:
            kind = type_of(statement.expr.body, types)
        except (TypeError, KeyError, AssertionError) as error:
            self._say(statement, str(error))
            return
        if not fits(kind, target.ttype) and not (kind in TTYPES and _converts(kind, target.ttype)):
            self._say(statement, f"a body of type {kind} is held as {target.ttype}")


def _converts(a: str, b: str) -> bool:
    """Whether a copy or an accumulator may convert between two types: equal, or both floating-point."""
    return a == b or (a in TTYPES and b in TTYPES and is_float(a) and is_float(b))
