"""What the printer of a kernel knows: the kernel, the names of its variables, and the text so far."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from math import prod

from tilec.codegen.gpu.index_facts import is_data_dependent
from tilec.codegen.gpu.kernel_ir import Declare, KernelIR
from tilec.codegen.gpu.kernel_names import LANE, THREAD, UNIT
from tilec.codegen.gpu.lanes import LaneMap, array_shape, idle_lanes
from tilec.codegen.gpu.print.c_text import Lines, Names, storage_type
from tilec.codegen.gpu.print.index_text import index_text, unwrapped
from tilec.ir.address_spaces import address_spaces, place_bytes
from tilec.ir.algebra import linear_form, simplify
from tilec.ir.expr import Binary, Const, Expr, constant_value
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.program import Buffer
from tilec.ir.storage import position, stored_shape, swizzle_period
from tilec.ir.types import TTYPES

WIDE = 1 << 31
"""Elements from which on indices take 64 bits."""


@dataclass
class KernelState:
    """`functions` are what the text calls beyond tile.h, by name. Ranges of variables go with the steps, since text
    below them knows more."""

    kernel: KernelIR
    names: Names = field(default_factory=Names)
    lines: Lines = field(default_factory=lambda: Lines(1))
    functions: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names.assign({LANE.name: "lane", UNIT.name: "unit", THREAD.name: "tid"})

    @property
    def lanes(self) -> int:
        """Lanes of a unit."""
        return self.kernel.launched.lanes

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.kernel.launched.threads

    def in_registers(self, buffer: Buffer) -> bool:
        """Whether a buffer is private to a unit."""
        return self.kernel.is_private(buffer)

    def held(self, buffer: Buffer) -> LaneMap:
        """How lanes hold a buffer in registers."""
        return self.kernel.held[buffer.name]

    def text(self, expr: Expr, ranges: KnownRanges, wide: bool = False) -> str:
        """A simplified integer expression as C++."""
        return unwrapped(index_text(simplify(expr, ranges), self.names, ranges, wide))

    def condition(self, parts: Sequence[Expr], ranges: KnownRanges) -> str:
        """A conjunction as C++; empty when it has no parts."""
        return " && ".join(index_text(part, self.names, ranges) for part in parts)

    def when(self, parts: Sequence[Expr], ranges: KnownRanges) -> list[str]:
        """The head of a block for where conditions hold; none where they always do."""
        return [f"if ({self.condition(parts, ranges)})"] if parts else []

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
        return f"{verb}{'G' if self.kernel.is_global(buffer) else 'S'}{vector if vector > 1 else ''}"

    def array_shape(self, buffer: Buffer) -> tuple[int, ...]:
        """The extents of a register buffer in one lane."""
        return array_shape(self.held(buffer), buffer)

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


def is_wide(buffer: Buffer) -> bool:
    """Whether positions in a buffer may exceed 32 bits, as data that decide them may."""
    if buffer.place is not None and any(map(is_data_dependent, buffer.place.index)):
        return True
    extents = [constant_value(extent) for extent in stored_shape(buffer)]
    return None in extents or prod(n for n in extents if n is not None) >= WIDE


def declaration(state: KernelState, step: Declare, ranges: KnownRanges) -> str:
    """The declaration of an array: registers of each lane, or a pointer to one of the copies in shared memory."""
    buffer, kind, name = step.buffer, storage_type(step.buffer.ttype), state.names.bind(step.buffer.name)
    if state.in_registers(buffer):
        return f"{kind} {name}[{max(1, prod(state.array_shape(buffer)))}];"
    assert buffer.offset is not None
    levels = state.kernel.levels
    level = next(level for level in levels if level.name == buffer.level)
    each = place_bytes(replace(buffer, copies=1), address_spaces(levels)[buffer.level], level, Const(1))
    at = state.text(Binary("+", buffer.offset, Binary("*", step.copy, each)), ranges)
    return f"{kind}* const {name} = ({kind}*)(smem + {at});"
