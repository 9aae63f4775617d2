"""Fragments of a factor as C++: the words of a lane for each instruction of a step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilec.codegen.gpu.fragments import WORD, Fragment, plus, times
from tilec.codegen.gpu.kernel_names import FRAGMENT
from tilec.codegen.gpu.print.c_text import literal
from tilec.codegen.gpu.print.index_text import index_text
from tilec.codegen.gpu.print.lane_tile import LaneTile
from tilec.codegen.gpu.print.loop_text import counted
from tilec.codegen.gpu.print.scalar_text import Scalars, loaded, stored
from tilec.codegen.gpu.print.slots import own_place
from tilec.codegen.gpu.ranges import with_ranges
from tilec.ir.algebra import bounds_of, simplify, simplify_scalar
from tilec.ir.expr import Access, Binary, Call, Const, Expr, Var, substitute
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.program import Buffer


def load_fragment(one: LaneTile, of: Fragment, wanted: str, ranges: KnownRanges) -> str:
    """Declare and load the words of all instructions of a step; their name, about the `wanted` one."""
    state = one.state
    name, counter = state.names.fresh(wanted), state.names.fresh("i")
    state.lines.add(f"unsigned {name}[{of.count * of.words}];")
    state.names.assign({FRAGMENT.name: counter})
    if of.load in ("rows", "columns"):
        assert isinstance(of.body, Access)
        inner = with_ranges(ranges, {FRAGMENT.name: of.count // of.together})
        address = state.address(_buffer(one, of.body), of.row, inner)
        with state.nested([counted(counter, of.count // of.together)]):
            state.lines.add(f"ldmatrix4{'t' * (of.load == 'columns')}({name} + {counter} * 4, {address});")
        return name
    inner = with_ranges(ranges, {FRAGMENT.name: of.count})
    with state.nested([counted(counter, of.count)]):
        for deep in range(of.rounds[0]):
            for row in range(of.rounds[1]):
                first = (deep * of.rounds[1] + row) * of.words_of_round
                for number, text in enumerate(_words(one, of, deep, row, inner)):
                    state.lines.add(f"{name}[{counter} * {of.words} + {first + number}] = {text};")
    return name


def _words(one: LaneTile, of: Fragment, deep: int, row: int, ranges: KnownRanges) -> list[str]:
    """The words of a lane in one round along the depth and across."""
    across, begin = of.first(deep, row, ranges)
    own: list[Expr] = [] if of.fills else [Binary("<", across, of.across.width)]

    def tests(deeper: Expr) -> list[Expr]:
        return own if of.is_full(ranges) else [*own, Binary("<", deeper, of.depth.width)]

    if of.load == "words":
        return _loaded_words(one, of, one.positions | of.point(across, begin, ranges), tests(begin), ranges)
    texts = []
    for number in range(of.deep.vector):
        deeper = simplify(plus(begin, Const(number)), ranges)
        conditions = tests(deeper)
        if of.load == "own":
            text = _own_element(one, of, (deep, row, number), ranges)
        else:
            text = _element(one, of, one.positions | of.point(across, deeper, ranges), bool(conditions), ranges)
        if conditions:
            text = f"({one.state.condition(conditions, ranges)}) ? {text} : {stored(literal(0, of.ttype), of.ttype)}"
        texts.append(text)
    return list(_packed(of, texts))


def _packed(of: Fragment, texts: Sequence[str]) -> Iterator[str]:
    """Elements side by side as words."""
    each = max(1, WORD // of.size)
    return (f"t_word({', '.join(texts[first : first + each])})" for first in range(0, len(texts), each))


def _own_element(one: LaneTile, of: Fragment, place: tuple[int, int, int], ranges: KnownRanges) -> str:
    """An element of a lane's own registers, at a place: rounds along the depth and across, and the neighbour."""
    assert isinstance(of.body, Access)
    (deep, row, number), buffer = place, _buffer(one, of.body)
    rounds = plus(times(Binary("//", of.at, Const(of.depth.extent)), of.rounds[0]), Const(deep))
    slots: dict[str, Expr] = {
        of.across.iterator: simplify(plus(times(FRAGMENT, of.rounds[1]), Const(row)), ranges),
        of.depth.iterator: simplify(plus(times(rounds, of.deep.vector), Const(number)), ranges),
    }
    for index, extent in zip(of.body.index, one.state.array_shape(buffer), strict=True):
        if isinstance(index, Var) and index.name in slots:
            slots[index.name] = _at_most(slots[index.name], extent - 1, ranges)
    return own_place(one.state, one.tile, buffer, of.body, {**one.positions, **slots}, slots, ranges)


def _at_most(slot: Expr, last: int, ranges: KnownRanges) -> Expr:
    """A slot that there is: lanes have none of what is beyond the box."""
    most = bounds_of(slot, ranges)[1]
    return slot if most is not None and most <= last else Call("minimum", (slot, Const(last)))


def _buffer(one: LaneTile, access: Access) -> Buffer:
    return dict(one.tile.operands)[access.tensor]


def _loaded_words(
    one: LaneTile, of: Fragment, positions: Mapping[str, Expr], tests: Sequence[Expr], ranges: KnownRanges
) -> list[str]:
    """Whole words that lie side by side."""
    assert isinstance(of.body, Access)
    state, buffer = one.state, _buffer(one, of.body)
    index = [substitute(each, dict(positions)) for each in of.body.index]
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
        address = state.address(buffer, [substitute(each, dict(positions)) for each in access.index], ranges)
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
