"""What the printer of a kernel knows: its program, names, buffers by level, lane maps, and the text so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

from tilec.codegen.gpu.c_text import Lines, Names, storage_type
from tilec.codegen.gpu.index_text import index_text, unwrapped
from tilec.codegen.gpu.lanes import LaneMap, LaneMaps, idle_lanes
from tilec.codegen.gpu.scalar_text import FAST
from tilec.errors import UnsupportedError
from tilec.ir.address_spaces import address_spaces, place_bytes
from tilec.ir.algebra import bounds_of, linear_form, simplify
from tilec.ir.expr import Binary, Const, Expr, Var, constant_value
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.program import Buffer, Loop, Program
from tilec.ir.storage import position, stored_shape, swizzle_period
from tilec.ir.types import HALVES, TTYPES

LANE, UNIT, THREAD = Var("#lane"), Var("#unit"), Var("#tid")
"""The lane within its unit, the unit and the thread within the block."""

WIDE = 1 << 31
"""Elements from which on indices take 64 bits."""


@dataclass
class KernelState:
    """`threads` of a block are units of `lanes`. `active` is the condition under which a unit has work while all
    threads go on together; `copies` says which copy of a buffer that has several is used; `spread` are the
    iterators that differ between units, `nest` the loops over them, `functions` what the text calls beyond tile.h,
    by name; `meanwhile` prints what begins while the next products are in flight. `pipelined` inside a loop that counts
    its asynchronous copies; `arriving` where copies that nothing waits for yet are on their way. Ranges of variables
    go with the statements, since text below them knows more."""

    program: Program
    maps: LaneMaps
    lanes: int
    threads: int
    names: Names = field(default_factory=Names)
    lines: Lines = field(default_factory=lambda: Lines(1))
    buffers: dict[str, Buffer] = field(default_factory=dict)
    shapes: dict[str, tuple[Expr, ...]] = field(default_factory=dict)
    copies: dict[str, Expr] = field(default_factory=dict)
    active: str = ""
    spread: frozenset[str] = frozenset()
    nest: tuple[Loop, ...] = ()
    functions: dict[str, str] = field(default_factory=dict)
    meanwhile: Callable[[], None] | None = None
    pipelined: bool = False
    arriving: bool = False

    def __post_init__(self) -> None:
        self.names.assign({LANE.name: "lane", UNIT.name: "unit", THREAD.name: "tid"})

    @property
    def top(self) -> str:
        """The level of registers."""
        return self.program.levels[-1].name

    @property
    def lowest(self) -> str:
        """The level of the parameters."""
        return self.program.levels[0].name

    def in_registers(self, buffer: Buffer) -> bool:
        """Whether a buffer is private to a unit."""
        return buffer.level == self.top

    @cached_property
    def fast(self) -> frozenset[str]:
        """Functions that need not be as exact as f32 is: those of a kernel that reads and writes halves alone."""
        floats = {p.ttype for p in self.program.parameters if TTYPES[p.ttype].kind == "float"}
        return FAST if floats <= HALVES else frozenset()

    def text(self, expr: Expr, ranges: KnownRanges, wide: bool = False) -> str:
        """A simplified integer expression as C++."""
        return unwrapped(index_text(simplify(expr, ranges), self.names, ranges, wide))

    def condition(self, parts: Sequence[Expr], ranges: KnownRanges) -> str:
        """A conjunction as C++; empty when it has no parts."""
        return " && ".join(index_text(part, self.names, ranges) for part in parts)

    def flat(self, buffer: Buffer, index: Sequence[Expr], ranges: KnownRanges) -> Expr:
        """The position of an element in the storage of a buffer in memory; where rows are swizzled before pieces are
        permuted, which leaves the elements of a piece together."""
        return position(buffer, index, ranges)

    def address(self, buffer: Buffer, index: Sequence[Expr], ranges: KnownRanges) -> str:
        """A pointer to an element of a buffer in memory."""
        at = self.flat(buffer, index, ranges)
        name = self.names[buffer.name]
        if at == Const(0):
            return name
        if not buffer.swizzle:
            return f"{name} + {self.text(at, ranges, is_wide(buffer))}"
        around, within = apart(at, swizzle_period(buffer), ranges)
        periods, text = (index_text(each, self.names, ranges, is_wide(buffer)) for each in (around, within))
        parts = [name] if around == Const(0) else [name, periods]
        if within != Const(0):
            size = TTYPES[buffer.ttype].bits // 8
            parts.append(f"t_swizzled({unwrapped(text)}, {buffer.swizzle}, {size})")
        return " + ".join(parts)

    def memory(self, verb: str, buffer: Buffer, vector: int = 1) -> str:
        """The primitive of tile.h that loads (`LD`) or stores (`ST`) so many elements of a buffer."""
        return f"{verb}{'G' if buffer.level == self.lowest else 'S'}{vector if vector > 1 else ''}"

    def array_shape(self, buffer: Buffer) -> tuple[int, ...]:
        """The extents of a register buffer in one lane."""
        return array_shape(self.maps, buffer)

    def owner(self, lanes: LaneMap) -> str:
        """The condition for one of the lanes that have the same, to store it; empty where each has its own."""
        idle = idle_lanes(lanes, self.lanes)
        if not idle:
            return ""
        return "lane == 0" if idle == self.lanes - 1 else f"(lane & {idle}) == 0"

    @contextmanager
    def nested(self, heads: Sequence[str]) -> Iterator[None]:
        """Blocks inside one another; a head may bring a pragma in front of it."""
        with ExitStack() as stack:
            for head in heads:
                *pragmas, last = head.split("\n")
                for pragma in pragmas:
                    self.lines.add(pragma)
                stack.enter_context(self.lines.block(last))
            yield


def array_shape(maps: LaneMaps, buffer: Buffer) -> tuple[int, ...]:
    """The extents of a register buffer in one lane."""
    shape = [upper(extent, buffer) for extent in buffer.shape]
    for held in maps.buffers[buffer.name]:
        assert isinstance(held.along, int)
        shape[held.along] = -(-shape[held.along] // (held.count * held.vector)) * held.vector
    return tuple(shape)


def apart(at: Expr, period: int, ranges: KnownRanges) -> tuple[Expr, Expr]:
    """A position as the sum of whole periods, term by term, and the rest."""
    terms, constant = linear_form(simplify(at, ranges))
    around: Expr = Const(constant // period * period)
    within: Expr = Const(constant % period)
    for atom, step in terms.items():
        term = Binary("*", atom, Const(step))
        if step % period:
            within = Binary("+", within, term)
        else:
            around = Binary("+", around, term)
    return simplify(around, ranges), simplify(within, ranges)


def upper(extent: Expr, buffer: Buffer) -> int:
    """The constant extent of a register buffer. Raises UnsupportedError for one that varies."""
    value = constant_value(extent)
    value = bounds_of(extent)[1] if value is None else value
    if value is None:
        raise UnsupportedError(
            f"buffer {buffer.name} lies in registers and has no constant size", hint="Plan for fixed sizes."
        )
    return value


def is_wide(buffer: Buffer) -> bool:
    """Whether positions in a buffer may exceed 32 bits."""
    extents = [constant_value(extent) for extent in stored_shape(buffer)]
    return None in extents or prod(n for n in extents if n is not None) >= WIDE


def with_ranges(ranges: KnownRanges, more: Mapping[str, Expr | int]) -> KnownRanges:
    """The ranges with variables that count up to an extent."""
    added = {name: (Const(0), simplify(Binary("-", _expr(n), Const(1)))) for name, n in more.items()}
    return KnownRanges({**ranges, **added})


def _expr(extent: Expr | int) -> Expr:
    return Const(extent) if isinstance(extent, int) else extent


def shared_pointer(state: KernelState, buffer: Buffer, which: Expr, ranges: KnownRanges) -> str:
    """The declaration of a pointer to one of the copies of a buffer in shared memory."""
    assert buffer.offset is not None
    level = next(level for level in state.program.levels if level.name == buffer.level)
    space = address_spaces(state.program.levels)[buffer.level]
    each = place_bytes(replace(buffer, copies=1), space, level, Const(1))
    at = state.text(Binary("+", buffer.offset, Binary("*", which, each)), ranges)
    kind = storage_type(buffer.ttype)
    return f"{kind}* const {state.names[buffer.name]} = ({kind}*)(smem + {at});"


def declaration(state: KernelState, buffer: Buffer) -> str:
    """The declaration of a register buffer."""
    size = max(1, prod(state.array_shape(buffer)))
    return f"{storage_type(buffer.ttype)} {state.names[buffer.name]}[{size}];"
