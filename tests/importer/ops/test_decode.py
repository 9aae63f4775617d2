"""`ai.tilec.Decode`: a type of five bits that tilec does not know, described in the model."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from codegen.test_few_bits import results
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tilec.errors import ConfigError, UnsupportedError
from tilec.importer import import_model
from tilec.ir.codec import graph_from_json, graph_to_json
from tilec.ir.types import TTYPES
from tilec.ir.words import pack_codes

MINIFLOAT = "code<5 float: f32(i32(bitand(code, 15)) - 6) * where(code < 16, 0.5, 4.0)>"
"""Steps of a half, and of four where the highest bit is set."""


def numbers(codes: NDArray[Any]) -> NDArray[Any]:
    return ((codes & 15) - 6.0) * np.where(codes < 16, 0.5, 4.0)


def model(folder: Path, words: NDArray[Any], ttype: str, k: int, n: int, size: int | None = None) -> Path:
    """`y = x @ (decode(words) * scale)`."""
    nodes = [
        helper.make_node("Decode", ["q"], ["d"], domain="ai.tilec", ttype=ttype, **({"size": size} if size else {})),
        helper.make_node("Mul", ["d", "s"], ["w"]),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    ports = [helper.make_tensor_value_info("x", 1, [k])], [helper.make_tensor_value_info("y", 1, [n])]
    scale = numpy_helper.from_array(np.full((1, n), 2, np.float32), "s")
    graph = helper.make_graph(nodes, "g", *ports, [numpy_helper.from_array(words, "q"), scale])
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("ai.tilec", 1)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10), folder / "m.onnx")
    return folder / "m.onnx"


@pytest.mark.feature("L25")
@pytest.mark.parametrize(("k", "n"), [(32, 32), (60, 7), (5, 1)])
def test_a_type_of_five_bits_runs_on_the_processor_and_on_the_tile_machine(tmp_path: Path, k: int, n: int) -> None:
    codes = np.resize(np.random.default_rng(3).permutation(32), (k, n))
    x = np.random.default_rng(k).integers(-4, 5, k).astype(np.float32)
    imported = import_model(model(tmp_path, pack_codes(codes, MINIFLOAT), MINIFLOAT, k, n, n))
    assert imported.graph.tensors["q_codes"].ttype == MINIFLOAT
    assert graph_from_json(graph_to_json(imported.graph)) == imported.graph
    if imported.owned_file:
        (tmp_path / imported.owned_file).write_bytes(b"".join(imported.weights))
    found = results(imported.graph, tmp_path, x)
    np.testing.assert_array_equal(found["y"], x @ (numbers(codes) * 2))


def test_integers_are_decoded_as_described(tmp_path: Path) -> None:
    ttype = "code<4 int: 3 * i32(code) - 20>"
    codes = np.resize(np.arange(16), (32, 4))
    path = model(tmp_path, pack_codes(codes, ttype), ttype, 32, 4)
    proto = onnx.load(path)
    proto.graph.node.insert(1, helper.make_node("Cast", ["d"], ["f"], to=1))
    proto.graph.node[2].input[0] = "f"
    onnx.save(proto, path)
    x = np.random.default_rng(1).integers(-4, 5, 32).astype(np.float32)
    imported = import_model(path)
    if imported.owned_file:
        (tmp_path / imported.owned_file).write_bytes(b"".join(imported.weights))
    np.testing.assert_array_equal(results(imported.graph, tmp_path, x)["y"], x @ (2.0 * (3 * codes - 20)))


def test_integers_of_any_width_have_a_name() -> None:
    assert [(TTYPES[name].bits, TTYPES[name].per_word, TTYPES[name].word_bits) for name in ("i5", "u7", "u6")] == [
        (5, 6, 32),
        (7, 4, 32),
        (6, 5, 32),
    ]


@pytest.mark.parametrize(
    ("ttype", "size", "message"),
    [
        ("i9", 6, "the type 'i9'"),
        ("f16", 6, "the type 'f16'"),
        ("code<5 float: i32(code)>", 6, "decodes to i32"),
        ("code<5 float: f32(i32(cod))>", 6, "cod is unknown"),
        ("code<5 float: f32(i32(code)>", 6, "the type"),
        ("i4", 6, "words of type u32"),
        ("i5", 7, "7 elements in 1 words"),
    ],
)
def test_types_that_cannot_be_decoded(tmp_path: Path, ttype: str, size: int, message: str) -> None:
    path = model(tmp_path, np.zeros((4, 1), np.uint32), ttype, 4, size, size)
    with pytest.raises(ConfigError, match=message):
        import_model(path)


def test_codes_are_constants(tmp_path: Path) -> None:
    node = helper.make_node("Decode", ["q"], ["y"], domain="ai.tilec", ttype="i5")
    info = helper.make_tensor_value_info("q", TensorProto.UINT32, [3])
    graph = helper.make_graph([node], "g", [info], [helper.make_tensor_value_info("y", TensorProto.INT32, [18])])
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("ai.tilec", 1)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10), tmp_path / "m.onnx")
    with pytest.raises(UnsupportedError, match="codes that are no constant"):
        import_model(tmp_path / "m.onnx")
