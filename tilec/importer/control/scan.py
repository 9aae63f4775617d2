"""Scan: unrolled over the slices of its inputs, or a serial loop over many, or a symbolic number, of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from tilec.importer.control.body import NO_NAMES, Body
from tilec.importer.control.region import Region
from tilec.importer.control.repeat import leading, placed, repeated, repeats
from tilec.importer.control.unroll import Budget, require_same_kind, slice_of, stacked, zeros
from tilec.importer.named_values import NamedValue
from tilec.importer.shapes import shape_text
from tilec.importer.value import Value
from tilec.ir.expr import Const, Expr


def scan(region: Region) -> list[NamedValue]:
    """The outputs of `Scan` since opset 9: the last states, then the scan outputs, each stacked along an axis.

    A scanned extent that is symbolic or large makes a serial loop.
    """
    scan = _scan(region, batched=False)
    extents = [x.shape[axis] for x, axis in zip(scan.scanned, scan.axes, strict=True)]
    if repeats(scan.body, extents[0]):
        return _repeated_scan(region, scan, extents)
    length = _extent(region, extents)
    states, rows = scan.unrolled(scan.states, length, length)
    stacks: list[NamedValue] = []
    for number, like in enumerate(rows[0] if rows else scan.likes()):
        column = [row[number] for row in rows]
        parts = column[::-1] if scan.gathered_backwards[number] else column
        stacks.append(_stack(region, parts, like.shape, like.ttype, scan.gathered_axes[number], len(states) + number))
    return [*states, *stacks]


def _repeated_scan(region: Region, scan: _Scan, extents: Sequence[Expr]) -> list[NamedValue]:
    """The outputs of `Scan` from a serial loop."""
    for extent in extents[1:]:
        region.op.require_same(extents[0], extent, "what is scanned together")
    parts = zip(scan.scanned, scan.axes, scan.backwards, strict=True)
    sequences = [leading(region, x, axis, back, f"scanned{n}") for n, (x, axis, back) in enumerate(parts)]
    last, stacks = repeated(
        region, scan.body, scan.states, sequences, lambda now, taken: scan.body.call([*now, *taken], "step")
    )
    ways = zip(stacks, scan.gathered_axes, scan.gathered_backwards, strict=True)
    return [*last, *(placed(region, x, axis, back, len(last) + n) for n, (x, axis, back) in enumerate(ways))]


def batched_scan(region: Region) -> list[NamedValue]:
    """The outputs of `Scan` of opset 8: a scan for every element of a batch, whose sequences may be short.

    Scan outputs behind the end of a short sequence are zero.
    """
    scan = _scan(region, batched=True)
    batch = _extent(region, [x.shape[0] for x in (*scan.states, *scan.scanned)])
    length = _extent(region, [x.shape[1] for x in scan.scanned])
    lengths = _lengths(region, batch, length)
    likes = scan.likes()
    elements: list[list[Value]] = []
    for element, steps in enumerate(lengths):
        first = [slice_of(region, x, {0: element}, f"{element}/{scan.name(n)}") for n, x in enumerate(scan.states)]
        states, rows = scan.unrolled(first, steps, sum(lengths), element)
        columns: list[Value] = []
        for number, like in enumerate(likes):
            parts = [row[number] for row in rows]
            parts += [zeros(region.op, like.shape, like.ttype, "padding")] * (length - steps)
            columns.append(_stack(region, parts, like.shape, like.ttype, 0, len(states) + number))
        elements.append([*states, *columns])
    wanted = [(x.shape[1:], x.ttype) for x in scan.states]
    wanted += [((Const(length), *like.shape), like.ttype) for like in likes]
    return [
        _stack(region, [element[number] for element in elements], shape, ttype, 0, number)
        for number, (shape, ttype) in enumerate(wanted)
    ]


@dataclass(frozen=True, slots=True)
class _Scan:
    """A scan while it is unrolled: states first, then tensors that are scanned along an axis, possibly backwards."""

    region: Region
    body: Body
    states: tuple[Value, ...]
    scanned: tuple[Value, ...]
    axes: tuple[int, ...]
    backwards: tuple[bool, ...]
    gathered_axes: tuple[int, ...]
    gathered_backwards: tuple[bool, ...]
    batched: bool
    budget: Budget
    done: count[int] = field(default_factory=lambda: count(1))

    def name(self, position: int) -> str:
        """The body's name of an input."""
        return str(self.body.graph.input[position].name)

    def unrolled(
        self, states: Sequence[Value], length: int, total: int, element: int = 0
    ) -> tuple[list[Value], list[list[Value]]]:
        """The states after `length` of all `total` iterations, and the scan outputs of each; `element` is the batch
        element."""
        rows: list[list[Value]] = []
        names = [info.name for info in self.body.graph.output[: len(states)]]
        outputs = dict(zip(names, self.region.node.output, strict=False))
        for step in range(length):
            path = f"{element}/{step}" if self.batched else str(step)
            slices: list[Value] = []
            for number, (x, axis, back) in enumerate(zip(self.scanned, self.axes, self.backwards, strict=True)):
                place = {axis: length - 1 - step if back else step} | ({0: element} if self.batched else {})
                slices.append(slice_of(self.region, x, place, f"{path}/{self.name(len(states) + number)}"))
            last = step + 1 == length and not self.batched
            results = self._called([*states, *slices], path, outputs if last else NO_NAMES)
            for number, (before, after) in enumerate(zip(states, results, strict=False)):
                require_same_kind(self.region, f"state {number}", before, after)
            states = results[: len(states)]
            rows.append(results[len(states) :])
            self.budget.spend(next(self.done), total)
        return list(states), rows

    def likes(self) -> list[Value]:
        """Scan outputs of an iteration on zeros, for types and shapes."""
        dropped: list[tuple[int, ...]] = [(0,) if self.batched else ()] * len(self.states)
        dropped += [(0, axis) if self.batched else (axis,) for axis in self.axes]
        arguments = [
            zeros(self.region.op, [extent for d, extent in enumerate(x.shape) if d not in axes], x.ttype, "like")
            for x, axes in zip((*self.states, *self.scanned), dropped, strict=True)
        ]
        return self._called(arguments, "like")[len(self.states) :]

    def _called(self, arguments: Sequence[Value], path: str, outputs: Mapping[str, str] = NO_NAMES) -> list[Value]:
        results = self.body.call(arguments, path, outputs)
        tensors = [value for value in results if isinstance(value, Value)]
        if len(tensors) < len(results):
            raise self.region.invalid("an output of the body is no tensor", "A scan carries and gives tensors only.")
        return tensors


