"""Models whose sizes depend on data, end to end: one operator runs on onnxruntime, all around it is compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from tests.acceptance.building import Arrays, assert_close, build, folder_of, onnxruntime
from tests.importer.reference import normal, save
from tests.importer.test_reported_sizes import COUNT, KEEP, SELECT, TOP, TWICE, WEIGHTS, ints, node
from tilec.errors import UsageError
from tilec.runtime import load

SEEN = [node("Relu", "raw", "x"), *SELECT]
"""The chain of elements other than 0, behind a computed tensor."""

ATTEND = [
    *KEEP[:4],
    node("Transpose", "rows", "turned", perm=[1, 0]),
    node("MatMul", "rows turned", "products"),
    node("Softmax", "products", "shares", axis=-1),
    node("MatMul", "shares rows", "y"),
]
"""Rows that a condition chooses, which attend to each other: working memory of the size that is reported."""

BOXES = [
    node("Mul", "boxes half", "scaled"),
    node("Sigmoid", "logits", "scores"),
    node("NonMaxSuppression", "scaled scores most overlap threshold", "picked"),
    node("Gather", "picked second", "rows", axis=1),
    node("Squeeze", "rows axes", "row"),
    node("Gather", "flat row", "chosen", axis=0),
    node("MatMul", "chosen w", "z"),
    node("Softmax", "z", "y", axis=-1),
]
"""Boxes that overlap no better one, and what is computed of each."""

DISTINCT = [
    node("Floor", "raw", "x"),
    node("Unique", "x", "u first_ inverse counts", axis=0),
    node("MatMul", "u w", "z"),
    node("Cast", "counts", "c", to=1),
    node("ReduceSum", "z last", "sums", keepdims=0),
    node("Mul", "c sums", "y"),
]
"""Rows that differ, weighted by how often they occur."""


MASK = [
    node("ReduceSum", "x last", "sums", keepdims=0),
    node("Greater", "sums half", "mask"),
    node("NonZero", "mask", "at"),
    node("Transpose", "at", "places", perm=[1, 0]),
    node("GatherND", "x places", "rows"),
    node("MatMul", "rows w", "z"),
    node("Softmax", "z", "y", axis=-1),
]
"""`softmax(x[x.sum(-1) > 0.5] @ w)` as PyTorch exports it."""

TOKENS = [
    node("NonZero", "mask", "at"),
    node("Transpose", "at", "places", perm=[1, 0]),
    node("GatherND", "x places", "tokens"),
    node("Gemm", "tokens w", "z"),
    node("Relu", "z", "y"),
]
"""A layer of the tokens `x[mask]` of a batch, which an input chooses."""

PUT = [
    node("Tanh", "raw", "x"),
    node("Greater", "raw half", "mask"),
    node("NonZero", "mask", "at"),
    node("Transpose", "at", "places", perm=[1, 0]),
    node("GatherND", "x places", "values"),
    node("Exp", "values", "others"),
    node("ScatterND", "x places others", "joined"),
    node("Mul", "joined two", "y"),
]
"""`x[mask] = exp(x[mask])`: what is computed of chosen elements, beside the others."""

EXPERTS = [
    node("ArgMax", "x", "expert", axis=1, keepdims=0),
    node("Equal", "expert one", "mask"),
    node("NonZero", "mask", "at"),
    node("Transpose", "at", "places", perm=[1, 0]),
    node("GatherND", "x places", "rows"),
    node("MatMul", "rows w", "z"),
    node("Relu", "z", "hidden"),
    node("MatMul", "hidden back", "u"),
    node("ScatterND", "x places u", "added", reduction="add"),
    node("Softmax", "added", "y", axis=-1),
]
"""The rows of one expert through its layers, added to what they were."""

RESIZE = [
    node("Relu", "image", "x"),
    node("ReduceMax", "scale", "largest", keepdims=1),
    node("Concat", "ones largest largest", "scales", axis=0),
    node("Resize", "x - scales", "z", mode="nearest"),
    node("Conv", "z kernel", "c"),
    node("Sigmoid", "c", "y"),
]
"""An image that grows by a computed factor, and what is computed of it."""
RESIZE[3].input[1] = ""


def doubling() -> onnx.GraphProto:
    """Doubles a vector while its largest element is below 100, and keeps what it was on the way."""
    kinds = {"i": (TensorProto.INT64, []), "go": (TensorProto.BOOL, []), "s": (TensorProto.FLOAT, ["n"])}
    made = {"on": (TensorProto.BOOL, []), "t": (TensorProto.FLOAT, ["n"]), "kept": (TensorProto.FLOAT, ["n"])}
    inputs, outputs = ([helper.make_tensor_value_info(n, *about) for n, about in p.items()] for p in (kinds, made))
    nodes = [
        node("Add", "s s", "t"),
        node("ReduceMax", "t", "largest", keepdims=0),
        node("Less", "largest limit", "on"),
        node("Identity", "t", "kept"),
    ]
    return helper.make_graph(nodes, "doubling", inputs, outputs, [helper.make_tensor("limit", 1, [], [100.0])])


LOOP = [
    node("Relu", "raw", "x"),
    helper.make_node("Loop", ["", "yes", "x"], ["end", "steps"], name="loop", body=doubling()),
    node("Mul", "steps tenth", "small"),
    node("Sin", "small", "waves"),
    node("ReduceSum", "waves last", "y", keepdims=0),
]
"""As many vectors as a loop takes steps."""


def vector(n: int, seed: int) -> Arrays:
    return {"raw": (np.abs(np.random.default_rng(seed).standard_normal(n)) + 0.01).astype(np.float32) * 3**seed}


def flags(n: int, seed: int) -> NDArray[np.float32]:
    """Rows of four: none, all or some of which are not 0."""
    rng = np.random.default_rng(seed)
    x = np.round(rng.standard_normal((n, 4)) * 1.5).astype(np.float32)
    return x * np.float32(seed != 0) + np.float32(9 * (seed == 1))


def boxes(n: int, seed: int) -> Arrays:
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, 4, (1, n, 2))
    corners = np.concatenate([low, low + rng.uniform(0.5, 2, (1, n, 2))], axis=2).astype(np.float32)
    logits = rng.standard_normal((1, 3, n)).astype(np.float32) - np.float32(9 * (seed == 0))
    return {"boxes": corners, "logits": logits, "flat": rng.standard_normal((n, 4)).astype(np.float32)}


def tokens(n: int, seed: int) -> Arrays:
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal((n, 3, 4)).astype(np.float32), "mask": rng.random((n, 3)) < (0, 1, 0.5)[seed % 3]}


def image(n: int, seed: int) -> Arrays:
    x = np.random.default_rng(seed).standard_normal((1, 2, n, 5)).astype(np.float32)
    return {"image": x, "scale": np.linspace(0.5, 1 + seed, 4, dtype=np.float32)}


BOX_PORTS = {"boxes": ("float32", (1, "n", 4)), "logits": ("float32", (1, 3, "n")), "flat": ("float32", ("n", 4))}
OTHER_WEIGHTS: dict[str, Arrays] = {
    "boxes": {"most": ints(3), "overlap": np.float32(0.3), "threshold": np.float32(0.4), "second": ints(2)},
    "loop": {"yes": np.array(True), "tenth": np.float32(0.1)},
    "experts": {"back": normal(5, 4)},
    "resize": {"ones": np.ones(2, np.float32), "kernel": normal(3, 2, 1, 1)},
}
ROWS = {"x": ("float32", ("n", 4))}
CHOSEN = {"x": ("float32", ("b", 3, 4)), "mask": ("bool", ("b", 3))}
IMAGE = {"image": ("float32", (1, 2, "n", 5)), "scale": ("float32", ("k",))}
RAW = {"raw": ("float32", ("n", 4))}

Feeds = Callable[[int, int], Arrays]
MODELS: dict[str, tuple[Sequence[Any], Any, Feeds, int]] = {
    "select": (SEEN, RAW, lambda n, seed: {"raw": flags(n, seed)}, 1),
    "count": (COUNT, ROWS, lambda n, seed: {"x": flags(n, seed)}, 1),
    "attend": (ATTEND, ROWS, lambda n, seed: {"x": flags(n, seed)}, 1),
    "keep": (KEEP, ROWS, lambda n, seed: {"x": flags(n, seed)}, 1),
    "twice": (TWICE, ROWS, lambda n, seed: {"x": flags(n, seed)}, 2),
    "top": (TOP, {"x": ("float32", ("n",))}, lambda n, seed: {"x": np.abs(flags(n, seed)[:, 0])}, 1),
    "boxes": (BOXES, BOX_PORTS, boxes, 1),
    "loop": (LOOP, {"raw": ("float32", ("n",))}, vector, 1),
    "mask": (MASK, ROWS, lambda n, seed: {"x": flags(n, seed)}, 1),
    "tokens": (TOKENS, CHOSEN, tokens, 1),
    "put": (PUT, RAW, lambda n, seed: {"raw": flags(n, seed)}, 2),
    "experts": (EXPERTS, ROWS, lambda n, seed: {"x": flags(n, seed)}, 2),
    "resize": (RESIZE, IMAGE, image, 1),
    "unique": (DISTINCT, RAW, lambda n, seed: {"raw": flags(n, seed)}, 1),
}


@pytest.mark.quick_cases("count", "twice", "top", "tokens", "unique")
@pytest.mark.feature("B01")
@pytest.mark.parametrize("name", MODELS)
def test_what_surrounds_an_operator_of_open_size_is_compiled(tmp_path: Path, name: str) -> None:
    nodes, ports, feeds, calls = MODELS[name]
    weights = WEIGHTS | OTHER_WEIGHTS.get(name, {})
    path = save(tmp_path / "m.onnx", nodes, ports, ["y"], weights)
    placement = build(path)["schedule"].body["placement"]
    assert placement["total"] - placement["compiled"] == calls
    session = load(folder_of(path), threads=2)
    for n, seed in ((5, 2), (1, 1), (33, 0), (33, 1), (33, 2), (2, 3), (200, 4), (5, 2)):
        given = feeds(n, seed)
        assert_close(session.run(given), {"y": onnxruntime(path, given)[0]})


@pytest.mark.feature("B01")
def test_indices_into_what_a_call_makes_are_checked_once_its_size_is_known(tmp_path: Path) -> None:
    """The extent that they name a place of is no number before the call has returned."""
    nodes = [node("Compress", "x kept", "rows", axis=0), node("Gather", "rows at", "z"), node("Exp", "z", "y")]
    ports = {"x": ("float32", ("n", 4)), "kept": ("bool", ("n",)), "at": ("int64", ("k",))}
    build(save(tmp_path / "m.onnx", nodes, ports, ["y"], {}))
    session = load(folder_of(tmp_path / "m.onnx"), threads=1)
    given = {"x": normal(5, 4), "kept": np.array([True, False, True, True, False]), "at": np.array([2, 0, -3, 1])}
    assert_close(session.run(given), {"y": np.exp(given["x"][[3, 0, 0, 2]])})
    for wrong in (3, -4):
        with pytest.raises(UsageError, match=rf"input 'at' has the index {wrong} at \[0\], outside of -3 to 2"):
            session.run({**given, "at": np.array([wrong])})
