"""Operators that reduce: sums and extrema along axes, products of matrices, normalisations, sorting."""

from __future__ import annotations

import numpy as np

from fuzz.movement import axis_of
from fuzz.reference import Array, words
from fuzz.sketch import DTYPES, FLOATS, SIZES, Sketch
from fuzz.table import draws, since, types_of

REDUCTIONS = words(
    """
    ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp
    ReduceSumSquare
    """
)


@draws(6)
def reduction(s: Sketch) -> None:
    kind = s.choice(REDUCTIONS)
    if s.special:
        return
    logarithm = kind.startswith("ReduceLog")  # of whole numbers it is what a float gives that has no such number
    a = s.pick([t for t in types_of(kind, s.opset) if t in FLOATS or not logarithm])
    rank = s.rank(a)
    if kind in ("ReduceMax", "ReduceMin", "ReduceMean", "ReduceLogSum", "ReduceLogSumExp") and 0 in s.dims(a):
        return
    if not _sums(s.value(a).astype(np.float64), kind, s.type(a)):
        return
    axes = s.permutation(rank)[: s.integer(0, rank)]
    if 0 not in s.dims(a):  # onnxruntime takes axes from the end for others there
        axes = [k - rank if s.chance(0.2) else k for k in axes]
    attributes: dict[str, object] = {"keepdims": s.integer(0, 1)}
    inputs = [a]
    operand = s.opset >= (13 if kind == "ReduceSum" else 18)
    if axes and operand:
        inputs.append(s.numbers(*axes))
    elif axes:
        attributes["axes"] = axes
    elif s.type(a) in FLOATS and operand and s.chance(0.3):
        attributes["noop_with_empty_axes"] = 1
    s.node(kind, inputs, **attributes)


def _sums(x: Array, kind: str, ttype: str) -> bool:
    """Whether a reduction gives the same in any order: whole numbers stay in range, products of floats near 1."""
    if kind == "ReduceProd":
        with np.errstate(divide="ignore"):
            return float(np.abs(np.log(np.abs(x[x != 0]))).sum()) < (8 if ttype == "f16" else 20)
    if ttype in FLOATS:
        return True
    return float((x * x if kind in ("ReduceSumSquare", "ReduceL2") else np.abs(x)).sum()) < 2**31


@draws(2)
def arg_reduction(s: Sketch) -> None:
    kind = s.choice(("ArgMax", "ArgMin"))
    if s.special:
        return
    a = s.pick(types_of(kind, s.opset), least=1, where=lambda n: 0 not in s.dims(n))
    last = {"select_last_index": s.integer(0, 1)} if s.opset >= 12 else {}
    s.node(kind, [a], axis=axis_of(s, a), keepdims=s.integer(0, 1), **last)


@draws(2)
def top_k(s: Sketch) -> None:
    if s.special:
        return
    a = s.pick(types_of("TopK", s.opset), least=1, where=lambda n: 0 not in s.dims(n))
    axis = axis_of(s, a)
    s.node("TopK", [a, s.numbers(s.integer(1, s.dims(a)[axis]))], outputs=2, axis=axis, largest=s.integer(0, 1))


@draws(2)
def cumulative_sum(s: Sketch) -> None:
    a = s.pick(types_of("CumSum", s.opset), least=1)
    axis = s.numbers_scalar(axis_of(s, a), kind=s.choice(("i64", "i32")))
    s.node("CumSum", [a, axis], exclusive=s.integer(0, 1), reverse=s.integer(0, 1))


@draws(4)
def softmax(s: Sketch) -> None:
    kind = s.choice(("Softmax", "LogSoftmax", "Hardmax"))
    if s.special:
        return
    a = s.pick(types_of(kind, s.opset), least=1)
    s.node(kind, [a], axis=axis_of(s, a))


