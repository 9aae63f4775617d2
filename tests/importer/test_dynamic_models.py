"""Models with symbolic sizes as exporters write them: every node compiles, all sizes that they accept are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import helper

from tests.importer.reference import normal, onnxruntime, run, save
from tilec.errors import UsageError
from tilec.importer import import_model
from tilec.ir.bind import bind
from tilec.ir.restrict import restricted
from tilec.ir.sizes import SymbolRange
from tilec.ir.text import text_of

Shape = Sequence[int | str]


@dataclass(frozen=True)
class Case:
    """A model: its nodes, inputs and weights, the sizes to try, and what import learns of the sizes."""

    nodes: Sequence[Any]
    inputs: Mapping[str, Shape]
    outputs: Sequence[str]
    weights: Mapping[str, NDArray[Any]]
    sizes: Sequence[Mapping[str, int]]
    facts: Sequence[str]
    refused: Mapping[str, int] | None = None


def ints(*values: int) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def node(kind: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    return helper.make_node(kind, inputs.split(), outputs.split(), name=outputs.split()[0], **attributes)


def attention() -> Case:
    """scaled_dot_product_attention: a batch and a number of tokens for each operand."""
    nodes = [
        node("Transpose", "k", "kt", perm=[0, 1, 3, 2]),
        node("MatMul", "q kt", "scores"),
        node("Mul", "scores scale", "scaled"),
        node("Softmax", "scaled", "p", axis=-1),
        node("MatMul", "p v", "y"),
    ]
    inputs = {"q": ("s77", 2, "s69", 4), "k": ("s60", 2, "s49", 4), "v": ("s12", 2, "s34", 4)}
    sizes = [{"s77": b, "s69": n, "s49": m} for b, n, m in ((1, 1, 1), (2, 3, 5), (3, 7, 2))]
    sizes = [{**each, "s60": each["s77"], "s12": 1} for each in sizes]
    known = [
        "s34 = s49 (y)",
        "s77 == s60 or s77 == 1 or s60 == 1 (scores)",
        "where(s77 == 1, s60, s77) == s12 or where(s77 == 1, s60, s77) == 1 or s12 == 1 (y)",
    ]
    return Case(nodes, inputs, ["y"], {"scale": np.float32(0.5)}, sizes, known, {"s49": 3, "s34": 4})


def unet() -> Case:
    """Two strided convolutions, two transposed ones, and concatenations of what fits."""
    nodes = [
        node("Conv", "x w0", "a", pads=[1, 1, 1, 1]),
        node("Conv", "a w1", "b", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Conv", "b w2", "c", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("ConvTranspose", "c w3", "d", strides=[2, 2]),
        node("Concat", "b d", "e", axis=1),
        node("ConvTranspose", "e w4", "f", strides=[2, 2]),
        node("Concat", "a f", "y", axis=1),
    ]
    shapes = {"w0": (2, 1, 3, 3), "w1": (2, 2, 3, 3), "w2": (3, 2, 3, 3), "w3": (3, 2, 2, 2), "w4": (4, 2, 2, 2)}
    weights = {name: normal(*shape) for name, shape in shapes.items()}
    facts = [f"{s}: 1.., a multiple of 4 (a)" for s in "hw"]
    sizes = [{"n": n, "h": h, "w": w} for n, h, w in ((1, 4, 4), (2, 8, 12), (1, 16, 4))]
    return Case(nodes, {"x": ("n", 1, "h", "w")}, ["y"], weights, sizes, facts, {"n": 1, "h": 6, "w": 4})


def divided() -> Case:
    """A Reshape whose quotient must be exact, and back."""
    nodes = [
        node("Reshape", "x shape", "a"),
        node("Relu", "a", "b"),
        node("Shape", "x", "s"),
        node("Reshape", "b s", "c"),
        node("Add", "c x", "y"),
    ]
    sizes = [{"s0": 3, "s1": 4}, {"s0": 12, "s1": 1}, {"s0": 6, "s1": 6}]
    facts = ["s0: 1.. (c)", "s0 * s1 % 12 == 0 (a)"]
    return Case(
        nodes, {"x": ("s0", "s1", 1, 32)}, ["a", "y"], {"shape": ints(12, -1, 32)}, sizes, facts, {"s0": 5, "s1": 1}
    )


def encoder() -> Case:
    """A layer of a TransformerEncoder as torch writes it: packed projections, heads by Reshape of computed shapes, a
    mask with sizes of its own, layer norms."""
    width, heads, inner = 8, 2, 16
    tokens, batch = "s0", "s1"
    nodes = [
        node("Shape", "x", "tokens", start=0, end=1),
        node("Shape", "x", "batch", start=1, end=2),
        node("MatMul", "x w_in", "qkv0"),
        node("Add", "qkv0 b_in", "qkv"),
        node("Split", "qkv", "q k v", axis=-1, num_outputs=3),
        node("Mul", "batch heads", "batches"),
        node("Concat", "tokens batches channels", "split", axis=0),
        *(node("Reshape", f"{name} split", f"{name}1") for name in "qkv"),
        *(node("Transpose", f"{name}1", f"{name}2", perm=[1, 0, 2]) for name in "qv"),
        node("Transpose", "k1", "k2", perm=[1, 2, 0]),
        node("MatMul", "q2 k2", "scores"),
        node("Mul", "scores scale", "scaled"),
        node("Add", "scaled mask", "masked"),
        node("Softmax", "masked", "p", axis=-1),
        node("MatMul", "p v2", "o0"),
        node("Transpose", "o0", "o1", perm=[1, 0, 2]),
        node("Concat", "tokens batch width", "merged", axis=0),
        node("Reshape", "o1 merged", "o2"),
        node("MatMul", "o2 w_out", "o3"),
        node("Add", "x o3", "r"),
        node("LayerNormalization", "r gain shift", "l", axis=-1),
        node("MatMul", "l w1", "f0"),
        node("Relu", "f0", "f1"),
        node("MatMul", "f1 w2", "f2"),
        node("Add", "l f2", "r2"),
        node("LayerNormalization", "r2 gain shift", "y", axis=-1),
    ]
    weights = {
        "w_in": normal(width, 3 * width) * 0.3,
        "b_in": normal(3 * width),
        "w_out": normal(width, width) * 0.3,
        "w1": normal(width, inner) * 0.3,
        "w2": normal(inner, width) * 0.3,
        "gain": normal(width),
        "shift": normal(width),
        "heads": ints(heads),
        "channels": ints(width // heads),
        "width": ints(width),
        "scale": np.float32(0.5),
    }
    sizes = [{tokens: n, batch: b, "s2": n if b > 2 else 1, "s3": n} for n, b in ((1, 1), (5, 2), (3, 4))]
    inputs = {"x": (tokens, batch, width), "mask": ("s2", "s3")}
    known = ["s3 == s0 or s3 == 1 (o0)", "s2 == s0 or s2 == 1 (o2)"]
    return Case(nodes, inputs, ["y"], weights, sizes, known)


def spectrum() -> Case:
    """Frames of a signal, and features of them."""
    nodes = [
        node("STFT", "x step window length", "a", onesided=1),
        node("Mul", "a a", "b"),
        node("ReduceSum", "b last", "y", keepdims=0),
    ]
    weights = {
        "step": np.int64(4),
        "window": np.hanning(16).astype(np.float32),
        "length": np.int64(16),
        "last": ints(-1),
    }
    sizes = [{"b": b, "n": n} for b, n in ((1, 16), (2, 19), (1, 64))]
    return Case(nodes, {"x": ("b", "n", 1)}, ["y"], weights, sizes, ["n: 16.. (a)"], {"b": 1, "n": 8})


def causal() -> Case:
    """Positions by Range, a table of them, a mask by comparison, Expand to computed shapes, the last token."""
    nodes = [
        node("Shape", "x", "n", start=1, end=2),
        node("Squeeze", "n", "length"),
        node("Range", "zero length one", "positions"),
        node("Gather", "table positions", "rows"),
        node("Add", "x rows", "a"),
        node("Unsqueeze", "positions first", "columns"),
        node("Unsqueeze", "positions last", "lines"),
        node("LessOrEqual", "columns lines", "seen"),
        node("Transpose", "a", "at", perm=[0, 2, 1]),
        node("MatMul", "a at", "scores"),
        node("Where", "seen scores low", "masked"),
        node("Softmax", "masked", "p", axis=-1),
        node("MatMul", "p a", "b"),
        node("Slice", "b minus far one_", "y"),
    ]
    weights = {
        "zero": np.int64(0),
        "one": np.int64(1),
        "first": ints(0),
        "last": ints(-1),
        "one_": ints(1),
        "minus": ints(-1),
        "far": ints(1 << 62),
        "low": np.float32(-1e9),
        "table": normal(10, 4),
    }
    sizes = [{"b": b, "s": s} for b, s in ((1, 1), (2, 5), (3, 10))]
    return Case(nodes, {"x": ("b", "s", 4)}, ["y"], weights, sizes, ["s: 0..10 (rows)"], {"b": 1, "s": 11})


def recurrence() -> Case:
    """Two LSTMs as torch writes them: states of zeros of a computed shape, directions joined by Shape and Reshape."""
    steps, batch, width, hidden = "s0", "s1", 3, 4
    nodes = [
        node("Shape", "x", "batch", start=1, end=2),
        node("Concat", "layers batch hidden", "states", axis=0),
        node("Expand", "zero states", "zeros"),
        node("Slice", "zeros first second first", "z0"),
        node("LSTM", "x w0 r0 b0 - z0 z0", "h0", hidden_size=hidden),
        node("Transpose", "h0", "t0", perm=[0, 2, 1, 3]),
        node("Shape", "t0", "shape"),
        node("Slice", "shape first third", "outer"),
        node("Slice", "shape third last", "inner"),
        node("ReduceProd", "inner first", "features", keepdims=1),
        node("Concat", "outer features", "joined", axis=0),
        node("Reshape", "t0 joined", "x1"),
        node("Slice", "zeros second third first", "z1"),
        node("GRU", "x1 w1 r1 b1 - z1", "h1", hidden_size=hidden, linear_before_reset=1),
        node("Squeeze", "h1 second", "y"),
    ]
    for each in nodes:
        each.input[:] = ["" if name == "-" else name for name in each.input]
    weights = {
        "layers": ints(2),
        "hidden": ints(hidden),
        "zero": np.float32([0]),
        "first": ints(0),
        "second": ints(1),
        "third": ints(2),
        "last": ints(4),
        "w0": normal(1, 4 * hidden, width),
        "r0": normal(1, 4 * hidden, hidden),
        "b0": normal(1, 8 * hidden),
        "w1": normal(1, 3 * hidden, hidden),
        "r1": normal(1, 3 * hidden, hidden),
        "b1": normal(1, 6 * hidden),
    }
    sizes = [{steps: n, batch: b} for n, b in ((1, 1), (5, 2), (3, 4))]
    return Case(nodes, {"x": (steps, batch, width)}, ["y"], weights, sizes, [])


def crossed() -> Case:
    """A MultiheadAttention over another sequence as torch writes it: keys and values by one product, heads beside
    batches, a mask of keys with sizes of its own."""
    width, heads = 8, 2
    nodes = [
        node("Shape", "x", "queries", start=1, end=2),
        node("Shape", "y", "batch_y", start=0, end=1),
        node("Shape", "m", "batch_m", start=0, end=1),
        node("Shape", "m", "keys", start=1, end=2),
        node("Greater", "m limit", "hidden"),
        node("Shape", "m", "of_m"),
        node("Expand", "zero of_m", "zeros"),
        node("Where", "hidden low zeros", "penalty"),
        node("Transpose", "x", "xt", perm=[1, 0, 2]),
        node("Transpose", "y", "yt", perm=[1, 0, 2]),
        node("MatMul", "xt wq", "q0"),
        node("MatMul", "yt wkv", "kv0"),
        node("Concat", "keys batch_y two width", "pair", axis=0),
        node("Reshape", "kv0 pair", "kv1", allowzero=1),
        node("Transpose", "kv1", "kv2", perm=[2, 0, 1, 3]),
        node("Gather", "kv2 index0", "k0", axis=0),
        node("Gather", "kv2 index1", "v0", axis=0),
        node("Mul", "batch_m heads", "batches"),
        node("Concat", "queries batches channels", "split_q", axis=0),
        node("Concat", "keys batches channels", "split_k", axis=0),
        node("Reshape", "q0 split_q", "q1"),
        node("Reshape", "k0 split_k", "k1"),
        node("Reshape", "v0 split_k", "v1"),
        node("Transpose", "q1", "q", perm=[1, 0, 2]),
        node("Transpose", "k1", "k", perm=[1, 2, 0]),
        node("Transpose", "v1", "v", perm=[1, 0, 2]),
        node("Concat", "batch_m one one keys", "of_heads", axis=0),
        node("Reshape", "penalty of_heads", "p4"),
        node("Expand", "p4 repeats", "p5"),
        node("Concat", "batches one keys", "of_batches", axis=0),
        node("Reshape", "p5 of_batches", "p3"),
        node("MatMul", "q k", "scores"),
        node("Add", "scores p3", "masked"),
        node("Softmax", "masked", "weights", axis=-1),
        node("MatMul", "weights v", "o0"),
        node("Transpose", "o0", "o1", perm=[1, 0, 2]),
        node("Reshape", "o1 flat", "o2"),
        node("Gemm", "o2 wo", "o3", transB=1),
        node("Concat", "queries batch_m width", "whole", axis=0),
        node("Reshape", "o3 whole", "o4"),
        node("Transpose", "o4", "z", perm=[1, 0, 2]),
        node("Concat", "batch_m heads queries keys", "by_head", axis=0),
        node("Reshape", "weights by_head", "weights4"),
        node("ReduceMean", "weights4 one", "mean", keepdims=0),
    ]
    weights = {
        "limit": np.float32(1.5),
        "zero": np.float32(0),
        "low": np.float32(-1e9),
        "wq": normal(width, width),
        "wkv": normal(width, 2 * width),
        "wo": normal(width, width),
        "two": ints(2),
        "one": ints(1),
        "width": ints(width),
        "heads": ints(heads),
        "channels": ints(width // heads),
        "repeats": ints(1, heads, 1, 1),
        "flat": ints(-1, width),
        "index0": np.int64(0),
        "index1": np.int64(1),
    }
    inputs = {"x": ("s54", "s27", width), "y": ("s17", "s83", width), "m": ("s5", "s6")}
    sizes = [{"s54": b, "s27": n, "s83": m} for b, n, m in ((1, 1, 1), (2, 5, 3), (3, 2, 7))]
    facts = ["s6 = s83 (kv1)", "s5 = s54 (q1)", "s17 = s54 (k1)"]
    facts += ["s83: 1.. (p4)", "s54: 1.. (o4)", "minimum(s83, 1) <= s27 (weights4)"]
    return Case(nodes, inputs, ["z", "mean"], weights, sizes, facts, {"s54": 2, "s17": 3})


def first_row() -> Case:
    """The first item of a batch beside all of another, in products, and as the shape that rows are expanded to."""
    nodes = [
        node("Slice", "x zero one zero", "first"),
        node("Mul", "y first", "a"),
        node("Shape", "first", "shape"),
        node("Expand", "a shape", "z"),
        node("Slice", "batches zero one zero", "leading"),
        node("MatMul", "leading stack", "v"),
    ]
    weights = {"zero": ints(0), "one": ints(1)}
    sizes = [{"n": n, "m": m, "b": b} for n, m, b in ((1, 1, 1), (5, 2, 3), (2, 7, 4))]
    inputs = {"x": ("n", 4), "y": ("m", 4), "batches": ("n", 3, 5), "stack": ("b", 5, 2)}
    return Case(nodes, inputs, ["z", "v"], weights, sizes, ["n: 1.. (a)"], {"n": 0, "m": 2, "b": 2})


def heads_of_keys() -> Case:
    """Keys split into heads, with the batch as the queries call it: nothing is read across batches."""
    nodes = [
        node("Shape", "q", "batch", start=0, end=1),
        node("Shape", "k", "tokens", start=1, end=2),
        node("Concat", "batch tokens split", "s", axis=0),
        node("Reshape", "k s", "y"),
        node("Relu", "q", "z"),
    ]
    sizes = [{"a": a, "t": t, "c": 6} for a, t in ((2, 3), (1, 1))]
    inputs = {"q": ("a", 4), "k": ("b", "t", "c")}
    return Case(nodes, inputs, ["y", "z"], {"split": ints(3, -1)}, sizes, ["b = a (y)", "c: 0.., a multiple of 3 (y)"])


def windowed() -> Case:
    """Sizes of windows in front of them, as PyTorch writes them: quotients that are rounded towards zero, of numbers
    that are not negative only because the windows fit."""

    def quotient(size: str, less: str, by: str, to: str) -> list[Any]:
        return [
            node("Sub", f"{size} {less}", f"{to}_less"),
            node("Div", f"{to}_less {by}", f"{to}_whole"),
            node("Add", f"{to}_whole one", to),
        ]

    nodes = [
        node("Shape", "x", "batch", start=0, end=1),
        node("Shape", "x", "n", start=2, end=3),
        *quotient("n", "one", "four", "coarse"),
        *quotient("coarse", "eight", "eight", "windows"),
        node("Mul", "batch eight", "channels"),
        node("Mul", "channels windows", "size"),
        node("Div", "size channels", "length"),
        node("Conv", "x first", "a", kernel_shape=[7], pads=[3, 3], strides=[4]),
        node("Conv", "a second", "b", kernel_shape=[8], strides=[8]),
        node("Concat", "batch two four length", "split", axis=0),
        node("Reshape", "b split", "c"),
        node("Relu", "c", "y"),
    ]
    rng = np.random.default_rng(0)
    weights = {name: ints(value) for name, value in {"one": 1, "two": 2, "four": 4, "eight": 8}.items()}
    weights["first"] = rng.standard_normal((4, 3, 7)).astype(np.float32)
    weights["second"] = rng.standard_normal((8, 4, 8)).astype(np.float32)
    sizes = [{"b": 1, "n": 29}, {"b": 2, "n": 64}, {"b": 3, "n": 99}]
    return Case(nodes, {"x": ("b", 3, "n")}, ["y"], weights, sizes, ["n: 29.. (b)"], {"b": 1, "n": 28})


CASES = {
    "heads_of_keys": heads_of_keys(),
    "first_row": first_row(),
    "attention": attention(),
    "unet": unet(),
    "divided": divided(),
    "encoder": encoder(),
    "spectrum": spectrum(),
    "causal": causal(),
    "recurrence": recurrence(),
    "crossed": crossed(),
    "windowed": windowed(),
}


def written(folder: Path, case: Case) -> Path:
    ports = {name: ("float32", shape) for name, shape in case.inputs.items()}
    return save(folder / "m.onnx", case.nodes, ports, case.outputs, case.weights)


def facts_of(graph: Any) -> list[str]:
    """What a graph knows of its sizes: `a = b (node)`, `a: 1..2 (node)`, `a <= b (node)`."""

    def at(origin: str) -> str:
        assert origin.startswith("node "), origin
        return origin.removeprefix("node ").partition(" ")[0]

    return [
        *(f"{s} = {text_of(each.value)} ({at(each.origin)})" for s, each in graph.symbol_values.items()),
        *(f"{s}: {each.text} ({at(each.origin)})" for s, each in graph.symbol_ranges.items() if each.origin),
        *(f"{text_of(each.holds)} ({at(each.origin)})" for each in graph.constraints),
    ]


@pytest.mark.feature("B01")
@pytest.mark.feature("B07")
@pytest.mark.parametrize("name", CASES)
def test_every_node_compiles_for_all_sizes(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    path = written(tmp_path, case)
    imported = import_model(path)
    graph = imported.graph
    assert graph.placement.compiled == graph.placement.total
    assert facts_of(graph) == list(case.facts)
    for sizes in case.sizes:
        whole = {**sizes, **{s: sizes[text_of(v.value)] for s, v in graph.symbol_values.items()}}
        feeds = {
            port: normal(*(whole[e] if isinstance(e, str) else e for e in shape)) for port, shape in case.inputs.items()
        }
        for a, b in zip(run(imported, tmp_path, feeds, sizes), onnxruntime(path, feeds), strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    if case.refused is not None:
        with pytest.raises(UsageError, match="node "):
            bind(graph, case.refused)


@pytest.mark.feature("B06")
def test_a_size_that_a_unet_does_not_take_is_refused_with_its_divisor(tmp_path: Path) -> None:
    graph = import_model(written(tmp_path, unet())).graph
    with pytest.raises(UsageError, match=r"h=6 is none of 1\.\., a multiple of 4 \(node a \(Conv\); node y \(Concat\)"):
        bind(graph, {"n": 1, "h": 6, "w": 4})
    four = SymbolRange(4, 256, 4, origin="recipe: shapes")
    assert restricted(graph, {"h": four, "w": four}).symbol_ranges["h"].text == "4..256, a multiple of 4"
