"""Rows in groups: products with a matrix for each group, counts in bins, bags of embeddings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import fx

from tilec.torch_backend.operators.memory import expression
from tilec.torch_backend.operators.reduction import reduced
from tilec.torch_backend.translation import Translation, UntranslatableError, translates
from tilec.torch_backend.values import ONNX_TYPES, Size, Tensor

aten = torch.ops.aten

MOST_ROWS = 32
"""Rows that are multiplied at once at most; with more a matrix is not read much less often."""

OPEN_ROWS = 8
"""Rows that are multiplied at once where their number is not known: few enough for one token at a time."""


@translates(aten._grouped_mm.default, "transformers.grouped_mm_fallback.default")
def _grouped_product(
    t: Translation,
    node: fx.Node,
    x: Tensor,
    weights: Tensor,
    offs: Tensor | None = None,
    bias: None = None,
    out_dtype: torch.dtype | None = None,
) -> str:
    """Rows from one of `offs` to the next times the matrix of this group; rows behind the last one are 0.

    Each group becomes blocks of the same number of rows, a product each with the matrix that is its own: what a block
    holds beyond its group is not read.
    """
    if bias is not None or out_dtype not in (None, x.dtype) or weights.rank != 3:
        raise UntranslatableError("a grouped product with a bias, in another type, or of groups of columns")
    if offs is None and x.rank == 3:
        return t.emit("MatMul", x.name, weights.name)
    rows, groups = t.extent(x, 0), t.extent(weights, 0)
    if offs is None or x.rank != 2 or 0 in (rows, groups):
        raise UntranslatableError("a grouped product of groups that are not rows, or of none")
    ends = _Ends.of(t, t.cast(offs, torch.int64), groups)
    number = _count(t, rows)
    group = ends.group(t, number)
    block = _rows_at_once(rows, groups)
    if block == 1:
        chosen = t.emit("Gather", weights.name, group, axis=0)
        made = t.emit("MatMul", t.emit("Unsqueeze", x.name, t.onnx.integers([1])), chosen)
        made = t.emit("Squeeze", made, t.onnx.integers([1]))
    else:
        made = _in_blocks(t, x, weights, ends, number, group, block)
    seen = t.emit("Unsqueeze", t.emit("Less", number, ends.last), t.onnx.integers([1]))
    return t.emit("Where", seen, made, t.literal(0, x.dtype))


def _rows_at_once(rows: int | Size, groups: int | Size) -> int:
    """As many as there are for each group, up to the next power of two."""
    if isinstance(rows, Size) or isinstance(groups, Size):
        return OPEN_ROWS
    return min(MOST_ROWS, 1 << (max(1, math.ceil(rows / groups)) - 1).bit_length())


@dataclass(frozen=True, slots=True)
class _Ends:
    """Vectors of a number for each group: its first position, and that behind its last one; the end of all groups."""

    starts: str
    ends: str
    last: str
    groups: str

    @classmethod
    def of(cls, t: Translation, ends: str, groups: int | Size) -> _Ends:
        """Groups by their ends, which do not fall, and their number."""
        zero, one = t.onnx.integers([0]), t.onnx.integers([1])
        before = t.emit("Slice", ends, zero, t.onnx.integers([-1]), zero, one)
        starts = t.emit("Concat", zero, before, axis=0)
        last = t.emit("Gather", ends, t.onnx.constant(-1, "int64"), axis=0)
        return cls(starts, ends, last, t.operand(groups, torch.int64))

    def group(self, t: Translation, positions: str) -> str:
        """The group of each of a vector of positions; the last one of those behind them all."""
        column = t.emit("Unsqueeze", positions, t.onnx.integers([1]))
        over = t.emit("Cast", t.emit("LessOrEqual", self.ends, column), to=ONNX_TYPES[torch.int64])
        ended = reduced(t, "ReduceSum", over, [1], False)
        return t.emit("Min", ended, t.emit("Sub", self.groups, t.onnx.constant(1, "int64")))


def _in_blocks(t: Translation, x: Tensor, weights: Tensor, ends: _Ends, number: str, group: str, block: int) -> str:
    """Products of blocks, and of these the row that each of x became, by its `number` and `group`."""
    rows, size = t.operand(t.extent(x, 0), torch.int64), t.onnx.constant(block, "int64")
    held = t.emit("Sub", ends.ends, ends.starts)
    filled = t.emit("Div", t.emit("Add", held, t.onnx.constant(block - 1, "int64")), size)
    blocks = _Ends.of(t, t.emit("CumSum", filled, t.onnx.constant(0, "int64")), t.extent(weights, 0))
    most = t.emit("Min", rows, ends.groups)  # groups that have rows
    count = t.emit("Add", t.emit("Div", t.emit("Sub", rows, most), size), most)
    at = t.emit("Range", t.onnx.constant(0, "int64"), count, t.onnx.constant(1, "int64"))
    owner = blocks.group(t, at)
    first = t.emit("Mul", t.emit("Sub", at, t.emit("Gather", blocks.starts, owner, axis=0)), size)
    first = t.emit("Add", first, t.emit("Gather", ends.starts, owner, axis=0))
    places = t.emit("Add", t.emit("Unsqueeze", first, t.onnx.integers([1])), t.onnx.integers(range(block)))
    last = t.emit("Sub", rows, t.onnx.constant(1, "int64"))
    taken = t.emit("Gather", x.name, t.emit("Min", places, last), axis=0)
    made = t.emit("MatMul", taken, t.emit("Gather", weights.name, owner, axis=0))
    made = t.emit("Reshape", made, t.shape([-1, t.extent(weights, 2)]))
    begun = t.emit("Mul", t.emit("Gather", blocks.starts, group, axis=0), size)
    place = t.emit("Add", begun, t.emit("Sub", number, t.emit("Gather", ends.starts, group, axis=0)))
    end = t.emit("Sub", t.emit("Mul", count, size), t.onnx.constant(1, "int64"))
    return t.emit("Gather", made, t.emit("Min", place, end), axis=0)


def _count(t: Translation, length: int | Size) -> str:
    return t.emit("Range", *(t.operand(each, torch.int64) for each in (0, length, 1)))


@translates(aten.histc.default)
def _histogram(t: Translation, node: fx.Node, x: Tensor, bins: int = 100, least: float = 0, most: float = 0) -> str:
    """How many elements are in each of the bins between two limits; those outside and NaN are in none."""
    if not least < most or math.isinf(most - least):
        raise UntranslatableError("a histogram between limits that are those of the data")
    flat = t.emit("Reshape", x.name, t.onnx.integers([-1]))
    low, high = (t.literal(each, x.dtype) for each in (least, most))
    inside = t.emit("And", t.emit("GreaterOrEqual", flat, low), t.emit("LessOrEqual", flat, high))
    apart = t.emit("Sub", t.emit("Where", inside, flat, low), low)
    scaled = t.emit("Mul", apart, t.literal(bins, x.dtype))
    place = t.emit("Div", scaled, t.emit("Sub", high, low))
    place = t.emit("Min", t.emit("Cast", place, to=ONNX_TYPES[torch.int64]), t.onnx.constant(bins - 1, "int64"))
    none = t.emit("Expand", t.literal(0, x.dtype), t.onnx.integers([bins]))
    counted = t.emit("Cast", inside, to=ONNX_TYPES[x.dtype])
    return t.emit("ScatterElements", none, place, counted, axis=0, reduction="add")


@translates(aten._embedding_bag.default, aten._embedding_bag_forward_only.default)
def _bags(
    t: Translation,
    node: fx.Node,
    table: Tensor,
    indices: Tensor,
    offsets: Tensor,
    _scale: bool = False,
    mode: int = 0,
    _sparse: bool = False,
    weights: Tensor | None = None,
    include_last: bool = False,
    padding: int = -1,
) -> list[str | None]:
    """Sums, means or maxima of the rows of bags, which begin at `offsets`; bags of one length are a dimension."""
    if any(user.args[1] != 0 and user.users for user in node.users):
        raise UntranslatableError("the numbers of elements of bags")
    rows = t.emit("Gather", table.name, indices.name, axis=0)
    if weights is not None:
        rows = t.emit("Mul", rows, t.emit("Unsqueeze", weights.name, t.onnx.integers([1])))
    length = None if padding >= 0 else _length(node, include_last)
    if length is not None:
        sizes = [-1, length, t.extent(table, 1)]
        op = ("ReduceSum", "ReduceMean", "ReduceMax")[mode]
        return [reduced(t, op, t.emit("Reshape", rows, t.shape(sizes)), [1], False), None, None, None]
    inside = _in_bags(t, indices, offsets, include_last, padding)
    return [_ragged(t, node, rows, indices, offsets, inside, mode), None, None, None]


def _in_bags(t: Translation, indices: Tensor, offsets: Tensor, include_last: bool, padding: int) -> str:
    """Whether each index is one of a bag: neither padding nor behind the end of the last bag, where that is given."""
    inside = t.emit("Expand", t.literal(True, torch.bool), t.emit("Shape", indices.name))
    if include_last:
        end = t.emit("Gather", t.cast(offsets, torch.int64), t.onnx.constant(-1, "int64"), axis=0)
        inside = t.emit("Less", _count(t, t.extent(indices, 0)), end)
    if padding >= 0:
        pads = t.emit("Equal", indices.name, t.literal(padding, indices.dtype))
        inside = t.emit("And", inside, t.emit("Not", pads))
    return inside


def _length(node: fx.Node, include_last: bool) -> int | None:
    """How many indices each bag has where that is one number: offsets are its multiples, and the last bag is full."""
    offsets, indices = node.args[2], node.args[1]
    if include_last or not isinstance(offsets, fx.Node) or not isinstance(indices, fx.Node):
        return None
    if offsets.target is torch.ops.prims.iota.default:
        start, step = offsets.kwargs.get("start", 0), offsets.kwargs.get("step", 1)
    elif offsets.target is aten.arange.start_step:
        start, step = offsets.args[0], offsets.args[2] if len(offsets.args) > 2 else 1
    else:
        return None
    if start != 0 or not isinstance(step, int):
        return None
    whole, bags = indices.meta["val"].shape[0], offsets.meta["val"].shape[0]
    return step if expression(whole) == expression(bags) * step else None


def _ragged(t: Translation, node: fx.Node, rows: str, indices: Tensor, offsets: Tensor, inside: str, mode: int) -> str:
    """Bags of any length: each row is added to that of its bag, which is the number of offsets up to its place."""
    shape: Sequence[int | torch.SymInt] = node.meta["val"][0].shape
    bags = shape[0]
    if not isinstance(bags, int):
        raise UntranslatableError("an open number of bags of different lengths")
    dtype = node.meta["val"][0].dtype
    starts = t.emit("Slice", t.cast(offsets, torch.int64), t.onnx.integers([0]), t.onnx.integers([bags]))
    number = t.emit("Unsqueeze", _count(t, t.extent(indices, 0)), t.onnx.integers([1]))
    begun = t.emit("Cast", t.emit("LessOrEqual", starts, number), to=ONNX_TYPES[torch.int64])
    bag = t.emit("Sub", reduced(t, "ReduceSum", begun, [1], False), t.onnx.constant(1, "int64"))
    column = t.emit("Unsqueeze", bag, t.onnx.integers([1]))
    where = t.emit("Expand", column, t.emit("Shape", rows))
    neutral = t.literal(-math.inf if mode == 2 else 0, dtype)
    values = t.emit("Where", t.emit("Unsqueeze", inside, t.onnx.integers([1])), rows, neutral)
    begin = t.emit("Expand", neutral, t.onnx.integers([bags, int(shape[1])]))
    total = t.emit("ScatterElements", begin, where, values, axis=0, reduction="max" if mode == 2 else "add")
    if mode == 0:
        return total
    none = t.emit("Expand", t.literal(0, dtype), t.onnx.integers([bags]))
    held = t.emit("ScatterElements", none, bag, t.emit("Cast", inside, to=ONNX_TYPES[dtype]), axis=0, reduction="add")
    held = t.emit("Unsqueeze", held, t.onnx.integers([1]))
    if mode == 1:
        return t.emit("Div", total, t.emit("Max", held, t.literal(1, dtype)))
    return t.emit("Where", t.emit("Equal", held, t.literal(0, dtype)), t.literal(0, dtype), total)
