"""Fragments of a factor: the words of a lane for each instruction of a step, out of memory or of its own registers.

Words are numbered round by round along the depth, in each along rows (or columns). Where rows of a matrix lie side by
side at multiples of 16 bytes one instruction loads four fragments of eight rows, otherwise each lane its own words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilec.codegen.gpu.c_text import literal
from tilec.codegen.gpu.copy_windows import contiguous
from tilec.codegen.gpu.index_text import index_text, is_multiple
from tilec.codegen.gpu.kernel_ir import LANE
from tilec.codegen.gpu.lane_tile import LaneTile
from tilec.codegen.gpu.loop_text import counted
from tilec.codegen.gpu.ranges import with_ranges
from tilec.codegen.gpu.scalar_text import Scalars, loaded, stored
from tilec.codegen.gpu.slots import own_place
from tilec.errors import UnsupportedError
from tilec.ir.algebra import bounds_of, simplify, simplify_scalar
from tilec.ir.expr import Access, Binary, Call, Const, Expr, Var, accesses, substitute
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.matrix_units import Span
from tilec.ir.program import Buffer
from tilec.ir.types import TTYPES

WORD = 4
"""Bytes of a register."""

ROW = 16
"""Bytes of a row of the matrices that one instruction loads."""


@dataclass(frozen=True, slots=True)
class Part:
    """A box along an iterator: where it begins and how wide it is, the extent of an instruction, and how far the step
    lies inside of the box."""

    iterator: str
    lo: Expr
    width: Expr
    extent: int
    at: Expr


@dataclass(frozen=True, slots=True)
class Fragment:
    """The fragments of a factor `body`, of a type, for `count` instructions along the rows (or columns) `across`."""

    body: Expr
    ttype: str
    across: Part
    depth: Part
    span: Span
    deep: Span
    count: int
    name: str

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return TTYPES[self.ttype].bits // 8

    @property
    def rounds(self) -> tuple[int, int]:
        """Rounds along the depth and across of one instruction."""
        return self.depth.extent // (self.deep.lanes * self.deep.vector), self.across.extent // self.span.lanes

    @property
    def words_of_round(self) -> int:
        """Words of a lane in one round."""
        return max(1, self.deep.vector * self.size // WORD)

    @property
    def words(self) -> int:
        """Words of a lane in one instruction."""
        return self.rounds[0] * self.rounds[1] * self.words_of_round


def load_fragment(one: LaneTile, of: Fragment, positions: Mapping[str, Expr], ranges: KnownRanges) -> tuple[str, int]:
    """Declare and load the words of all instructions of a step; their name, and the words of one instruction."""
    state = one.state
    name = state.names.fresh(of.name)
    state.lines.add(f"unsigned {name}[{of.count * of.words}];")
    counter = state.names.fresh("i")
    state.names.assign({f"#{counter}": counter})
    rows = _by_rows(one, of, positions, f"#{counter}", ranges)
    if rows is not None:
        together, verb, address = rows
        with state.nested([counted(counter, of.count // together)]):
            state.lines.add(f"{verb}({name} + {counter} * 4, {address});")
        return name, of.words
    inner = with_ranges(ranges, {f"#{counter}": of.count})
    with state.nested([counted(counter, of.count)]):
        for deep in range(of.rounds[0]):
            for row in range(of.rounds[1]):
                first = (deep * of.rounds[1] + row) * of.words_of_round
                for number, text in enumerate(_words(one, of, positions, f"#{counter}", deep, row, inner)):
                    state.lines.add(f"{name}[{counter} * {of.words} + {first + number}] = {text};")
    return name, of.words


def _lane_of(span: Span) -> Expr:
    if span.lanes == 1:
        return Const(0)
    return Binary("%", Binary("//", LANE, Const(span.step)), Const(span.lanes))


def _words(
    one: LaneTile, of: Fragment, positions: Mapping[str, Expr], counter: str, deep: int, row: int, ranges: KnownRanges
) -> list[str]:
    """The words of a lane in one round along the depth and across."""
    state = one.state
    across = _plus(_times(_plus(_times(Var(counter), of.rounds[1]), Const(row)), of.span.lanes), _lane_of(of.span))
    begin = _plus(_times(_plus(Const(deep * of.deep.lanes), _lane_of(of.deep)), of.deep.vector), of.depth.at)
    across, begin = simplify(across, ranges), simplify(begin, ranges)
    whole = _fills(of.across, of.count)
    own: list[Expr] = [] if whole else [Binary("<", across, of.across.width)]
    neighbour = state.names.fresh("v")
    inside = with_ranges(ranges, {f"#{neighbour}": of.deep.vector})

    def at(number: Expr) -> dict[str, Expr]:
        deeper = simplify(_plus(of.depth.lo, _plus(begin, number)), inside)
        return {
            **positions,
            of.across.iterator: simplify(_plus(of.across.lo, across), ranges),
            of.depth.iterator: deeper,
        }

    full = is_multiple(of.depth.width, of.depth.extent, ranges)
    held = is_held(one, of.body)
    if isinstance(of.body, Access) and not held:
        buffer = _buffer(one, of.body)
        index = [substitute(each, at(Var(f"#{neighbour}"))) for each in of.body.index]
        count = of.deep.vector
        even = full or is_multiple(of.depth.width, count, ranges)
        if even and buffer.ttype == of.ttype and contiguous(buffer, index, f"#{neighbour}", count, inside):
            tests = own if full else [*own, Binary("<", begin, of.depth.width)]
            first = [substitute(each, at(Const(0))) for each in of.body.index]
            return _loaded_words(one, of, buffer, first, tests, ranges)
    texts = []
    for number in range(of.deep.vector):
        tests = own if full else [*own, Binary("<", simplify(_plus(begin, Const(number)), ranges), of.depth.width)]
        if held:
            row_slot, slot = _plus(_times(Var(counter), of.rounds[1]), Const(row)), _slot(of, deep, number)
            text = _held_element(one, of, positions, simplify(row_slot, ranges), simplify(slot, ranges), ranges)
        else:
            text = _element(one, of, at(Const(number)), bool(tests), ranges)
        if tests:
            text = f"({state.condition(tests, ranges)}) ? {text} : {stored(literal(0, of.ttype), of.ttype)}"
        texts.append(text)
    return _packed(of, texts)


def _slot(of: Fragment, deep: int, number: int) -> Expr:
    """The slot of a lane along the depth: its neighbours of the rounds of the steps before, and of this one."""
    rounds = _plus(_times(Binary("//", of.depth.at, Const(of.depth.extent)), of.rounds[0]), Const(deep))
    return _plus(_times(rounds, of.deep.vector), Const(number))


def _packed(of: Fragment, texts: Sequence[str]) -> list[str]:
    """Elements side by side as words."""
    each = max(1, WORD // of.size)
    return [f"t_word({', '.join(texts[first : first + each])})" for first in range(0, len(texts), each)]


def is_held(one: LaneTile, body: Expr) -> bool:
    """Whether a factor lies in registers."""
    return any(one.state.in_registers(_buffer(one, access)) for access in accesses(body))


def _held_element(
    one: LaneTile, of: Fragment, positions: Mapping[str, Expr], across: Expr, deep: Expr, ranges: KnownRanges
) -> str:
    """An element of a lane's own: its slots along rows (or columns) and depth. Raises UnsupportedError for one that the
    unit does not take as it is."""
    state, body = one.state, of.body
    if not isinstance(body, Access) or _buffer(one, body).ttype != of.ttype:
        raise UnsupportedError(
            f"kernel {state.kernel.name} computes a factor of {one.target.name} from registers",
            hint="Let a node of its own compute it.",
        )
    buffer, slots = _buffer(one, body), {of.across.iterator: across, of.depth.iterator: deep}
    for index, extent in zip(body.index, state.array_shape(buffer), strict=True):
        if isinstance(index, Var) and index.name in slots:
            slots[index.name] = _at_most(slots[index.name], extent - 1, ranges)
    return own_place(state, one.tile, buffer, body, {**positions, **slots}, slots, ranges)


def _at_most(slot: Expr, last: int, ranges: KnownRanges) -> Expr:
    """A slot that there is: lanes have none of what is beyond the box."""
    most = bounds_of(slot, ranges)[1]
    return slot if most is not None and most <= last else Call("minimum", (slot, Const(last)))


def _fills(part: Part, count: int) -> bool:
    """Whether instructions fill the box."""
    return part.width == Const(part.extent * count)


def _buffer(one: LaneTile, access: Access) -> Buffer:
    return dict(one.tile.operands)[access.tensor]


def _loaded_words(
    one: LaneTile, of: Fragment, buffer: Buffer, index: list[Expr], tests: Sequence[Expr], ranges: KnownRanges
) -> list[str]:
    """Whole words that lie side by side."""
    state = one.state
    pointer = f"(const unsigned*)({state.address(buffer, index, ranges)})"
    load = f"{state.memory('LD', buffer)}({pointer})"
    if of.words_of_round > 1:
        name = state.names.fresh("q")
        kind = f"vec<unsigned, {of.words_of_round}>"
        load = f"{state.memory('LD', buffer, of.words_of_round)}({pointer})"
        if tests:
            load = f"({state.condition(tests, ranges)}) ? {load} : t_zero<{kind}>()"
        state.lines.add(f"const {kind} {name} = {load};")
        return [f"{name}.v[{number}]" for number in range(of.words_of_round)]
    return [f"({state.condition(tests, ranges)}) ? {load} : 0u" if tests else load]


def _element(one: LaneTile, of: Fragment, positions: Mapping[str, Expr], guarded: bool, ranges: KnownRanges) -> str:
    """One element, as it is stored."""
    state = one.state

    def read(access: Access, _: bool) -> str:
        buffer = _buffer(one, access)
        address = state.address(buffer, [substitute(each, positions) for each in access.index], ranges)
        return f"{state.memory('LD', buffer)}({address})"

    if isinstance(of.body, Access) and _buffer(one, of.body).ttype == of.ttype:
        return read(of.body, guarded)
    scalars = Scalars(
        {tensor: buffer.ttype for tensor, buffer in one.tile.operands},
        lambda access, under: loaded(read(access, under), _buffer(one, access).ttype),
        lambda expr: index_text(simplify_scalar(substitute(expr, dict(positions)), ranges), state.names, ranges),
        {},
        state.kernel.fast,
    )
    return stored(scalars.text(of.body, of.ttype, guarded), of.ttype)


def _by_rows(
    one: LaneTile, of: Fragment, positions: Mapping[str, Expr], counter: str, ranges: KnownRanges
) -> tuple[int, str, str] | None:
    """How one instruction loads four fragments of eight rows of 16 bytes: instructions of the unit that it serves, the
    primitive, and the address of a lane's row; None where it does not."""
    state, body = one.state, of.body
    if not isinstance(body, Access) or of.size > 2 or of.span != Span(8, 4) or of.deep != Span(4, 1, WORD // of.size):
        return None
    buffer = _buffer(one, body)
    together = 4 // of.words
    if of.rounds[0] != 2 or of.count % together or buffer.ttype != of.ttype or state.in_registers(buffer):
        return None
    if state.kernel.is_global(buffer):
        return None
    if not is_multiple(of.depth.width, of.depth.extent, ranges):
        return None
    wide = ROW // of.size
    inner = with_ranges(ranges, {counter: of.count // together, "#row": wide})
    eighth, low = Binary("//", LANE, Const(8)), Binary("%", LANE, Const(8))
    first, second = Binary("%", eighth, Const(2)), Binary("//", eighth, Const(2))
    blocks = (first, second) if of.rounds[1] == 2 else (second, first)
    state.names.assign({"#row": "row"})
    for transposed in (False, True):
        if transposed and of.size != 2:
            continue
        across, deep = (_times(blocks[0], 8), _times(blocks[1], wide))
        across = _plus(across, Var("#row") if transposed else low)
        deep = _plus(deep, low if transposed else Var("#row"))
        across = _plus(across, _times(Var(counter), of.across.extent * together))
        if not _fills(of.across, of.count):  # rows behind the last one are rows of no result: any others do
            across = Call("minimum", (across, Binary("-", of.across.width, Const(1))))
        at = {
            **positions,
            of.across.iterator: simplify(_plus(of.across.lo, across), inner),
            of.depth.iterator: simplify(_plus(of.depth.lo, _plus(of.depth.at, deep)), inner),
        }
        index = [substitute(each, at) for each in body.index]
        if contiguous(buffer, index, "#row", wide, inner):
            begin = [substitute(each, {"#row": Const(0)}) for each in index]
            return together, f"ldmatrix4{'t' if transposed else ''}", state.address(buffer, begin, inner)
    return None


def _times(a: Expr, n: int) -> Expr:
    return Binary("*", a, Const(n))


def _plus(a: Expr, b: Expr) -> Expr:
    return Binary("+", a, b)
