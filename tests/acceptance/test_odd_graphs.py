"""Graphs whose outputs, inputs, ranks, sizes and types are unusual compile and agree with onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from importer.reference import helper, normal, save

from acceptance.building import check

F32 = np.float32


def node(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


def model(folder: Path, nodes, inputs, outputs, weights=None, opset: int = 20) -> Path:
    return save(folder / "model.onnx", nodes, inputs, outputs.split(), weights, opset)


def test_outputs_that_are_inputs_constants_duplicates_and_views(tmp_path):
    nodes = [
        node("Identity", "x", "same"),
        node("Identity", "c", "constant"),
        node("Relu", "x", "y"),
        node("Identity", "y", "again"),
        node("Transpose", "y", "turned", perm=[1, 0]),
        node("Reshape", "x", "flat"),
        node("Slice", "x zero two", "part"),
    ]
    nodes[5] = node("Flatten", "x", "flat", axis=0)
    path = model(
        tmp_path,
        nodes,
        {"x": (F32, (4, 6))},
        "same constant y again turned flat part",
        {"c": normal(3, 2), "zero": np.array([0]), "two": np.array([2])},
    )
    check(path, {"x": normal(4, 6)})


def test_an_output_that_is_an_input_or_a_weight_directly(tmp_path):
    path = model(tmp_path, [node("Neg", "x", "y")], {"x": (F32, (5,))}, "y w x", {"w": normal(2, 2)})
    session = check(path, {"x": normal(5)})
    x = normal(5)
    assert not np.shares_memory(session.run({"x": x})["x"], x)


def test_a_model_that_only_passes_on(tmp_path):
    path = model(tmp_path, [node("Identity", "x", "y")], {"x": (F32, (3, 2))}, "y")
    check(path, {"x": normal(3, 2)})


def test_inputs_that_nothing_reads(tmp_path):
    path = model(tmp_path, [node("Relu", "x", "y")], {"x": (F32, (3,)), "unused": (np.int64, (2, 2))}, "y")
    check(path, {"x": normal(3), "unused": np.ones((2, 2), np.int64)})


def test_a_model_without_inputs(tmp_path):
    path = model(tmp_path, [node("Exp", "c", "y")], {}, "y", {"c": normal(3, 3)})
    check(path, {})


@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0, 2)])
def test_zero_size_inputs(tmp_path, shape):
    nodes = [node("Relu", "x", "y"), node("Concat", "y y", "twice", axis=0)]
    check(model(tmp_path, nodes, {"x": (F32, shape)}, "y twice"), {"x": np.zeros(shape, F32)})


def test_reductions_and_products_over_nothing(tmp_path):
    nodes = [
        node("ReduceSum", "x axis", "sums", keepdims=0),
        node("MatMul", "x w", "product"),
        node("Concat", "a x", "joined", axis=1),
    ]
    inputs = {"x": (F32, (3, 0)), "a": (F32, (3, 2))}
    path = model(tmp_path, nodes, inputs, "sums product joined", {"axis": np.array([1]), "w": np.zeros((0, 5), F32)})
    check(path, {"x": np.zeros((3, 0), F32), "a": normal(3, 2)})


def test_scalar_inputs_and_outputs(tmp_path):
    nodes = [node("Mul", "x s", "y"), node("Add", "s s", "twice"), node("ReduceMean", "y", "mean", keepdims=0)]
    path = model(tmp_path, nodes, {"x": (F32, (3, 4)), "s": (F32, ())}, "y twice mean")
    session = check(path, {"x": normal(3, 4), "s": np.array(2.5, F32)})
    assert [spec.shape for spec in session.outputs] == [(3, 4), (), ()]


def test_size_one_everywhere(tmp_path):
    nodes = [
        node("Conv", "x w", "c", kernel_shape=[1, 1]),
        node("Softmax", "c", "p", axis=1),
        node("GlobalAveragePool", "p", "g"),
        node("MatMul", "g g", "y"),
    ]
    path = model(tmp_path, nodes, {"x": (F32, (1, 1, 1, 1))}, "c p g y", {"w": normal(1, 1, 1, 1)})
    check(path, {"x": normal(1, 1, 1, 1)})


def test_integer_and_boolean_outputs(tmp_path):
    nodes = [
        node("Shape", "x", "shape"),
        node("Greater", "x zero", "positive"),
        node("Not", "positive", "rest"),
        node("Cast", "x", "whole", to=helper.np_dtype_to_tensor_dtype(np.dtype(np.int32))),
        node("ArgMax", "x", "best", axis=1),
        node("Cast", "positive", "number", to=helper.np_dtype_to_tensor_dtype(np.dtype(np.int8))),
    ]
    path = model(
        tmp_path, nodes, {"x": (F32, (5, 7))}, "shape positive rest whole best number", {"zero": np.zeros((), F32)}
    )
    check(path, {"x": 9 * normal(5, 7)})


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int8, np.uint8, np.float64, np.float16])
def test_arithmetic_in_other_types(tmp_path, dtype):
    small = dtype in (np.int8, np.uint8)  # of which the reference has few operators
    kinds = ["Max", "Min", "Equal"] if small else ["Add", "Sub", "Mul", "Div", "Max"]
    nodes = [node(kind, "x y", kind.lower()) for kind in kinds] + [node("Transpose", "x", "turned", perm=[1, 0])]
    path = model(tmp_path, nodes, {"x": (dtype, (5, 33)), "y": (dtype, (33,))}, " ".join(n.output[0] for n in nodes))
    generator = np.random.default_rng(1)
    x, y = (generator.integers(1, 100, shape).astype(dtype) for shape in ((5, 33), (33,)))
    check(path, {"x": x, "y": y}, tolerance=1e-3 if dtype is np.float16 else 1e-7)


def test_negative_integers_divide_towards_zero_and_wrap(tmp_path):
    nodes = [
        node("Div", "x y", "quotient"),
        node("Mod", "x y", "rest"),
        node("Mod", "x y", "signed", fmod=1),
        node("Mul", "x x", "square"),
        node("Abs", "x", "size"),
    ]
    path = model(tmp_path, nodes, {"x": (np.int64, (6,)), "y": (np.int64, (6,))}, "quotient rest signed square size")
    x = np.array([7, -7, 7, -7, 2**52 + 1, -(2**40) + 1])  # the reference takes its signed rest in f64
    check(path, {"x": x, "y": np.array([2, 2, -2, -2, 3, 5])})


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float16, 4e-3)])
def test_layers_in_other_float_types(tmp_path, dtype, tolerance):
    nodes = [
        node("MatMul", "x w", "h0"),
        node("Add", "h0 b", "h1"),
        node("Relu", "h1", "h2"),
        node("Softmax", "h2", "y", axis=-1),
        node("Sigmoid", "h1", "s"),
        node("Tanh", "h1", "t"),
    ]
    weights = {"w": normal(24, 40, dtype=dtype.__name__), "b": normal(40, dtype=dtype.__name__)}
    path = model(tmp_path, nodes, {"x": (dtype, (6, 24))}, "h1 y s t", weights)
    check(path, {"x": normal(6, 24, dtype=dtype.__name__)}, tolerance=tolerance)


def test_negative_steps_and_odd_sizes(tmp_path):
    nodes = [
        node("Slice", "x start end axes steps", "back"),
        node("Add", "x row", "sum"),
        node("MatMul", "sum w", "y"),
        node("Pad", "y pads", "wide", mode="reflect"),
    ]
    weights = {
        "start": np.array([-1, 6]),
        "end": np.array([-100, 0]),
        "axes": np.array([0, 1]),
        "steps": np.array([-1, -3]),
        "row": normal(1, 17),
        "w": normal(17, 3),
        "pads": np.array([2, 1, 1, 2]),
    }
    path = model(tmp_path, nodes, {"x": (F32, (7, 17))}, "back sum y wide", weights)
    check(path, {"x": normal(7, 17)})


def test_nan_and_infinities_go_through(tmp_path):
    kinds = ["Relu", "Sigmoid", "Tanh", "Exp", "Erf", "Sqrt", "Abs", "Neg", "Softplus", "Floor"]
    nodes = [node(kind, "x", kind.lower()) for kind in kinds]
    nodes += [node("Max", "x zero", "larger"), node("ReduceMax", "x axis", "largest", keepdims=0)]
    outputs = " ".join(n.output[0] for n in nodes)
    path = model(tmp_path, nodes, {"x": (F32, (3, 5))}, outputs, {"zero": np.zeros((), F32), "axis": np.array([1])})
    x = np.array([[1, np.inf, -np.inf, 0.0, -0.0], [1, 2, -3, 100, -100], [np.inf, 1, 1, 1, 1]], F32)
    session = check(path, {"x": x})
    x[0, 0] = np.nan
    found = session.run({"x": x})
    for kind in kinds:
        assert np.isnan(found[kind.lower()][0, 0]), kind
    np.testing.assert_array_equal(np.isnan(found["larger"]), np.isnan(x))
    np.testing.assert_array_equal(found["largest"], np.array([np.nan, 100, np.inf], F32))


def test_joined_parts_of_which_one_is_the_same_everywhere(tmp_path):
    """A part that does not vary along the joined axis is loaded only where it is needed."""
    nodes = [
        node("Expand", "c shape", "wide"),
        node("Concat", "x wide", "rows", axis=0),
        node("Concat", "wide x", "rows_first", axis=0),
        node("Expand", "d shape", "tall"),
        node("Concat", "x tall", "columns", axis=1),
        node("Concat", "tall x", "columns_first", axis=1),
    ]
    inputs = {"x": (F32, (5, 19)), "c": (F32, (1, 19)), "d": (F32, (5, 1))}
    outputs = "rows rows_first columns columns_first"
    path = model(tmp_path, nodes, inputs, outputs, {"shape": np.array([5, 19])})
    check(path, {"x": normal(5, 19), "c": normal(1, 19), "d": normal(5, 1)})


@pytest.mark.parametrize("batch", [0, 1, 2])
def test_a_symbolic_batch_may_be_bound_to_any_size(tmp_path, batch):
    nodes = [
        node("Conv", "x w", "c", pads=[1, 1, 1, 1]),
        node("Relu", "c", "r"),
        node("GlobalAveragePool", "r", "g"),
        node("Flatten", "g", "f"),
        node("Softmax", "f", "y"),
    ]
    path = model(tmp_path, nodes, {"x": (F32, ("batch", 3, 5, 4))}, "c y", {"w": normal(8, 3, 3, 3)})
    feeds = {"x": normal(batch, 3, 5, 4)}
    check(path, feeds, {"batch": batch})
