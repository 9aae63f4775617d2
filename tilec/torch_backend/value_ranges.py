"""Ranges of the integers that a graph computes, as far as its operators bound them whatever its inputs hold."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import prod
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import statically_known_true

aten = torch.ops.aten

Range = tuple[Any, Any]
"""The least and the largest value: integers, or expressions of PyTorch over sizes that vary."""

Ranges = Mapping[fx.Node, Range]

MOVES = {
    aten.alias.default, aten.amax.default, aten.amin.default, aten.clone.default, aten.detach.default,
    aten.diagonal.default, aten.embedding.default, aten.expand.default, aten.flip.default, aten.gather.default,
    aten.index.Tensor, aten.index_select.default, aten.lift_fresh_copy.default, aten.permute.default,
    aten.repeat.default, aten.roll.default, aten.select.int, aten.slice.Tensor, aten.split.Tensor,
    aten.split_with_sizes.default, aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.transpose.int,
    aten.unbind.int, aten.unfold.default, aten.unsqueeze.default, aten.view.default, aten._to_copy.default,
}  # fmt: skip
"""Operators whose elements are elements of their first argument."""

POSITIONS = {
    aten.argmax.default: None, aten.argmin.default: None, aten.max.dim: 1, aten.min.dim: 1, aten.topk.default: 1,
    aten.sort.default: 1, aten.sort.stable: 1,
}  # fmt: skip
"""Operators that tell positions along a dimension, and the result that does (None: the only one)."""


def ranges_of(graph: fx.Graph) -> dict[fx.Node, Range]:
    """The ranges of the integers of a graph: those of their types where nothing more is known."""
    known: dict[fx.Node, Range] = {}
    for node in graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt):
            known[node] = (value, value)
        elif isinstance(value, torch.Tensor) and not (value.dtype.is_floating_point or value.dtype.is_complex):
            known[node] = _limited(_made(node, known) if node.op == "call_function" else None, value.dtype)
    return known


def is_inside(found: Range, least: Any, end: Any) -> bool:
    """Whether a range lies from `least` on and below `end`, at all sizes."""
    return bool(statically_known_true(found[0] >= least) and statically_known_true(found[1] < end))


def _limited(made: Range | None, dtype: torch.dtype) -> Range:
    """A range of numbers of a type, which has all its values where a result may leave it. Sizes are of int64."""
    limits = (0, 1) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    if made is None or any(isinstance(each, int) and not limits[0] <= each <= limits[1] for each in made):
        return limits
    return made if dtype == torch.int64 or all(isinstance(each, int) for each in made) else limits


def _made(node: fx.Node, known: Ranges) -> Range | None:
    """The range of what a call of integers makes, as if their type had no end."""
    target, args = node.target, node.args
    if target is operator.getitem:
        source, number = args
        assert isinstance(source, fx.Node)
        if source.target in POSITIONS and POSITIONS[source.target] == number:
            return _positions(source)
        return _of(source.args[0], known) if source.target in MOVES | POSITIONS.keys() else None
    if target in POSITIONS:
        return _positions(node)
    if target in MOVES:
        return _of(args[0], known)
    rule = RULES.get(target)
    return rule(node, lambda each: _of(each, known)) if rule is not None else None


def _of(value: Any, known: Ranges) -> Range | None:
    """The range of an argument, None of what is no integer."""
    if isinstance(value, fx.Node):
        return known.get(value)
    return (value, value) if isinstance(value, int) else None


def _is_any(found: Range) -> bool:
    """Whether an end is a limit of a type, which no size is added to."""
    return any(isinstance(each, int) and abs(each) >= MOST for each in found)


MOST = 1 << 62
"""What no size reaches."""


def _positions(node: fx.Node) -> Range | None:
    """From the first to the last element of a dimension, or of a whole tensor."""
    source: Any = node.args[0]
    shape = source.meta["val"].shape
    named = {argument.name: n for n, argument in enumerate(node.target._schema.arguments)}
    place = named["dim"]
    dim: Any = node.args[place] if len(node.args) > place else node.kwargs.get("dim", _default_dim(node))
    if not shape:
        return (0, 0)
    return (0, (prod(shape) if dim is None else shape[dim]) - 1)


def _default_dim(node: fx.Node) -> int | None:
    return None if node.target in (aten.argmax.default, aten.argmin.default) else -1


Look = Callable[[Any], Range | None]


def _arange(node: fx.Node, look: Look) -> Range | None:
    start, end = look(node.args[0]), look(node.args[1])
    step = node.args[2] if len(node.args) > 2 else 1
    return (start[0], end[1] - 1) if start and end and isinstance(step, int) and step > 0 else None


def _iota(node: fx.Node, look: Look) -> Range | None:
    count, start = look(node.args[0]), look(node.kwargs.get("start", 0))
    step = node.kwargs.get("step", 1)
    return (
        (start[0], start[1] + (count[1] - 1) * step) if start and count and isinstance(step, int) and step > 0 else None
    )


def _added(node: fx.Node, look: Look) -> Range | None:
    left, right = look(node.args[0]), look(node.args[1])
    alpha = node.kwargs.get("alpha", 1)
    if left is None or right is None or _is_any(left) or _is_any(right) or not isinstance(alpha, int) or alpha < 0:
        return None
    if node.target in (aten.sub.Tensor, aten.sub.Scalar):
        return (left[0] - alpha * right[1], left[1] - alpha * right[0])
    return (left[0] + alpha * right[0], left[1] + alpha * right[1])


def _multiplied(node: fx.Node, look: Look) -> Range | None:
    left, right = look(node.args[0]), look(node.args[1])
    if left is None or right is None:
        return None
    ends = (*left, *right)
    if all(isinstance(each, int) for each in ends):
        corners = [a * b for a in left for b in right]
        return (min(corners), max(corners))
    if node.meta["val"].dtype == torch.int64 and all(statically_known_true(each >= 0) for each in ends):
        return (left[0] * right[0], left[1] * right[1])
    return None


def _remainder(node: fx.Node, look: Look) -> Range | None:
    divisor = look(node.args[1])
    return (0, divisor[1] - 1) if divisor is not None and statically_known_true(divisor[0] > 0) else None


def _masked(node: fx.Node, look: Look) -> Range | None:
    """Of a bitwise conjunction with what is not negative."""
    limits = [
        found[1] for each in node.args if (found := look(each)) is not None and statically_known_true(found[0] >= 0)
    ]
    return (0, reduce(torch.sym_min, limits)) if limits else None


def _clamped(node: fx.Node, look: Look) -> Range | None:
    """Between bounds of which either may be missing."""
    found = look(node.args[0])
    for bound, choose in zip(_bounds(node), (torch.sym_max, torch.sym_min), strict=True):
        if bound is None or found is None:
            continue
        ends = look(bound)
        found = None if ends is None else (choose(found[0], ends[0]), choose(found[1], ends[1]))
    return found


def _bounds(node: fx.Node) -> tuple[Any, Any]:
    given = [*node.args[1:], None, None]
    match node.target:
        case aten.clamp_min.default | aten.clamp_min.Tensor | aten.maximum.default:
            return given[0], None
        case aten.clamp_max.default | aten.clamp_max.Tensor | aten.minimum.default:
            return None, given[0]
    return given[0], given[1]


def _united(node: fx.Node, look: Look) -> Range | None:
    """Of elements of several arguments."""
    match node.target:
        case aten.where.self:
            parts: Sequence[Any] = node.args[1:]
        case aten.constant_pad_nd.default:
            parts = [node.args[0], node.args[2] if len(node.args) > 2 else 0]
        case _:
            parts = node.args[0]
    found = [look(each) for each in parts]
    known = [each for each in found if each is not None]
    if len(known) < len(found) or not known:
        return None
    return (reduce(torch.sym_min, [low for low, _ in known]), reduce(torch.sym_max, [high for _, high in known]))


def _filled(node: fx.Node, look: Look) -> Range | None:
    return look(node.args[0] if node.target is aten.scalar_tensor.default else node.args[1])


RULES: dict[Any, Callable[[fx.Node, Look], Range | None]] = {
    aten.arange.start_step: _arange,
    torch.ops.prims.iota.default: _iota,
    **dict.fromkeys((aten.add.Tensor, aten.add.Scalar, aten.sub.Tensor, aten.sub.Scalar), _added),
    **dict.fromkeys((aten.mul.Tensor, aten.mul.Scalar), _multiplied),
    **dict.fromkeys((aten.remainder.Scalar, aten.remainder.Tensor), _remainder),
    **dict.fromkeys((aten.bitwise_and.Tensor, aten.bitwise_and.Scalar), _masked),
    **dict.fromkeys(
        (aten.clamp.default, aten.clamp.Tensor, aten.clamp_min.default, aten.clamp_min.Tensor, aten.clamp_max.default,
         aten.clamp_max.Tensor, aten.minimum.default, aten.maximum.default),
        _clamped,
    ),
    **dict.fromkeys((aten.where.self, aten.cat.default, aten.stack.default, aten.constant_pad_nd.default), _united),
    **dict.fromkeys((aten.full.default, aten.scalar_tensor.default, aten.full_like.default), _filled),
}  # fmt: skip
"""Operator -> the range of its result, from those of its arguments."""