def _scan(region: Region, batched: bool) -> _Scan:
    """The node with its attributes in order; opset 8 has lengths and a batch dimension in front, and no axes."""
    body = Body(region, "body", region.path, steady=True)
    scans = region.integer("num_scan_inputs")
    inputs = [region.tensor(position) for position in range(int(batched), len(region.node.input))]
    if not 0 < scans <= len(inputs):
        raise region.invalid(f"num_scan_inputs is {scans}, the node has {len(inputs)} inputs to carry and scan")
    states, scanned = tuple(inputs[:-scans]), tuple(inputs[-scans:])
    gathered = max(0, len(body.graph.output) - len(states))
    body.expect(len(inputs), len(states) + gathered, f"the scan has {len(states)} states and {scans} scanned inputs")
    if len(region.node.output) != len(states) + gathered:
        raise region.invalid(f"{len(region.node.output)} outputs, the body gives {len(states) + gathered}")
    for x in inputs if batched else ():
        if x.rank < (2 if x in scanned else 1):
            raise region.invalid(f"an input of shape {shape_text(x.shape)} without dimensions for batch and sequence")
    axes = [1] * scans if batched else _listed(region, "scan_input_axes", scans)
    for x, axis in zip(scanned, axes, strict=True):
        if not -x.rank <= axis < x.rank:
            raise region.invalid(f"axis {axis} of a scanned input of shape {shape_text(x.shape)}")
    return _Scan(
        region,
        body,
        states,
        scanned,
        tuple(axis % x.rank for x, axis in zip(scanned, axes, strict=True)),
        tuple(map(bool, _listed(region, "directions" if batched else "scan_input_directions", scans))),
        tuple(_listed(region, "scan_output_axes", gathered)),
        tuple(map(bool, _listed(region, "scan_output_directions", gathered))),
        batched,
        Budget(region),
    )


def _listed(region: Region, name: str, number: int) -> list[int]:
    """An attribute with an integer for each of `number` tensors, 0 by default."""
    values = [int(value) for value in region.attributes.get(name, [0] * number)]
    if len(values) != number:
        raise region.invalid(f"the attribute {name!r} has {len(values)} values for {number} tensors")
    return values


def _extent(region: Region, extents: Sequence[Expr]) -> int:
    """The common value of all these extents. Raises ShapeError, UndecidedError and UnsupportedError."""
    for extent in extents[1:]:
        region.op.require_same(extents[0], extent, "what is scanned together")
    return region.number(extents[0], "the number of iterations")


def _lengths(region: Region, batch: int, length: int) -> list[int]:
    given = region.optional(0)
    if given is None:
        return [length] * batch
    lengths = list(region.elements(region.tensor(0), "the list of lengths"))
    if len(lengths) != batch or not all(0 <= n <= length for n in lengths):
        raise region.invalid(f"lengths {lengths} of {batch} sequences of up to {length}")
    return lengths


def _stack(region: Region, parts: Sequence[Value], shape: Sequence[Expr], ttype: str, axis: int, output: int) -> Value:
    """Tensors of one shape stacked along a new dimension, also when there are none."""
    if parts:
        return stacked(region.op, parts, axis, output=output)
    axis = region.op.axis(axis, len(shape) + 1)
    return zeros(region.op, [*shape[:axis], Const(0), *shape[axis:]], ttype, output=output)
