"""Online updates: rescaling of a partial result in a step of a shared loop (online softmax, Welford)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tilec.ir.decisions import tiled_like
from tilec.ir.expr import Access, TensorExpr, Var, operands
from tilec.ir.program import Allocate, Buffer, ComputeTile, Statement
from tilec.lower.lowering_context import Box, LoweringContext
from tilec.lower.part_frame import PartFrame
from tilec.lower.shared_loops import SharedLoop, with_names
from tilec.lower.tile_request import RequestTarget, TileRequest
from tilec.lower.windows import buffer

Statements = Callable[[LoweringContext, TileRequest], tuple[Statement, ...]]


def online_update(
    frame: PartFrame, shared: SharedLoop, name: str, loops: tuple[str, ...], statements: Statements
) -> list[Statement]:
    """Save the previous value of a member for later members, and rescale it to the current values of earlier ones.

    `statements` emits a task of the levels above.
    """
    s, node, result = frame.s, frame.s.nodes[name], list[Statement]()
    box = {iterator: frame.view(loops).boxes[name][iterator] for iterator in node.spatial}
    if name in shared.before:
        former = shared.before[name]
        element = Access(name, tuple(map(Var, node.spatial)))
        previous = buffer(s, former, frame.task.level, tuple(box.values()))
        frame.buffers[former] = previous
        result.append(Allocate(previous))
        copy = TensorExpr(former, node.spatial, (), node.shape, element)
        result += _pointwise(frame, copy, name, box, previous, statements)
    rescale = shared.rescale.get(name)
    if rescale is not None:
        expr = replace(rescale, body=with_names(rescale.body, shared.before))
        result += _pointwise(frame, expr, name, box, frame.buffers[name], statements)
    return result


def _pointwise(
    frame: PartFrame, expr: TensorExpr, like: str, box: Box, target: Buffer, statements: Statements
) -> tuple[Statement, ...]:
    """A pure tile of this level, which may read its target, tiled at higher levels like the node `like`."""
    s, name, read = frame.s, expr.tensor, operands(expr)
    if frame.task.level == s.top:
        ends = tuple((iterator, *box[iterator]) for iterator in expr.spatial)
        return (ComputeTile(expr, ends, target.name, tuple((t, frame.buffers[t].name) for t in read)),)
    alone = replace(
        s,
        nodes={name: expr},
        operands={name: read},
        readers={tensor: [name] for tensor in read},
        connect={},
        shared={},
        variant=tiled_like(s.variant, like, name),
    )
    task = TileRequest(
        part=(name,),
        level=frame.task.level + 1,
        box=box,
        targets={name: RequestTarget(target, tuple(box.values()))},
        sources={(name, tensor): frame.buffers[tensor] for tensor in read if tensor != name},
        accumulate=name in read,
    )
    return statements(alone, task)
