"""Bodies of Scan and Loop as serial loops: for numbers of iterations that depend on sizes, and for many of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilec.importer.broadcasting import settle
from tilec.importer.control.body import Body
from tilec.importer.control.region import Region
from tilec.importer.control.unroll import MAX_NODES
from tilec.importer.formula import formula
from tilec.importer.named_values import NamedValue
from tilec.importer.serial_loop import BodyResults, serial_loop
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Expr, constant_value

MAX_ITERATIONS = 1 << 24
"""Maximal number of iterations of a loop, if it is known; a larger one stands for a loop that its condition ends."""

Call = Callable[[Sequence[Value], Sequence[Value]], Sequence[NamedValue]]
"""The results of an iteration from carried values and elements: carried values, then those to be stacked."""


def repeats(body: Body, iterations: Expr) -> bool:
    """Whether iterations are too many, or too uncertain in number, to be unrolled."""
    number = constant_value(iterations)
    return number is None or (number * len(body.graph.node) > MAX_NODES and number <= MAX_ITERATIONS)


def repeated(
    region: Region,
    body: Body,
    carried: Sequence[Value],
    sequences: Sequence[Value],
    call: Call,
    still: Sequence[Value] = (),
) -> BodyResults:
    """A loop over the first dimension of sequences, which reads `still` as well.

    Raises UnsupportedError where a carried value changes its shape or is no tensor.
    """

    def step(now: Sequence[Value], taken: Sequence[Value]) -> BodyResults:
        results = call(now, taken)
        if _settled(region, now, results):
            results = call(now, taken)
        tensors = [value for value in results if isinstance(value, Value)]
        if len(tensors) < len(results):
            raise region.unsupported("an output of the body is no tensor", "Only tensors are carried through a loop.")
        for number, (before, after) in enumerate(zip(now, tensors, strict=False)):
            if not _alike(region, before, after):
                raise region.unsupported(f"carried value {number} changes its shape or type", "Bind the sizes.")
        return BodyResults(tensors[: len(now)], tensors[len(now) :])

    return serial_loop(region.op, carried, sequences, [*body.reads, *still], step)


def _settled(region: Region, now: Sequence[Value], results: Sequence[NamedValue]) -> bool:
    """Whether sizes that meet those of carried values in the body fit them from here on, since these keep their
    shapes."""
    found = False
    for before, after in zip(now, results, strict=False):
        if isinstance(after, Value) and before.rank == after.rank:
            for extent, whole in zip(before.shape, after.shape, strict=True):
                found |= settle(whole, extent, region.op.sizes, "a carried value keeps its shape")
    return found


def _alike(region: Region, before: Value, after: Value) -> bool:
    """Whether a carried value keeps its type and, at all sizes, its shape."""
    if (before.ttype, before.rank) != (after.ttype, after.rank):
        return False
    return all(region.op.sizes.same(a, b) for a, b in zip(before.shape, after.shape, strict=True))


def leading(region: Region, x: Value, axis: int, backward: bool, part: str) -> Value:
    """A tensor with an axis in front, in the order in which a loop takes its elements."""
    if axis == 0 and not backward:
        return x
    op = region.op
    axes = op.axes_of([x.shape[axis], *x.shape[:axis], *x.shape[axis + 1 :]])
    first, *rest = (a.var for a in axes)
    return op.emit(
        axes, x.access([*rest[:axis], _place(first, x.shape[axis], backward), *rest[axis:]]), x.ttype, part=part
    )


def placed(region: Region, stack: Value, axis: int, backward: bool, output: int) -> Value:
    """A stack with its first dimension moved to an axis, in the order of places."""
    op = region.op
    axis = op.axis(axis, stack.rank)
    if axis == 0 and not backward:
        return stack
    steps, *rest = stack.shape
    axes = op.axes_of([*rest[:axis], steps, *rest[axis:]])
    index = [a.var for d, a in enumerate(axes) if d != axis]
    return op.emit(axes, stack.access([_place(axes[axis].var, steps, backward), *index]), stack.ttype, output=output)


def _place(step: Expr, steps: Expr, backward: bool) -> Expr:
    return simplify(formula("n - 1 - s", n=steps, s=step)) if backward else step
