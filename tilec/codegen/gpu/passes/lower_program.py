"""A tile program as a kernel without decisions: the loops over blocks and over units, and one step for a statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilec.codegen.gpu.index_facts import is_data_dependent
from tilec.codegen.gpu.kernel_ir import (
    Arrival,
    Barrier,
    Copy,
    Declare,
    Fill,
    For,
    KernelIR,
    Spread,
    Step,
    Tile,
    Units,
    Wait,
    iterations,
)
from tilec.errors import UnsupportedError
from tilec.ir import program as of
from tilec.ir.expr import Access, Expr, TensorExpr, accesses, rebuild, variables
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.lifetimes import is_asynchronous, statements
from tilec.ir.program import Allocate, Buffer, ComputeTile, LoadTiles, Loop, Program, Statement, StoreTiles
from tilec.ir.scopes import scope_of
from tilec.ir.storage import position
from tilec.ir.types import TTYPES


def lower_program(program: Program) -> KernelIR:
    """The kernel of a tile program. Raises UnsupportedError for what has no GPU code."""
    _check_levels(program)
    _check_types(program)
    nest, body = _grid(program)
    parameters = tuple(_placed(parameter, program) for parameter in program.parameters)
    lowering = _Lowering(program, {parameter.name: parameter for parameter in parameters})
    return KernelIR(
        program.name,
        program.levels,
        program.symbols,
        parameters,
        program.outputs,
        tuple(_spread(loop) for loop in nest),
        lowering.steps(body, frozenset(), serial=False),
        _shapes(program),
    )


def _check_levels(program: Program) -> None:
    names = [level.name for level in program.levels]
    if len(names) != 3:
        raise UnsupportedError(
            f"GPU code is for memory of the device, of a block and of a unit, not for the levels {', '.join(names)}",
            hint="Leave other levels out of the plan.",
        )


def _grid(program: Program) -> tuple[list[Loop], tuple[Statement, ...]]:
    """The loops over blocks and what a block does."""
    scope = scope_of(program.levels[1])
    nest: list[Loop] = []
    body = program.body
    while len(body) == 1 and isinstance(body[0], Loop) and body[0].kind == "spread" and body[0].scope == scope:
        nest.append(body[0])
        body = body[0].body
    if any(isinstance(each, Loop) and each.kind == "spread" and each.scope == scope for each in statements(body)):
        raise UnsupportedError(f"kernel {program.name} has several grids of blocks", hint="Plan its parts apart.")
    return nest, body


def _placed(parameter: Buffer, program: Program) -> Buffer:
    """A parameter whose place, if it has one, reads positions in memory."""
    if parameter.place is None:
        return parameter
    given = {each.tensor: each for each in program.parameters}

    def flat(expr: Expr) -> Expr:
        made = rebuild(expr, flat)
        if not isinstance(made, Access):
            return made
        return Access(given[made.tensor].name, (position(given[made.tensor], made.index, KnownRanges()),))

    return replace(parameter, place=replace(parameter.place, index=tuple(map(flat, parameter.place.index))))


def _shapes(program: Program) -> dict[str, tuple[Expr, ...]]:
    """The shapes of tensors, of one that no tile and no caller has as large as the first buffer of it."""
    shapes = {parameter.tensor: parameter.shape for parameter in program.parameters}
    inside = list(statements(program.body))
    for each in inside:
        if isinstance(each, ComputeTile):
            shapes.setdefault(each.expr.tensor, each.expr.shape)
    for each in inside:
        if isinstance(each, Allocate):
            shapes.setdefault(each.buffer.tensor, each.buffer.shape)
    return shapes


def _spread(loop: Loop) -> Spread:
    return Spread(loop.variable, loop.extent, loop.stripe)


@dataclass
class _Lowering:
    """`buffers` that statements name."""

    program: Program
    buffers: dict[str, Buffer] = field(default_factory=dict)

    def steps(self, body: Sequence[Statement], around: frozenset[str], *, serial: bool) -> tuple[Step, ...]:
        """The steps of statements inside units that are iterations of the loops `around`; `serial` in the body of a
        serial loop, where loads may begin in an earlier iteration."""
        return tuple(step for each in body for step in self._step(each, around, serial))

    def _step(self, statement: Statement, around: frozenset[str], serial: bool) -> Sequence[Step]:
        named = self.buffers
        match statement:
            case Allocate(buffer):
                return self._allocate(buffer)
            case of.Barrier():
                return [Barrier()]
            case Loop(kind="spread"):
                return [self._units(statement, around)]
            case Loop(variable, extent, body):
                return [For(variable, extent, self.steps(body, around, serial=True))]
            case of.Wait(names):
                return [Wait(max(named[name].copies for name in names) - 2)]
            case of.Fill(name, value):
                return [Fill(named[name], value)]
            case LoadTiles(name, source, value):
                target = named[name]
                self._check_move(named[source])
                arrival: Arrival = "later" if serial and is_asynchronous(statement) else "now"
                return [Copy(target, named[source], target.lo, target.hi, True, value, arrival)]
            case StoreTiles(name, source, lo, hi, "none"):
                held = named[source]
                self._check_move(named[name])
                return [Copy(held, named[name], lo or held.lo, hi or held.hi, False)]
            case StoreTiles(name):
                raise UnsupportedError(f"units that combine {name} in memory have no GPU code", hint="Let one reduce.")
            case ComputeTile(expr, box, name, operands, accumulate, unit):
                read = tuple((tensor, named[each]) for tensor, each in operands)
                _check_gathers(expr, dict(read))
                return [Tile(expr, box, named[name], read, accumulate, unit)]
        raise AssertionError(statement)

    def _check_move(self, lower: Buffer) -> None:
        if lower.level == self.program.levels[-1].name:
            raise UnsupportedError("copies between registers have no GPU code", hint="Load from memory instead.")

    def _allocate(self, buffer: Buffer) -> list[Step]:
        self.buffers[buffer.name] = buffer
        lowest, _, top = (level.name for level in self.program.levels)
        if buffer.level == lowest:
            raise UnsupportedError(
                f"kernel {self.program.name} allocates memory of the device", hint="Plan its parts apart."
            )
        return [Declare(buffer)] if buffer.level == top or buffer.offset is not None else []

    def _units(self, loop: Loop, around: frozenset[str]) -> Units:
        """A nest of loops over units. One inside another computes the same for all iterations around it, so that all
        units share it."""
        if around & _free_variables((loop,)):
            raise UnsupportedError(
                f"kernel {self.program.name} nests spread loops that depend on one another", hint="Use other tiles."
            )
        nest = [loop]
        while len(nest[-1].body) == 1 and isinstance(nest[-1].body[0], Loop) and nest[-1].body[0].kind == "spread":
            nest.append(nest[-1].body[0])
        own = around | {each.variable for each in nest}
        body = self.steps(nest[-1].body, own, serial=False)
        return Units(tuple(map(_spread, nest)), body, iterations([each.extent for each in nest]))


def _check_types(program: Program) -> None:
    inside = (s.buffer for s in statements(program.body) if isinstance(s, Allocate))
    coded = next((each.ttype for each in (*program.parameters, *inside) if TTYPES[each.ttype].coded), None)
    if coded is not None:
        raise UnsupportedError(f"GPU code holds no elements of type {coded}", hint="Decode them in the graph.")


def _check_gathers(expr: TensorExpr, read: Mapping[str, Buffer]) -> None:
    for access in accesses(expr.value):
        buffer = read[access.tensor]
        if buffer.swizzle and any(map(is_data_dependent, access.index)):
            raise UnsupportedError(
                f"data index {buffer.tensor}, whose rows at {buffer.level} are swizzled",
                hint="Leave its swizzle out of the plan.",
            )


def _free_variables(body: Sequence[Statement]) -> frozenset[str]:
    """The variables that statements and their buffers depend on, but not their own loops'."""
    found: set[str] = set()
    for statement in body:
        match statement:
            case Allocate(buffer):
                found |= _mentioned((*buffer.lo, *buffer.hi, *buffer.shape))
            case StoreTiles(_, _, lo, hi):
                found |= _mentioned((*lo, *hi))
            case ComputeTile(expr, box):
                found |= _mentioned([end for _, lo, hi in box for end in (lo, hi)])
                found |= _mentioned((expr.body,)) - set(expr.iterators)
            case Loop(variable, extent, inside):
                found |= _mentioned((extent,)) | (_free_variables(inside) - {variable})
    return frozenset(found)


def _mentioned(exprs: Sequence[Expr]) -> set[str]:
    return {name for each in exprs for name in variables(each)}