@draws(6)
def matmul(s: Sketch) -> None:
    a = s.pick(types_of("MatMul", s.opset), least=1, most=4)
    shape, kind = s.dims(a), s.type(a)
    k, m = shape[-1], (shape[-2] if len(shape) > 1 else 1)
    if s.chance(0.25):  # something that is there
        fits = [n for n in s.trace.copies if s.type(n) == kind and s.rank(n) == 2 and s.dims(n)[0] == k]
        if fits:
            s.node("MatMul", [a, s.choice(fits)])
            return
    batch = s.partner(shape[:-2]) if s.chance(0.4) else ()
    other = (*batch, k, s.size()) if s.chance(0.85) else (k,)
    if np.prod(np.broadcast_shapes(shape[:-2], other[:-2])) * m * other[-1] > s.most:
        return
    b = s.new(kind, other)
    if s.chance(0.15) and len(other) > 1 and len(shape) > 1:
        s.node("MatMul", [s.new(kind, (*other[:-2], m, k)), _turned(s, b)])
    else:
        s.node("MatMul", [a, b])


def _turned(s: Sketch, name: str) -> str:
    """A transposed copy that is transposed back."""
    rank = s.rank(name)
    order = [*range(rank - 2), rank - 1, rank - 2]
    stored = s.given(np.ascontiguousarray(s.value(name).transpose(order)), s.chance(0.5))
    return (s.node("Transpose", [stored], perm=order) or [name])[0]


@draws(2)
def gemm(s: Sketch) -> None:
    kind = s.choice(types_of("Gemm", s.opset))
    m, n, k = s.size(), s.size(), s.size()
    flip_a, flip_b = s.integer(0, 1), s.integer(0, 1)
    fits = [x for x in s.trace.copies if s.rank(x) == 2 and s.type(x) == kind]
    if fits and s.chance(0.7):
        a = s.choice(fits)
        m, k = s.dims(a)[::-1] if flip_a else s.dims(a)
    else:
        a = s.new(kind, (k, m) if flip_a else (m, k))
    inputs = [a, s.new(kind, (n, k) if flip_b else (k, n))]
    if s.chance(0.7):
        inputs.append(s.new(kind, s.choice(((m, n), (n,), (1, n), (m, 1), (1,), ()))))
    if kind not in FLOATS and any(np.abs(s.value(x).astype(np.float64)).max(initial=0) > 1000 for x in inputs):
        return  # the judge multiplies by alpha in floats
    scales = {"alpha": s.choice((1.0, 0.5, 2.0)), "beta": s.choice((1.0, 0.25))} if kind in FLOATS else {}
    if k == 0 and scales.get("beta", 1.0) != 1.0:
        return  # onnxruntime leaves beta out where there is nothing to multiply
    s.node("Gemm", inputs, transA=flip_a, transB=flip_b, **scales)


EQUATIONS = words(
    """
    ij,jk->ik ij,kj->ik bij,bjk->bik bhqd,bhkd->bhqk bqhd,bkhd->bhqk ij->ji ii->i ij,ij->ij ij,ij-> i,j->ij ij->j
    ...ij,jk->...ik abc,cd->abd ijk,ijl->kl ij,jk,kl->il ij,j->i bij,bkj->bik
    """
)


@draws(2)
def einsum(s: Sketch) -> None:
    if s.opset < 12:
        return
    equation = s.choice(EQUATIONS)
    kind = s.choice(("f32", "f32", "f64", "f16", "i32", "i64"))
    sizes = {letter: s.choice((1, 2, 3, 5, 8, 13)) for letter in equation if letter.isalpha()}
    batch = tuple(s.integer(1, 3) for _ in range(s.integer(0, 2)))
    inputs = []
    for term in equation.split("->")[0].split(","):
        shape = (*(batch if "." in term else ()), *(sizes[x] for x in term.strip(".")))
        fits = [n for n in s.trace.copies if s.type(n) == kind and s.dims(n) == shape]
        inputs.append(s.choice(fits) if fits and s.chance(0.7) else s.new(kind, shape))
    if kind in FLOATS or all(np.abs(s.value(x).astype(np.float64)).max(initial=0) < 1000 for x in inputs):
        s.node("Einsum", inputs, equation=equation)


