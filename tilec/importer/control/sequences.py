"""Sequences and optionals of known length: never materialised, import tracks the tensors in them."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.importer.control.body import Body
from tilec.importer.control.region import Region
from tilec.importer.control.unroll import known, slice_of, stacked
from tilec.importer.element_types import ELEMENT_TYPES, element_type_name
from tilec.importer.named_values import Items, Maybe, NamedValue
from tilec.importer.ops.movement import concatenated
from tilec.importer.ops.slicing import sliced
from tilec.importer.value import Value
from tilec.ir.expr import Const

MAX_PARTS = 4096
"""Maximal number of parts of a split; each is a node."""


def sequence(region: Region, position: int = 0) -> Items:
    """A required input that is a sequence. Raises ConfigError."""
    value = region.optional(position)
    if not isinstance(value, Items):
        raise region.invalid(f"input {position} is no sequence")
    return value


def _joined(region: Region, values: Sequence[Value], ttype: str | None = None) -> Items:
    """A sequence of these tensors, which have to be of one type."""
    for value in values:
        ttype = ttype or value.ttype
        if value.ttype != ttype:
            raise region.invalid(f"a sequence of {ttype} cannot hold {value.ttype}")
    return Items(tuple(values), ttype)


def construct(region: Region) -> list[NamedValue]:
    """`SequenceConstruct`."""
    return [_joined(region, [region.tensor(position) for position in range(len(region.inputs))])]


def no_elements(region: Region) -> list[NamedValue]:
    """`SequenceEmpty`."""
    code = region.integer("dtype", 1)
    if code not in ELEMENT_TYPES:
        raise region.unsupported(f"a sequence of {element_type_name(code)}")
    return [Items((), ELEMENT_TYPES[code])]


def _place(region: Region, position: int, length: int, beyond: int = 0) -> int:
    """A known index into a sequence, counted from the front. Raises ConfigError outside of it."""
    place = region.scalar(region.tensor(position), "the position in the sequence")
    if not -length <= place < length + beyond:
        raise region.invalid(f"position {place} of a sequence of {length} elements")
    return place + length if place < 0 else place


def at(region: Region) -> list[NamedValue]:
    """`SequenceAt`."""
    items = sequence(region)
    return [items.held[_place(region, 1, len(items.held))]]


def insert(region: Region) -> list[NamedValue]:
    """`SequenceInsert`: before a position, by default behind the last element."""
    items = sequence(region)
    place = len(items.held) if region.optional(2) is None else _place(region, 2, len(items.held), beyond=1)
    return [_joined(region, [*items.held[:place], region.tensor(1), *items.held[place:]], items.ttype)]


def erase(region: Region) -> list[NamedValue]:
    """`SequenceErase`: by default the last element."""
    items = sequence(region)
    length = len(items.held)
    if region.optional(1) is None and not length:
        raise region.invalid("an empty sequence has no element to erase")
    place = length - 1 if region.optional(1) is None else _place(region, 1, length)
    return [Items((*items.held[:place], *items.held[place + 1 :]), items.ttype)]


def length(region: Region) -> list[NamedValue]:
    """`SequenceLength`."""
    return [known(region, "length", len(sequence(region).held))]


def split(region: Region) -> list[NamedValue]:
    """`SplitToSequence`: parts of given sizes, or of one size with a smaller last one, or single slices."""
    x = region.tensor(0)
    axis = region.op.axis(region.integer("axis"), x.rank)
    extent = region.number(x.shape[axis], "the extent that is split")
    given = region.optional(1)
    if extent > MAX_PARTS:
        raise region.unsupported(f"up to {extent} parts", "Split less, or split on a longer step outside the model.")
    if given is None and not region.integer("keepdims", 1):
        return [Items(tuple(slice_of(region, x, {axis: i}, str(i)) for i in range(extent)), x.ttype)]
    sizes = [1] * extent if given is None else _sizes(region, region.tensor(1), extent)
    start = 0
    parts: list[Value] = []
    for size in sizes:
        parts.append(sliced(region.op, x, {axis: (Const(start), 1, Const(size))}))
        start += size
    return [Items(tuple(parts), x.ttype)]


def _sizes(region: Region, given: Value, extent: int) -> list[int]:
    sizes = list(region.elements(given, "the list of sizes"))
    if given.rank:
        if any(size < 0 for size in sizes) or sum(sizes) != extent:
            raise region.invalid(f"parts of {sizes} of an extent of {extent}")
        return sizes
    if sizes[0] <= 0:
        raise region.invalid(f"parts of size {sizes[0]}")
    whole, rest = divmod(extent, sizes[0])
    return [sizes[0]] * whole + [rest] * bool(rest)


def concatenate(region: Region) -> list[NamedValue]:
    """`ConcatFromSequence`: along a dimension, or along a new one."""
    items = sequence(region)
    if not items.held:
        raise region.invalid("an empty sequence cannot be concatenated")
    axis = region.integer("axis")
    if region.integer("new_axis"):
        return [stacked(region.op, items.held, axis)]
    return [concatenated(region.op, items.held, axis)]


def mapped(region: Region) -> list[NamedValue]:
    """`SequenceMap`: a body for every element; tensor inputs are the same for all."""
    first = sequence(region)
    for position, argument in enumerate(region.inputs):
        if isinstance(argument, Items) and len(argument.held) != len(first.held):
            raise region.invalid(f"sequences of {len(first.held)} and {len(argument.held)} elements (input {position})")
    body = Body(region, "body", region.path)
    outputs = len(region.node.output)
    body.expect(len(region.inputs), outputs, f"the node has {len(region.inputs)} inputs and {outputs} outputs")
    columns: list[list[Value]] = [[] for _ in range(outputs)]
    for step in range(len(first.held)):
        arguments = [each.held[step] if isinstance(each, Items) else each for each in region.inputs]
        for column, value in zip(columns, body.call(arguments, str(step)), strict=True):
            if not isinstance(value, Value):
                raise region.invalid("an output of the body is no tensor", "A sequence holds tensors only.")
            column.append(value)
    declared = [ELEMENT_TYPES.get(info.type.tensor_type.elem_type) for info in body.graph.output]
    return [_joined(region, column, ttype) for column, ttype in zip(columns, declared, strict=True)]


def optional(region: Region) -> list[NamedValue]:
    """`Optional`."""
    value = region.optional(0)
    if value is None or isinstance(value, Value | Items):
        return [Maybe(value)]
    raise region.invalid("input 0 is neither a tensor nor a sequence")


def element(region: Region) -> list[NamedValue]:
    """`OptionalGetElement`: the element of an optional; any other value unchanged."""
    value = region.optional(0)
    content = value.held if isinstance(value, Maybe) else value
    if content is None:
        raise region.invalid("the optional is empty", "Ask OptionalHasElement first.")
    return [content]


def has_element(region: Region) -> list[NamedValue]:
    """`OptionalHasElement`."""
    value = region.optional(0)
    content = value.held if isinstance(value, Maybe) else value
    return [known(region, "has", content is not None)]
