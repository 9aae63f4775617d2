"""Clusters of nodes that do not compile: how few, in which order, with which ports, and what falls with them."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from importer.reference import save
from tilec.importer import UnsupportedModelError, import_model
from tilec.ir.codec import graph_from_json, graph_to_json
from tilec.ir.text import tensor_text, text_of
from tilec.ir.verify.graph import check_graph


def model(path, nodes, inputs, outputs, initializers=(), opset=20):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    imports = [helper.make_opsetid("", opset)]
    imports += [helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("ai.onnx.ml", 3)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10), str(path))
    return path


def value(name, *shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, list(shape))


def imported(path):
    found = import_model(path, fallback="allow")
    assert check_graph(found.graph) == ()
    assert graph_from_json(graph_to_json(found.graph)) == found.graph
    assert {call.file for call in found.graph.calls} == {name for name in found.clusters if name.endswith(".onnx")}
    return found


def operators(found, number):
    proto = onnx.load_from_string(b"".join(found.clusters[f"fallback/{number}.onnx"]))
    onnx.checker.check_model(proto) if all(n.domain == "" for n in proto.graph.node) else None
    return [node.op_type for node in proto.graph.node]


def binarizer(source, target, name):
    return helper.make_node("Binarizer", [source], [target], name=name, domain="ai.onnx.ml", threshold=0.5)


@pytest.mark.feature("B19", "A02")
def test_clusters_and_segments_alternate(tmp_path):
    nodes = [
        binarizer("x", "a", "first"),
        helper.make_node("Exp", ["x"], ["b"]),
        binarizer("b", "c", "beside"),
        helper.make_node("Add", ["a", "c"], ["d"]),
        binarizer("d", "e", "second"),
        helper.make_node("Mul", ["e", "b"], ["y"]),
    ]
    found = imported(model(tmp_path / "m.onnx", nodes, [value("x", 2, 3)], [value("y", 2, 3)]))
    assert [operators(found, 0), operators(found, 1)] == [["Binarizer", "Binarizer"], ["Binarizer"]]
    first, second = found.graph.calls
    assert [port.name for port in first.inputs] == ["x", "b"]
    assert [port.name for port in first.outputs] == ["a", "c"]
    assert [port.name for port in second.inputs] == ["d"]
    assert [node.op for node in found.graph.nodes] == ["Exp", "Add", "Mul"]
    placement = found.graph.placement
    assert (placement.total, placement.compiled) == (6, 3)
    assert [each.node for each in placement.fallback] == ["first", "beside", "second"]


def test_weights_of_a_cluster_stand_in_its_file(tmp_path):
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    nodes = [helper.make_node("CDist", ["x", "w"], ["y"], name="distance", domain="com.microsoft")]
    initializers = [numpy_helper.from_array(weight, "w")]
    found = imported(model(tmp_path / "m.onnx", nodes, [value("x", 2, 3)], [value("y", 2, 2)], initializers))
    proto = onnx.load_from_string(b"".join(found.clusters["fallback/0.onnx"]))
    assert [port.name for port in proto.graph.input] == ["x"]
    np.testing.assert_array_equal(numpy_helper.to_array(proto.graph.initializer[0]), weight)
    assert "w" not in found.graph.constants


def test_what_nobody_reads_is_left_out(tmp_path):
    nodes = [binarizer("x", "unused", "dead"), helper.make_node("Exp", ["x"], ["y"])]
    found = imported(model(tmp_path / "m.onnx", nodes, [value("x", 2)], [value("y", 2)]))
    assert found.graph.calls == ()
    assert found.graph.placement.fallback == ()


def test_only_the_shape_of_a_result_is_no_reason_to_compute_it(tmp_path):
    nodes = [binarizer("x", "a", "dead"), helper.make_node("Shape", ["a"], ["y"])]
    found = imported(model(tmp_path / "m.onnx", nodes, [value("x", 2, 3)], [value("y", 2, kind=TensorProto.INT64)]))
    assert found.graph.calls == ()


def test_a_sequence_that_leaves_is_made_where_it_leaves(tmp_path):
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]),
        helper.make_node("SequenceConstruct", ["e", "x"], ["s"], name="construct"),
        helper.make_node("SequenceInsert", ["s", "x"], ["seq"], name="insert"),
        helper.make_node("SequenceAt", ["s", "zero"], ["y"], name="at"),
    ]
    ports = [helper.make_tensor_sequence_value_info("seq", TensorProto.FLOAT, None), value("y", 3)]
    zero = numpy_helper.from_array(np.array(0), "zero")
    found = imported(model(tmp_path / "m.onnx", nodes, [value("x", 3)], ports, [zero]))
    assert [each.node for each in found.graph.placement.fallback] == ["construct", "insert", "at"]
    assert found.graph.opaque["seq"].type == "seq(tensor(float))"


def test_sequences_inside_compile(tmp_path):
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["s"]),
        helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0),
    ]
    found = imported(model(tmp_path / "m.onnx", nodes, [value("x", 3)], [value("y", 6)]))
    assert found.graph.calls == ()


def test_what_reads_shapes_that_depend_on_data_compiles(tmp_path):
    nodes = [
        helper.make_node("NonZero", ["x"], ["at"], name="where"),
        helper.make_node("Cast", ["at"], ["y"], name="cast", to=TensorProto.FLOAT),
    ]
    found = imported(model(tmp_path / "m.onnx", nodes, [value("x", 3, 3)], [value("y", 2, "n")]))
    assert [each.node for each in found.graph.placement.fallback] == ["where"]
    assert [tensor_text(node.expr) for node in found.graph.nodes] == ["y[i, j] = f32(at[i, j])"]
    assert found.graph.opaque == {}


def test_codes_that_an_operator_on_onnxruntime_reads_are_made_there_as_well(tmp_path):
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]),
        helper.make_node("QuantizeLinear", ["e", "scale", "zero"], ["q"], name="quantize"),
        helper.make_node("Identity", ["q"], ["same"], name="identity"),
        helper.make_node("Pad", ["same", "pads"], ["padded"], name="pad"),
        helper.make_node("DequantizeLinear", ["padded", "scale", "zero"], ["d"], name="dequantize"),
        helper.make_node("Neg", ["d"], ["y"]),
    ]
    zero = helper.make_tensor("zero", TensorProto.FLOAT8E4M3FN, [], [0.0])
    pads = numpy_helper.from_array(np.array([1, 0]), "pads")
    scale = numpy_helper.from_array(np.array(0.5, np.float32), "scale")
    parts = [zero, scale, pads]
    found = imported(model(tmp_path / "m.onnx", nodes, [value("x", 3)], [value("y", 4)], parts, opset=24))
    assert operators(found, 0) == ["QuantizeLinear", "Identity", "Pad", "DequantizeLinear"]
    assert [node.op for node in found.graph.nodes] == ["Exp", "Neg"]


def test_inputs_that_are_no_tensors(tmp_path):
    nodes = [
        helper.make_node("SequenceAt", ["seq", "zero"], ["a"], name="at"),
        helper.make_node("Exp", ["x"], ["y"]),
    ]
    inputs = [helper.make_tensor_sequence_value_info("seq", TensorProto.FLOAT, None), value("x", 3)]
    zero = numpy_helper.from_array(np.array(0), "zero")
    found = imported(model(tmp_path / "m.onnx", nodes, inputs, [value("a", "n"), value("y", 3)], [zero]))
    assert found.graph.opaque["seq"].type == "seq(tensor(float))"
    assert [node.op for node in found.graph.nodes] == ["Exp"]


def test_old_opsets_are_upgraded_and_what_onnx_removed_is_refused(tmp_path):
    def model(name, op, **attributes):
        node = helper.make_node(op, ["x"], ["y"], **attributes)
        return save(tmp_path / name, [node], {"x": ("float32", [1, 1, 2, 2])}, ["y"], opset=6)

    assert imported(model("relu.onnx", "Relu")).graph.placement.compiled == 1
    with pytest.raises(UnsupportedModelError, match="ONNX has no operator 'GRUUnit'"):
        imported(model("unit.onnx", "GRUUnit"))


def test_symbols_pass_through(tmp_path):
    nodes = [binarizer("x", "a", "binarizer"), helper.make_node("Exp", ["a"], ["y"])]
    found = imported(model(tmp_path / "m.onnx", nodes, [value("x", "batch", 3)], [value("y", "batch", 3)]))
    assert found.graph.symbols == ("batch",)
    assert [node.op for node in found.graph.nodes] == ["Exp"]


def test_operators_that_run_nowhere_are_refused(tmp_path):
    path = save(tmp_path / "m.onnx", [helper.make_node("Rleu", ["x"], ["y"])], {"x": ("float32", [3])}, ["y"])
    with pytest.raises(UnsupportedModelError, match=r"no operator 'Rleu'[\s\S]*'Relu'"):
        import_model(path, fallback="allow")


@pytest.mark.parametrize(
    ("allowed", "refused"), [(("Binarizer",), ["Unique"]), (("Unique",), ["Binarizer"]), ((), None)]
)
def test_allowed_operators(tmp_path, allowed, refused):
    nodes = [binarizer("x", "a", "binarizer"), helper.make_node("Unique", ["a"], ["y"])]
    path = model(tmp_path / "m.onnx", nodes, [value("x", 3)], [value("y", "n")])
    with pytest.raises(UnsupportedModelError) as error:
        import_model(path, fallback=allowed)
    assert [each.op for each in error.value.nodes] == (refused or ["Binarizer", "Unique"])


def test_a_pipeline_of_classical_learning_is_one_cluster(tmp_path):
    ml = {"domain": "ai.onnx.ml"}
    nodes = [
        helper.make_node("Scaler", ["x"], ["scaled"], offset=[0.5], scale=[2.0], **ml),
        helper.make_node(
            "LinearClassifier",
            ["scaled"],
            ["label", "scores"],
            coefficients=[1.0, -1.0, 0.5, 0.25, 1.0, 2.0],
            intercepts=[0.0, 1.0],
            classlabels_strings=["no", "yes"],
            **ml,
        ),
        helper.make_node("Normalizer", ["scores"], ["shares"], norm="L1", **ml),
        helper.make_node("ZipMap", ["shares"], ["map"], classlabels_strings=["no", "yes"], **ml),
    ]
    label = value("label", "n", kind=TensorProto.STRING)
    path = model(tmp_path / "m.onnx", nodes, [value("x", "n", 3)], [label, onnx.ValueInfoProto(name="map")])
    found = imported(path)
    assert [operators(found, n) for n in range(len(found.graph.calls))] == [[node.op_type for node in nodes]]
    assert {each.reason for each in found.graph.placement.fallback} >= {"no tensor expression for this operator yet"}


TREES = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [0, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_values": [0.5, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
}
LINEAR = {"coefficients": [1.0, -1.0, 0.5, 0.25, 1.0, 2.0], "intercepts": [0.0, 1.0]}


CLASSICAL = {
    "Scaler": {"offset": [0.5], "scale": [2.0]},
    "Imputer": {"imputed_value_floats": [0.0], "replaced_value_float": 1.0},
    "Normalizer": {"norm": "L2"},
    "LinearRegressor": {**LINEAR, "targets": 2},
    "LinearClassifier": {**LINEAR, "classlabels_ints": [0, 1]},
    "TreeEnsembleRegressor": {
        **TREES,
        "n_targets": 2,
        "target_treeids": [0, 0],
        "target_nodeids": [1, 2],
        "target_ids": [0, 1],
        "target_weights": [1.0, 2.0],
    },
    "TreeEnsembleClassifier": {
        **TREES,
        "classlabels_int64s": [0, 1, 2],
        "class_treeids": [0, 0],
        "class_nodeids": [1, 2],
        "class_ids": [0, 1],
        "class_weights": [1.0, 2.0],
    },
}
"""Operators and their attributes; onnxruntime takes a vector for all but trees."""


@pytest.mark.parametrize(
    ("kind", "extents"),
    [(kind, ("n", 3)) for kind in CLASSICAL] + [(kind, (3,)) for kind in CLASSICAL if not kind.startswith("Tree")],
)
def test_what_follows_an_operator_of_classical_learning_is_native(tmp_path, kind, extents):
    """Neither ONNX nor onnxruntime infers these ranks; onnxruntime's results have the extents that are told."""
    results = ["label", "found"] if kind.endswith("Classifier") else ["found"]
    nodes = [
        helper.make_node(kind, ["x"], results, domain="ai.onnx.ml", **CLASSICAL[kind]),
        helper.make_node("Neg", ["found"], ["y"]),
    ]
    path = model(tmp_path / "m.onnx", nodes, [value("x", *extents)], [onnx.ValueInfoProto(name="y")], opset=17)
    found = imported(path)
    assert [each.op for each in found.graph.placement.fallback] == [kind]
    session = onnxruntime.InferenceSession(b"".join(found.clusters["fallback/0.onnx"]))
    x = np.arange(np.prod([5 if size == "n" else size for size in extents]), dtype=np.float32)
    (array,) = session.run(["found"], {"x": x.reshape([5 if size == "n" else size for size in extents])})
    (told,) = (found.graph.tensors[port.tensor] for port in found.graph.calls[0].outputs if port.name == "found")
    assert [text_of(extent) for extent in told.shape] == ["n" if size == 5 else str(size) for size in array.shape]


def test_a_branch_that_is_not_taken_need_not_fit_the_bound_sizes(tmp_path):
    def branch(name, rows):
        weight = numpy_helper.from_array(np.ones((rows, 3), np.float32), "w")
        nodes = [helper.make_node("MatMul", ["x", "w"], [name])]
        return helper.make_graph(nodes, name, [], [value(name, None, 3)], [weight])

    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=branch("t", 4), else_branch=branch("e", 6))]
    inputs = [value("c", kind=TensorProto.BOOL), value("x", 1, "n")]
    path = model(tmp_path / "m.onnx", nodes, inputs, [value("y", 1, 3)])
    found = import_model(path, sizes={"n": 4}, fallback="allow")
    assert operators(found, 0) == ["If"]
    session = onnxruntime.InferenceSession(b"".join(found.clusters["fallback/0.onnx"]))
    (y,) = session.run(None, {"c": np.array(True), "x": np.ones((1, 4), np.float32)})
    assert y.tolist() == [[4, 4, 4]]
