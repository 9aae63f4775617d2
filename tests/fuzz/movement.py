"""Operators that move elements: shapes, slices, joins, padding, and reads and writes at indices."""

from __future__ import annotations

import numpy as np

from fuzz.sketch import ALL, NUMBERS, Sketch
from fuzz.table import draws, since, types_of


def axis_of(s: Sketch, name: str) -> int:
    """An axis, now and then counted from the end."""
    rank = s.rank(name)
    axis = s.integer(0, rank - 1)
    return axis - rank if s.chance(0.3) else axis


@draws(3)
def transpose(s: Sketch) -> None:
    a = s.pick(ALL, least=1)
    if s.chance(0.15):
        s.node("Transpose", [a])
    else:
        s.node("Transpose", [a], perm=s.permutation(s.rank(a)))


@draws(4)
def reshape(s: Sketch) -> None:
    a = s.pick(ALL)
    shape = list(s.dims(a))
    for _ in range(s.integer(1, 3)):  # merge neighbours, split factors, add ones
        if len(shape) >= 2 and s.chance(0.4):
            k = s.integer(0, len(shape) - 2)
            shape[k : k + 2] = [shape[k] * shape[k + 1]]
        elif shape and s.chance(0.6):
            k = s.integer(0, len(shape) - 1)
            factors = [f for f in range(2, shape[k]) if shape[k] % f == 0]
            if factors:
                f = s.choice(factors)
                shape[k : k + 1] = [f, shape[k] // f]
        elif len(shape) < 5:
            shape.insert(s.integer(0, len(shape)), 1)
    if shape and np.prod(shape) and s.chance(0.3):
        shape[s.integer(0, len(shape) - 1)] = -1
    zero = 0 in shape
    s.node("Reshape", [a, s.numbers(*shape)], **({"allowzero": 1} if zero and s.opset >= 14 else {}))


@draws(2)
def ranks(s: Sketch) -> None:
    kind = s.choice(("Flatten", "Squeeze", "Unsqueeze"))
    if kind == "Flatten":
        a = s.pick(ALL)
        s.node(kind, [a], axis=s.integer(-s.rank(a), s.rank(a)))
    elif kind == "Squeeze":
        a = s.pick(ALL, where=lambda n: 1 in s.dims(n))
        ones = [k for k, n in enumerate(s.dims(a)) if n == 1]
        axes = [k for k in ones if s.chance(0.7)] or ones[:1]
        if s.chance(0.2):
            s.node(kind, [a])
        else:
            _with_numbers(s, kind, a, "axes", axes)
    else:
        a = s.pick(ALL, most=4)
        _with_numbers(s, kind, a, "axes", [s.integer(-s.rank(a) - 1, s.rank(a))])


def _with_numbers(s: Sketch, kind: str, a: str, name: str, values: list[int], **attributes: int) -> None:
    """A node whose numbers are an operand, before opset 13 an attribute; then there may be several outputs."""
    outputs = len(values) if name == "split" else 1
    if s.opset >= 13:
        s.node(kind, [a, s.numbers(*values)], outputs=outputs, **attributes)
    else:
        s.node(kind, [a], outputs=outputs, **{name: values}, **attributes)


@draws(5)
def slices(s: Sketch) -> None:
    a = s.pick(ALL, least=1)
    rank = s.rank(a)
    axes = s.permutation(rank)[: s.integer(1, min(rank, 3))]
    starts, ends, steps = [], [], []
    for axis in axes:
        n = s.dims(a)[axis]
        low, high = sorted((s.integer(0, n), s.integer(0, n)))
        step = s.choice((1, 1, 2, 3, -1, -1, -2))
        if step > 0:
            start, end = low, high if s.chance(0.7) else 2**31
        else:
            start, end = high - 1, low - 1 if low else -(2**31)
            start = start if start >= 0 else 2**31
        starts.append(start - n if s.chance(0.2) and 0 <= start < n else start)
        ends.append(end)
        steps.append(step)
    axes = [k - rank if s.chance(0.2) else k for k in axes]
    s.node("Slice", [a, s.numbers(*starts), s.numbers(*ends), s.numbers(*axes), s.numbers(*steps)])


@draws(4)
def concat(s: Sketch) -> None:
    a = s.pick(ALL, least=1, most=4)
    axis = s.integer(0, s.rank(a) - 1)
    kind, shape = s.type(a), s.dims(a)

    def joins(name: str) -> bool:
        dims = s.dims(name)
        return len(dims) == len(shape) and all(
            x == y or k == axis for k, (x, y) in enumerate(zip(dims, shape, strict=True))
        )

    fits = [n for n in s.trace.copies if s.type(n) == kind and joins(n)]
    parts = [a]
    for _ in range(s.choice((0, 1, 1, 1, 2, 3, 9))):
        other = (*shape[:axis], s.size(), *shape[axis + 1 :])
        parts.append(s.choice(fits) if s.chance(0.7) or np.prod(other) > s.most else s.new(kind, other))
    s.rng.shuffle(parts)
    s.node("Concat", parts, axis=axis if s.chance(0.7) else axis - len(shape))


@draws(2)
def split(s: Sketch) -> None:
    a = s.pick(ALL, least=1, where=lambda n: max(s.dims(n)) >= 2)
    axes = [k for k, n in enumerate(s.dims(a)) if n >= 2]
    axis = s.choice(axes)
    n = s.dims(a)[axis]
    if s.opset >= 18 and s.chance(0.4):
        count = s.integer(2, min(n, 4))
        s.node("Split", [a], outputs=count, axis=axis, num_outputs=count)
    else:
        cuts = sorted(s.integer(0, n) for _ in range(s.integer(1, 3)))
        sizes = np.diff([0, *cuts, n])
        if (sizes == 0).any() and not s.zeros:
            return
        _with_numbers(s, "Split", a, "split", [int(size) for size in sizes], axis=axis)


@draws(3)
def pad(s: Sketch) -> None:
    a = s.pick(types_of("Pad", s.opset), least=1, most=4)
    mode = s.choice(("constant", "constant", "reflect", "edge") + (("wrap",) if s.opset >= 19 else ()))
    shape = s.dims(a)
    low, high = ([s.integer(0, 3) for _ in shape] for _ in range(2))
    if mode == "constant" and s.chance(0.3):  # cuts
        k = s.integer(0, len(shape) - 1)
        low[k] = -s.integer(0, max(shape[k] // 2, 0))
    if mode != "constant":
        if 0 in shape:
            return
        room = [n - 1 if mode == "reflect" else n for n in shape]
        low, high = ([min(p, r) for p, r in zip(side, room, strict=True)] for side in (low, high))
    inputs = [a, s.numbers(*low, *high)]
    if mode == "constant" and s.chance(0.6):
        inputs.append(s.new(s.type(a), ()))
    s.node("Pad", inputs, mode=mode)


@draws(2)
def grow(s: Sketch) -> None:
    kind = s.choice(("Tile", "Expand"))
    if kind == "Tile":
        a = s.pick(types_of(kind, s.opset), least=1, most=4)
        s.node(kind, [a, s.numbers(*(s.choice((1, 1, 2, 3)) for _ in s.dims(a)))])
    else:
        a = s.pick(ALL, most=4)
        shape = [s.size() if n == 1 else n for n in s.dims(a)]
        shape = [s.integer(1, 3)] * s.integer(0, 1) + shape
        s.node(kind, [a, s.numbers(*(1 if s.chance(0.2) else n for n in shape))])


@draws(2)
def blocks(s: Sketch) -> None:
    kind = s.choice(("DepthToSpace", "SpaceToDepth"))
    n, c, h, w = s.integer(1, 2), s.integer(1, 3), s.integer(1, 4), s.integer(1, 5)
    block = s.integer(1, 3)
    shape = (n, c * block * block, h, w) if kind == "DepthToSpace" else (n, c, h * block, w * block)
    a = s.new(s.choice(types_of(kind, s.opset)), shape)
    mode = {"mode": s.choice(("DCR", "CRD"))} if kind == "DepthToSpace" else {}
    s.node(kind, [a], blocksize=block, **mode)


def indices(s: Sketch, shape: tuple[int, ...], size: int) -> str:
    """Indices into an axis, some counted from the end."""
    kind = s.choice(("i64", "i32"))
    drawn = s.rng.integers(-size, size, shape).astype("int64" if kind == "i64" else "int32")
    return s.given(np.asarray(drawn), s.chance(0.6))


@draws(3)
def gather(s: Sketch) -> None:
    a = s.pick(ALL, least=1, most=4)
    axis = axis_of(s, a)
    size = s.dims(a)[axis]
    if size == 0:
        return
    kind = s.choice(("Gather", "GatherElements"))
    if kind == "Gather":
        s.node(kind, [a, indices(s, s.shape(0, 2), size)], axis=axis)
    else:
        shape = list(s.dims(a))
        shape[axis] = s.integer(1, 6)
        s.node(kind, [a, indices(s, tuple(shape), size)], axis=axis)


@draws(1)
def gather_nd(s: Sketch) -> None:
    a = s.pick(ALL, least=1, most=4, where=lambda n: 0 not in s.dims(n))
    shape = s.dims(a)
    batch = s.integer(0, 1) if len(shape) > 1 and s.opset >= 12 else 0
    depth = s.integer(1, len(shape) - batch)
    rows = (*shape[:batch], *(s.size() for _ in range(s.integer(1, 2))))
    if np.prod(rows) * np.prod(shape[batch + depth :]) > s.most:
        return
    columns = [s.rng.integers(-n, n, rows) for n in shape[batch : batch + depth]]
    s.node("GatherND", [a, s.given(np.stack(columns, -1), s.chance(0.6))], batch_dims=batch)


@draws(2)
def scatter(s: Sketch) -> None:
    kind = s.choice(("ScatterElements", "ScatterND"))
    a = s.pick(types_of(kind, s.opset), least=1, most=4, where=lambda n: 0 not in s.dims(n))
    shape, ttype = s.dims(a), s.type(a)
    reductions = ("none", "add", "mul", "max", "min")[: 5 if s.opset >= 18 else 3 if s.opset >= 16 else 1]
    reduction = s.choice(reductions) if ttype != "bool" and not s.special else "none"
    if kind == "ScatterElements":
        axis = s.integer(0, len(shape) - 1)
        sizes = [s.integer(1, n) for n in shape]
        if reduction == "none":  # every place is written once
            sizes[axis] = s.integer(1, shape[axis])
            order = s.rng.permuted(np.broadcast_to(_along(np.arange(shape[axis]), axis, len(shape)), shape), axis=axis)
            index = order[tuple(slice(0, n) for n in sizes)]
        else:
            index = s.rng.integers(-shape[axis], shape[axis], sizes)
        updates = s.new(ttype, index.shape)
        extra = {"reduction": reduction} if s.opset >= 16 else {}
        s.node(kind, [a, s.given(np.asarray(index, np.int64), s.chance(0.6)), updates], axis=axis, **extra)
        return
    depth = s.integer(1, len(shape))
    places = int(np.prod(shape[:depth]))
    count = s.integer(1, min(places, 8))
    flat = s.rng.choice(places, count, replace=reduction != "none")
    index = np.stack(np.unravel_index(flat, shape[:depth]), -1)
    updates = s.new(ttype, (count, *shape[depth:]))
    extra = {"reduction": reduction} if s.opset >= 16 else {}
    s.node(kind, [a, s.given(np.asarray(index, np.int64), s.chance(0.6)), updates], **extra)


def _along(values: np.ndarray, axis: int, rank: int) -> np.ndarray:
    return values.reshape([-1 if k == axis else 1 for k in range(rank)])


@draws(1)
def one_hot(s: Sketch) -> None:
    depth = s.integer(1, 9)
    index = indices(s, s.shape(0, 3), depth)
    values = s.given(s.value(s.new(s.choice(NUMBERS), (2,))))
    s.node("OneHot", [index, s.numbers(depth), values], axis=s.integer(-1, s.rank(index)))


@draws(1)
def triangle(s: Sketch) -> None:
    if s.opset < 14:
        return
    a = s.pick(ALL, least=2)
    s.node("Trilu", [a, s.numbers_scalar(s.integer(-3, 3))], upper=s.integer(0, 1))


@draws(1)
def reverse_sequence(s: Sketch) -> None:
    a = s.pick(ALL, least=2, where=lambda n: 0 not in s.dims(n))
    batch = s.integer(0, 1)
    lengths = s.rng.integers(1, s.dims(a)[1 - batch] + 1, s.dims(a)[batch])
    s.node("ReverseSequence", [a, s.given(np.asarray(lengths), s.chance(0.6))], batch_axis=batch, time_axis=1 - batch)


@draws(0.5)
def shapes(s: Sketch) -> None:
    kind = s.choice(("Shape", "Size", "ConstantOfShape", "EyeLike", "Range"))
    if kind == "ConstantOfShape":
        s.node(kind, [s.numbers(*s.shape(1, 3))])
    elif kind == "Range":
        start, step, count = s.integer(-5, 5), s.choice((-2, -1, 1, 3)), s.integer(0 if s.zeros else 1, 20)
        s.node(kind, [s.numbers_scalar(start), s.numbers_scalar(start + step * count), s.numbers_scalar(step)])
    elif kind == "EyeLike":
        s.node(kind, [s.pick(NUMBERS, 2, 2)], k=s.integer(-2, 2))
    elif since(kind) <= s.opset:
        s.node(kind, [s.pick(ALL)])
