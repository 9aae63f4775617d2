"""Sizes that calls report: what follows a node whose shape depends on data compiles, for every such size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx import helper

from tests.importer.reference import constants, normal, onnxruntime, save
from tilec.importer import Imported, import_model
from tilec.ir.bind import bind
from tilec.ir.call_segments import segment_of
from tilec.ir.codec import graph_from_json, graph_to_json
from tilec.ir.evaluate import evaluate
from tilec.ir.expr import Var
from tilec.ir.restrict import restricted
from tilec.ir.sizes import SymbolRange
from tilec.ir.text import text_of
from tilec.ir.verify.graph import check_graph


def node(kind: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    return helper.make_node(kind, inputs.split(), outputs.split(), name=outputs.split()[0], **attributes)


def ints(*values: int) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def run(imported: Imported, folder: Path, feeds: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> list[Any]:
    """The outputs: nodes by segments, calls between them, the sizes that a call reports bound behind it."""
    graph = bind(imported.graph, sizes)
    places = segment_of(graph.nodes, graph.calls)
    tensors: dict[str, Any] = constants(graph, folder, b"".join(imported.weights))
    tensors |= {port.tensor: feeds[port.name] for port in graph.inputs}
    for number in range(len(graph.calls) + 1):
        assert check_graph(graph) == ()
        for each in graph.nodes:
            if places[each.name] == number:
                tensors[each.name] = evaluate(each.expr, tensors, ttype=graph.tensors[each.name].ttype)
        if number == len(graph.calls):
            break
        call = graph.calls[number]
        session = ort.InferenceSession(b"".join(imported.clusters[call.file]), providers=["CPUExecutionProvider"])
        results = session.run([p.name for p in call.outputs], {p.name: tensors[p.tensor] for p in call.inputs})
        found: dict[str, int] = {}
        for port, array in zip(call.outputs, results, strict=True):
            tensors[port.tensor] = array
            shape = graph.tensors[port.tensor].shape if port.tensor in graph.tensors else ()
            found |= {e.name: n for e, n in zip(shape, array.shape, strict=False) if isinstance(e, Var)}
        assert set(call.symbols) == set(found)
        graph = bind(graph, found)
    return [tensors[port.tensor] for port in graph.outputs]


SELECT = [
    node("NonZero", "x", "at"),
    node("Transpose", "at", "places", perm=[1, 0]),
    node("GatherND", "x places", "values"),
    node("Mul", "values two", "a"),
    node("Exp", "a", "b"),
    node("ReduceSum", "b", "y", keepdims=0),
]
"""Elements other than 0, and what is computed from them."""

COUNT = [
    node("NonZero", "x", "at"),
    node("Shape", "at", "shape", start=1, end=2),
    node("ConstantOfShape", "shape", "zeros"),
    node("Squeeze", "shape", "number"),
    node("Range", "zero number one", "line"),
    node("Cast", "line", "numbers", to=1),
    node("Add", "zeros numbers", "y"),
]
"""Tensors of a size that a call reports, which read nothing that it computes."""

KEEP = [
    node("Greater", "x half", "big"),
    node("Slice", "big first second axes", "column"),
    node("Squeeze", "column last", "chosen"),
    node("Compress", "x chosen", "rows", axis=0),
    node("MatMul", "rows w", "z"),
    node("Softmax", "z", "y", axis=-1),
]
"""Rows that a condition chooses, multiplied."""

TOP = [
    node("Shape", "x", "n", start=0, end=1),
    node("ReduceMax", "x", "largest", keepdims=0),
    node("Cast", "largest", "k0", to=7),
    node("Unsqueeze", "k0 first", "k1"),
    node("Min", "k1 n", "k"),
    node("TopK", "x k", "values indices", axis=0),
    node("Cast", "indices", "places", to=1),
    node("Add", "values places", "y"),
]
"""Both results of TopK with a computed k have one size."""

COUNTED = [
    node("ReduceMax", "x", "largest", keepdims=0),
    node("Cast", "largest", "k0", to=7),
    node("Abs", "k0", "k1"),
    node("Unsqueeze", "k1 first", "k"),
    node("Shape", "x", "n", start=0, end=1),
    node("Concat", "n k", "shape", axis=0),
]
"""A shape of which a size is known, and one is computed from data."""

EXPANDED = [*COUNTED, node("Expand", "two shape", "many"), node("Exp", "many", "y")]
FILLED = [*COUNTED, node("ConstantOfShape", "shape", "zeros"), node("Exp", "zeros", "y")]
TILED = [*COUNTED, node("Tile", "x shape", "many"), node("Exp", "many", "y")]
BESIDE_CONSTANTS = [
    *COUNTED[:4],
    node("Concat", "second k four", "shape", axis=0),
    node("Expand", "two shape", "many"),
    node("Exp", "many", "y"),
]
"""A shape of which constants are known, and nothing that has to do with sizes."""

RESHAPED = [
    *COUNTED,
    node("Min", "k first", "nothing"),
    node("Add", "nothing four", "four_"),
    node("Concat", "n four_", "target", axis=0),
    node("Reshape", "x target", "cut"),
    node("Exp", "cut", "y"),
]

TWICE = [
    node("NonZero", "x", "a"),
    node("Cast", "a", "b", to=1),
    node("Sub", "b one_", "c"),
    node("NonZero", "c", "d"),
    node("Cast", "d", "e", to=1),
    node("ReduceSum", "e last", "f", keepdims=0),
    node("ReduceSum", "c", "g", keepdims=0),
    node("Add", "f g", "y"),
]
"""A size that depends on data of a size that depends on data."""

WEIGHTS: dict[str, NDArray[Any]] = {
    "two": np.float32(2),
    "half": np.float32(0.5),
    "one_": np.float32(1),
    "zero": np.int64(0),
    "one": np.int64(1),
    "first": ints(0),
    "second": ints(1),
    "axes": ints(1),
    "last": ints(1),
    "four": ints(4),
    "w": normal(4, 5),
}


@pytest.mark.feature("B01")
@pytest.mark.parametrize(
    ("nodes", "shape", "symbols", "facts"),
    [
        (SELECT, ("n", 4), ["nonzero_1"], ["nonzero_1 <= n * 4"]),
        (COUNT, ("n", 4), ["nonzero_1"], ["nonzero_1 <= n * 4"]),
        (COUNT, (3, 4), ["nonzero_1"], []),
        (KEEP, ("n", 4), ["compress_1"], ["compress_1 <= n"]),
        (TOP, ("n",), ["topk_1"], ["topk_1 <= n"]),
        (EXPANDED, ("n", 4), ["expand_1"], []),
        (BESIDE_CONSTANTS, ("n", 4), ["expand_1"], []),
        (FILLED, ("n", 4), ["constantofshape_1"], []),
        (TILED, ("n", 4), ["tile_1"], []),
        (RESHAPED, ("n", 4), ["reshape_1"], []),
        (TWICE, ("n", 4), ["nonzero_1", "nonzero_2"], ["nonzero_1 <= n * 4", "nonzero_2 <= nonzero_1 * 2"]),
    ],
)
def test_what_follows_compiles(
    tmp_path: Path, nodes: Sequence[Any], shape: Sequence[int | str], symbols: list[str], facts: list[str]
) -> None:
    path = save(tmp_path / "m.onnx", nodes, {"x": ("float32", shape)}, ["y"], WEIGHTS)
    imported = import_model(path, fallback="allow")
    graph = imported.graph
    assert graph_from_json(graph_to_json(graph)) == graph
    assert len(graph.placement.fallback) == len(symbols)
    assert list(graph.symbols) == [*(e for e in shape if isinstance(e, str)), *symbols]
    assert [symbol for call in graph.calls for symbol in call.symbols] == symbols
    assert [text_of(each.holds) for each in graph.constraints] == facts
    assert all(graph.symbol_ranges[s].origin.startswith("node ") for s in symbols)
    for size in (1, 3, 6) if "n" in shape else (3,):
        for seed in range(3):
            x = np.round(normal(*(size if e == "n" else int(e) for e in shape), seed=seed) * 1.5)
            x.flat[0] = max(x.flat[0], 1)
            sizes = {"n": size} if "n" in shape else {}
            for a, b in zip(run(imported, tmp_path, {"x": x}, sizes), onnxruntime(path, {"x": x}), strict=True):
                assert a.shape == b.shape
                np.testing.assert_allclose(a, b, rtol=1e-4)


@pytest.mark.feature("B01")
def test_limits_of_reported_sizes(tmp_path: Path) -> None:
    nodes = [
        node("NonMaxSuppression", "boxes scores most", "picked"),
        node("Cast", "picked", "y", to=1),
        node("Unique", "x", "u first_ inverse counts", axis=1),
        node("Cast", "counts", "z", to=1),
        node("Add", "z u", "w_"),
        node("Cast", "inverse", "v", to=1),
    ]
    inputs = {"boxes": ("float32", (2, 9, 4)), "scores": ("float32", (2, 3, 9)), "x": ("float32", (4, 7))}
    path = save(tmp_path / "m.onnx", nodes, inputs, ["y", "w_", "v"], {"most": ints(5)})
    graph = import_model(path, fallback="allow").graph
    assert {s: entry.text for s, entry in graph.symbol_ranges.items()} == {
        "nonmaxsuppression_1": "0..30",
        "unique_1": "0..7",
    }
    assert [text_of(e) for e in graph.tensors["v"].shape] == ["7"]
    assert [text_of(e) for e in graph.tensors["w"].shape] == ["4", "unique_1"]


@pytest.mark.feature("B07")
def test_limits_follow_from_ranges_and_sizes(tmp_path: Path) -> None:
    path = save(tmp_path / "m.onnx", TWICE, {"x": ("float32", ("n", 4))}, ["y"], WEIGHTS)
    graph = import_model(path, fallback="allow").graph
    limited = restricted(graph, {"n": SymbolRange(1, 8, origin="recipe")})
    texts = {"nonzero_1": "0..32", "nonzero_2": "0..64"}
    assert {s: limited.symbol_ranges[s].text for s in texts} == texts
    assert [text_of(each.holds) for each in limited.constraints] == [
        "nonzero_1 <= n * 4",
        "nonzero_2 <= nonzero_1 * 2",
    ]
    bound = bind(graph, {"n": 3})
    assert {s: bound.symbol_ranges[s].text for s in texts} == {"nonzero_1": "0..12", "nonzero_2": "0..24"}
    assert [text_of(each.holds) for each in bound.constraints] == ["nonzero_2 <= nonzero_1 * 2"]


def test_the_size_of_a_result_is_a_reason_to_compute_it(tmp_path: Path) -> None:
    nodes = [node("NonZero", "x", "at"), node("Shape", "at", "y")]
    graph = import_model(save(tmp_path / "m.onnx", nodes, {"x": ("float32", (2, 3))}, ["y"]), fallback="allow").graph
    assert [call.symbols for call in graph.calls] == [("nonzero_1",)]


def test_equal_sizes_and_reported_ones(tmp_path: Path) -> None:
    nodes = [
        node("NonZero", "x", "at"),
        node("Cast", "at", "a", to=1),
        node("Add", "a z", "b"),
        node("Gemm", "x v", "c", transA=1, transB=1),
    ]
    inputs = {"x": ("float32", ("n", 4)), "z": ("float32", (2, "m")), "v": ("float32", (4, "k"))}
    graph = import_model(save(tmp_path / "m.onnx", nodes, inputs, ["b", "c"]), fallback="allow").graph
    assert graph.symbols == ("n", "m", "nonzero_1")
    assert {s: text_of(each.value) for s, each in graph.symbol_values.items()} == {"k": "n"}
    assert [text_of(each.holds) for each in graph.constraints] == ["nonzero_1 <= n * 4", "m == nonzero_1 or m == 1"]
