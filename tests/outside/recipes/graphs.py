"""Models of sets and graphs: sizes that are numbers of things."""

from __future__ import annotations

import numpy as np

from tests.outside.recipes.sketch import Sketch

F32, I64 = np.float32, np.int64


def shifts_of_atoms() -> Sketch:
    """Messages along edges, added up at their ends (chemical shifts of proteins)."""
    s = Sketch(17)
    width = 12
    element, edges = s.input("element", I64, "num_atoms"), s.input("edge_index", I64, 2, "num_edges")
    distance, place = s.input("edge_dist", F32, "num_edges"), s.input("pos", F32, "num_atoms", 3)
    targets = s.input("target_indices", I64, "num_residues", 6)
    known = s.input("target_mask", np.bool_, "num_residues", 6)
    x = s.op("Gather", s.weight(7, width, scale=1), element)
    sender, receiver = (s.op("Gather", edges, s.const(row), axis=0) for row in (0, 1))
    away = s.op("Sub", *(s.op("Gather", place, end, axis=0) for end in (sender, receiver)))
    clipped = s.op("Unsqueeze", s.op("Clip", distance, s.const(1e-6), ""), s.const([-1]))
    away = s.op("Mul", away, s.op("Mul", s.op("Reciprocal", clipped), s.const(1.0)))
    apart = s.op("Sub", s.op("Unsqueeze", distance, s.const([-1])), s.const(np.linspace(0, 5, 8, dtype=F32)))
    features = s.op("Exp", s.op("Mul", s.op("Pow", apart, s.const(2.0)), s.const(-1.5)))
    given = s.op("Concat", s.op("Gather", x, sender, axis=0), features, axis=-1)
    message = s.op("Gemm", given, s.weight(width, width + 8), s.weight(width), transB=1)
    message = s.op("Mul", message, s.op("Sigmoid", message))
    vector = s.op("Mul", s.op("Unsqueeze", message, s.const([-1])), s.op("Unsqueeze", away, s.const([1])))
    total = _added(s, message, receiver, s.size(x, 0), width)
    turned = s.op("ReduceL2", _added(s, vector, receiver, s.size(x, 0), width, 3), axes=[-1], keepdims=0)
    both = s.op("Gemm", s.op("Concat", total, turned, axis=-1), s.weight(width, 2 * width), s.weight(width), transB=1)
    x = s.op("LayerNormalization", s.op("Add", x, both), s.weight(width, scale=1), s.weight(width), axis=-1)
    found = s.op("Gather", x, targets, axis=0)
    kept = s.op("Mul", found, s.op("Cast", s.op("Unsqueeze", known, s.const([-1])), to=1))
    mean = s.op("Squeeze", s.linear(kept, width, 1), s.const([-1]))
    s.output(mean, "pred_mean", F32, "num_residues", 6)
    return s


def _added(s: Sketch, values: str, index: str, count: str, *inner: int) -> str:
    """Rows added up by the index of each, as PyTorch's exporter writes scatter_add and index_add."""
    for _ in inner:
        index = s.op("Unsqueeze", index, s.const([-1]))
    index = s.op("Expand", index, s.op("Shape", values))
    starts = s.const([0] * (len(inner) + 1))
    updates = s.op("Slice", values, starts, s.op("Shape", index))
    return s.op("ScatterElements", s.zeros(count, *inner), index, updates, axis=0, reduction="add")


def votes_of_a_set() -> Sketch:
    """Attention among the members of a set, none to itself, one more score beside them (detectors of traffic)."""
    s = Sketch(17)
    width, heads = 16, 2
    logit, z = s.input("logit", F32, "D", 5), s.input("Z", F32, "D", 5, width)
    act = s.input("act", F32, "D")
    shares = s.op("Softmax", logit, axis=1)
    there = s.op("Greater", logit, s.const(-1000.0))
    weights = s.op("Mul", s.op("Mul", shares, s.op("Cast", there, to=1)), s.op("Unsqueeze", act, s.const([1])))
    members, groups, inner = (s.size(z, axis) for axis in (0, 1, 2))
    rows, turned = s.op("Transpose", z, perm=[1, 0, 2]), s.op("Transpose", weights, perm=[1, 0])
    parts = [s.reshape(s.linear(rows, width, width), groups, members, heads, width // heads) for _ in "qkv"]
    query, value = (s.op("Transpose", parts[n], perm=[0, 2, 1, 3]) for n in (0, 2))
    scores = s.op("MatMul", query, s.op("Transpose", parts[1], perm=[0, 2, 3, 1]))
    scores = s.op("Div", scores, s.const((width // heads) ** 0.5))
    bias = s.op(
        "Unsqueeze", s.op("Unsqueeze", s.op("Log", s.op("Clip", turned, s.const(1e-6), "")), s.const([1])), s.const([2])
    )
    bias = s.op("Add", bias, s.op("ConstantOfShape", s.op("Shape", scores)))
    number = s.op("Cast", s.op("Gather", s.op("Shape", z), s.const(0), axis=0), to=7)
    count = s.op("Range", s.const(0), number, s.const(1))
    itself = s.op("Equal", *(s.op("Unsqueeze", count, s.const([axis])) for axis in (1, 0)))
    itself = s.op("Unsqueeze", s.op("Unsqueeze", itself, s.const([0])), s.const([1]))
    bias = s.op("Where", itself, s.const(-1e4), bias)
    nobody = s.op("ReduceSum", s.op("Mul", query, s.weight(1, heads, 1, width // heads)), s.const([-1]), keepdims=1)
    heard = s.op("Softmax", s.op("Concat", s.op("Add", scores, bias), nobody, axis=-1), axis=-1)
    heard = s.op("MatMul", s.slice(heard, 0, members, 3), value)
    heard = s.reshape(s.op("Transpose", heard, perm=[0, 2, 1, 3]), groups, members, inner)
    s.output(s.op("Transpose", heard, perm=[1, 0, 2]), "heard", F32, "D", 5, width)
    return s
