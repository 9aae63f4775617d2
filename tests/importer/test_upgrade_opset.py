"""Models of opsets before 7: every older form of an operator compiles as what it means, or is refused by its node."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from tests.importer.reference import normal, run
from tilec.errors import ConfigError, UnsupportedError
from tilec.importer import import_model
from tilec.importer.loader import load_model
from tilec.importer.old_operators import RULES
from tilec.importer.upgrade_opset import modern, modern_file

X = normal(2, 3, 4, 3)
FLAT = normal(6, 4, seed=5)


def model(
    path: Path,
    nodes: Sequence[onnx.NodeProto] | onnx.NodeProto,
    weights: dict[str, Any] | None = None,
    opset: int = 6,
    ir_version: int = 3,
    x: Any = X,
    outputs: Sequence[str] = ("y",),
    to: int = 1,
) -> Path:
    """A model of x and weights; those are inputs too in files before version 4."""
    tensors = [numpy_helper.from_array(np.asarray(a), n) for n, a in (weights or {}).items()]
    infos = [helper.make_tensor_value_info("x", numpy_helper.from_array(x).data_type, x.shape)]
    if ir_version < 4:
        infos += [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in tensors]
    nodes = [nodes] if isinstance(nodes, onnx.NodeProto) else nodes
    graph = helper.make_graph(nodes, "g", infos, [helper.make_tensor_value_info(n, to, None) for n in outputs], tensors)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)
    path.write_bytes(made.SerializeToString())
    return path


def node(kind: str, *inputs: str, outputs: Sequence[str] = ("y",), **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(kind, ["x", *inputs], list(outputs), **attributes)


W, C = normal(4, 3, seed=1), normal(3, seed=2)
BY_CHANNEL = C[:, None, None]
MATRIX = normal(4, 5, seed=3)


@pytest.mark.parametrize("ir_version", [3, 4])
@pytest.mark.parametrize(
    ("opset", "old", "weights", "expected"),
    [
        (1, node("Tanh", consumed_inputs=[0]), {}, np.tanh(X)),
        (6, node("Mul", "w", broadcast=1), {"w": W}, X * W),
        (1, node("Add", "w", broadcast=1, axis=1, consumed_inputs=[0, 0]), {"w": C}, X + BY_CHANNEL),
        (6, node("Sub", "w", broadcast=1, axis=1), {"w": normal(3, 4)}, X - normal(3, 4)[:, :, None]),
        (6, node("Div", "w", broadcast=1, axis=-3), {"w": C}, X / BY_CHANNEL),
        (6, node("Pow", "w", broadcast=1, axis=3), {"w": np.float32([1, 2, 3])}, X ** np.float32([1, 2, 3])),
        (6, node("Greater", "w", broadcast=1, axis=0), {"w": normal(2)}, normal(2)[:, None, None, None] < X),
        (6, node("PRelu", "w"), {"w": C}, np.where(X < 0, X * BY_CHANNEL, X)),
        (6, node("PRelu", "w"), {"w": np.float32([0.5])}, np.where(X < 0, X * 0.5, X)),
        (6, node("Dropout", is_test=1), {}, X),
        (1, node("Cast", to="INT32"), {}, X.astype(np.int32)),
        (1, node("Clip", max=0.5), {}, np.minimum(X, 0.5)),
        (1, node("Concat", "w"), {"w": normal(2, 1, 4, 3)}, np.concatenate([X, normal(2, 1, 4, 3)], 1)),
        (1, node("GlobalLpPool", p=1.0), {}, np.abs(X).sum((2, 3), keepdims=True)),
        (1, node("Pad", paddings=[0, 0, 1, 0, 0, 0, 0, 2]), {}, np.pad(X, [(0, 0), (0, 0), (1, 0), (0, 2)])),
        (1, node("Reshape", shape=[0, -1]), {}, X.reshape(2, -1)),
        (1, node("Selu"), {}, 1.0507 * np.where(X < 0, 1.6732 * np.expm1(X), X)),
        (1, node("Split", "w", axis=2), {"w": np.int64([4])}, X),
        (1, node("Tile", "n", "a"), {"n": np.float32(2), "a": np.float32(1)}, np.tile(X, (1, 2, 1, 1))),
        (1, node("Upsample", height_scale=2.0, width_scale=3.0), {}, X.repeat(2, 2).repeat(3, 3)),
        (6, node("BatchNormalization", *"smvq", is_test=1), dict.fromkeys("smvq", C * C), None),
    ],
    ids=lambda each: each.op_type if isinstance(each, onnx.NodeProto) else "",
)
def test_older_forms_mean_what_they_meant(tmp_path, opset, old, weights, expected, ir_version) -> None:
    if expected is None:
        scale = BY_CHANNEL**2
        expected = scale * (X - scale) / np.sqrt(scale + 1e-5) + scale
    to = numpy_helper.from_array(np.asarray(expected)).data_type if expected.dtype != np.float64 else 1
    path = model(tmp_path / "m.onnx", old, weights, opset, ir_version, to=to)
    (found,) = run(import_model(path), tmp_path, {"x": X})
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_gemm_and_recurrences(tmp_path) -> None:
    old = node("Gemm", "w", "c", broadcast=1)
    path = model(tmp_path / "m.onnx", old, {"w": MATRIX, "c": MATRIX[0]}, x=FLAT)
    np.testing.assert_allclose(run(import_model(path), tmp_path, {"x": FLAT})[0], FLAT @ MATRIX + MATRIX[0], rtol=1e-5)
    sequence = normal(5, 2, 4)
    weights = {"w": normal(1, 3, 4, seed=6), "r": normal(1, 3, 3, seed=7)}
    old = node("RNN", "w", "r", outputs=["", "y"], hidden_size=3, output_sequence=1)
    path = model(tmp_path / "m.onnx", old, weights, x=sequence)
    state = np.zeros((2, 3), np.float32)
    for step in sequence:
        state = np.tanh(step @ weights["w"][0].T + state @ weights["r"][0].T)
    np.testing.assert_allclose(run(import_model(path), tmp_path, {"x": sequence})[0][0], state, rtol=1e-4)


def test_ranks_of_computed_tensors_are_inferred(tmp_path) -> None:
    nodes = [
        node("Conv", "k", outputs=["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Mul", ["a", "s"], ["b"], broadcast=1, axis=1),
        helper.make_node("Reshape", ["b"], ["c"], shape=[2, 3, 12]),
        helper.make_node("Add", ["c", "s"], ["d"], broadcast=1, axis=1),
        helper.make_node("PRelu", ["d", "s"], ["y"]),
    ]
    kernel = np.zeros((3, 3, 3, 3), np.float32)
    kernel[range(3), range(3), 1, 1] = 1
    path = model(tmp_path / "m.onnx", nodes, {"k": kernel, "s": C}, opset=4, ir_version=4)
    before = (X * BY_CHANNEL).reshape(2, 3, 12) + C[:, None]
    expected = np.where(before < 0, before * C[:, None], before)
    np.testing.assert_allclose(run(import_model(path), tmp_path, {"x": X})[0], expected, rtol=1e-5)


def test_branches_are_upgraded(tmp_path) -> None:
    inner = [helper.make_node("Neg", ["x"], ["n"]), helper.make_node("Add", ["n", "w"], ["z"], broadcast=1, axis=1)]
    body = helper.make_graph(inner, "b", [], [helper.make_tensor_value_info("z", 1, X.shape)])
    cast = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.array(True), "c"))
    both = helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)
    path = model(tmp_path / "m.onnx", [cast, both], {"w": C}, ir_version=4)
    np.testing.assert_allclose(run(import_model(path), tmp_path, {"x": X})[0], BY_CHANNEL - X, rtol=1e-5)


@pytest.mark.parametrize(
    ("old", "weights", "opset", "message"),
    [
        (node("Dropout", is_test=0), {}, 6, "is_test is 0"),
        (node("Cast", to="HALF"), {}, 1, "to is 'HALF'"),
        (node("GlobalLpPool", p=1.5), {}, 1, r"p is 1\.5"),
        (node("Reshape"), {}, 1, "'shape' is missing"),
        (node("Tile", "x", "x"), {}, 1, "'x' is computed"),
        (node("Add", "w", broadcast=1, axis=3), {"w": W}, 6, "rank 2 does not fit at axis 3 of one of rank 4"),
    ],
)
def test_a_form_that_later_opsets_have_not_is_refused_by_its_node(tmp_path, old, weights, opset, message) -> None:
    path = model(tmp_path / "m.onnx", old, weights, opset)
    for fallback in ("refuse", "allow"):
        with pytest.raises(UnsupportedError, match=message) as found:
            import_model(path, fallback=fallback)
        assert str(found.value.place).startswith(f"m.onnx: node '{old.op_type}_0' ({old.op_type})")
        assert found.value.hint


def test_an_unknown_rank_is_told(tmp_path) -> None:
    nodes = [
        helper.make_node("Strange", ["x"], ["a"], domain="own"),
        helper.make_node("Add", ["a", "w"], ["y"], broadcast=1, axis=1, name="sum"),
    ]
    proto = onnx.load(model(tmp_path / "m.onnx", nodes, {"w": C}))
    proto.opset_import.append(helper.make_opsetid("own", 1))
    onnx.save(proto, tmp_path / "m.onnx")
    with pytest.raises(UnsupportedError, match="the rank of 'a', which is unknown") as found:
        import_model(tmp_path / "m.onnx", fallback="allow")
    assert found.value.place == "m.onnx: node 'sum' (Add)"


def test_broken_nodes_and_opsets_that_never_were_are_invalid(tmp_path) -> None:
    with pytest.raises(ConfigError, match="1 inputs, the operator takes 2"):
        import_model(model(tmp_path / "m.onnx", node("PRelu")))
    with pytest.raises(ConfigError, match="the attribute .axis. is of kind FLOAT"):
        import_model(model(tmp_path / "m.onnx", node("Add", "x", axis=1.5)))
    with pytest.raises(ConfigError, match="opset 0, which does not exist"):
        import_model(model(tmp_path / "m.onnx", node("Neg"), opset=0), fallback="allow")


def test_every_form_that_differs_from_opset_7_has_a_rule() -> None:
    """ONNX's definitions before opset 7: other inputs or attributes than at 7, but for `consumed_inputs`."""
    known = {s.name for s in onnx.defs.get_all_schemas_with_history() if not s.domain and s.since_version < 7}
    harmless = {("AveragePool", "count_include_pad")}  # new at 7; without it as before
    for name in sorted(known):
        newest = onnx.defs.get_schema(name, 7)
        for opset in range(1, 7):
            try:
                old = onnx.defs.get_schema(name, opset)
            except onnx.defs.SchemaError:
                continue
            differs = {
                attribute
                for attribute in {*old.attributes, *newest.attributes} - {"consumed_inputs"}
                if _form(old, attribute) != _form(newest, attribute) and (name, attribute) not in harmless
            }
            if differs or len(old.inputs) != len(newest.inputs):
                assert opset < RULES[name][0], (name, opset, differs)


def _form(schema: Any, name: str) -> Any:
    attribute = schema.attributes.get(name)
    return attribute and (attribute.type, attribute.required, attribute.default_value.SerializeToString())


def test_newer_models_are_left_alone(tmp_path) -> None:
    path = model(tmp_path / "m.onnx", node("Tanh"), opset=7)
    loaded = load_model(path)
    assert modern(loaded) is loaded
    with modern_file(path) as same:
        assert same == path


def test_references_read_the_newer_form(tmp_path) -> None:
    path = model(tmp_path / "m.onnx", node("Add", "w", broadcast=1, axis=1), {"w": C}, ir_version=4)
    with modern_file(path) as newer:
        assert newer != path
        session = onnxruntime.InferenceSession(str(newer), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"x": X})[0], X + BY_CHANNEL)
    assert not newer.exists()