@draws(3)
def normalization(s: Sketch) -> None:
    kind = s.choice(
        words(
            """
    LayerNormalization BatchNormalization InstanceNormalization GroupNormalization LpNormalization
    MeanVarianceNormalization RMSNormalization LRN
    """
        )
    )
    if since(kind) > s.opset or s.special:
        return
    types = tuple(t for t in types_of(kind, s.opset) if t in FLOATS)
    spatial = kind not in ("LayerNormalization", "LpNormalization", "RMSNormalization")
    a = s.pick(types, 4 if kind in ("LRN", "MeanVarianceNormalization") else 3 if spatial else 1, 4)
    shape, ttype = s.dims(a), s.type(a)
    if 0 in shape:
        return
    if kind in ("LayerNormalization", "RMSNormalization"):
        axis = axis_of(s, a)
        scale = s.new(ttype, shape[axis:])
        more = [s.new(ttype, shape[axis:])] if kind[0] == "L" and s.chance(0.7) else []
        s.node(kind, [a, scale, *more], axis=axis, epsilon=s.choice((1e-5, 1e-2)))
    elif kind == "BatchNormalization":
        scale, bias, mean = (s.new(ttype, shape[1:2]) for _ in range(3))
        variance = s.given(np.asarray(s.rng.uniform(0.2, 2.0, shape[1:2]), s.value(a).dtype))
        s.node(kind, [a, scale, bias, mean, variance], epsilon=1e-3)
    elif kind == "InstanceNormalization":
        s.node(kind, [a, s.new(ttype, shape[1:2]), s.new(ttype, shape[1:2])], epsilon=1e-2)
    elif kind == "GroupNormalization":
        groups = s.choice([g for g in range(1, shape[1] + 1) if shape[1] % g == 0])
        width = shape[1:2] if s.opset >= 21 else (groups,)
        s.node(kind, [a, s.new(ttype, width), s.new(ttype, width)], num_groups=groups, epsilon=1e-2)
    elif kind == "LpNormalization":
        s.node(kind, [a], axis=axis_of(s, a), p=s.integer(1, 2))
    elif kind == "LRN":
        s.node(kind, [a], size=s.choice((1, 3, 5)), alpha=0.1, bias=1.5)
    else:
        s.node(kind, [a])


@draws(2)
def quantization(s: Sketch) -> None:
    kind = s.choice(("QuantizeLinear", "DequantizeLinear", "MatMulInteger", "DynamicQuantizeLinear"))
    if s.special:
        return
    narrow = s.choice(("i8", "u8"))
    if kind == "DynamicQuantizeLinear":
        s.node(kind, [s.pick(("f32",), where=lambda n: 0 not in s.dims(n))], outputs=3)
    elif kind == "MatMulInteger":
        a = s.pick(("i8", "u8"), least=2, most=4)
        points = [s.given(np.asarray(s.integer(0, 9), DTYPES[t])) for t in (s.type(a), narrow)]
        s.node(kind, [a, s.new(narrow, (s.dims(a)[-1], s.choice(SIZES))), *points[: s.integer(0, 2)]])
    else:
        a = s.pick(("f32",) if kind[0] == "Q" else ("i8", "u8"), least=1, most=4)
        narrow = s.type(a) if kind[0] == "D" else narrow
        axis = s.integer(0, s.rank(a) - 1)
        shape = s.dims(a)[axis : axis + 1] if s.chance(0.5) else ()
        scale = s.given(np.asarray(s.rng.uniform(0.01, 0.5, shape), np.float32), s.chance(0.2))
        point = s.given(np.asarray(s.rng.integers(0, 20, shape), DTYPES[narrow]), s.chance(0.2))
        along = {"axis": axis} if s.opset >= 13 else {}
        if shape and not along:
            return
        s.node(kind, [a, scale, point] if kind[0] == "Q" or s.chance(0.7) else [a, scale], **along)
