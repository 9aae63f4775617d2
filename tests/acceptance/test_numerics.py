"""Normalisations and softmax on inputs that lose digits: no worse than twice onnxruntime's error against float64."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from importer.reference import helper, normal, onnxruntime, save

from acceptance.building import assert_close, check, compiled, folder_of, plan_of

F32 = np.float32
SCALE, BIAS = normal(24, seed=1), normal(24, seed=2)


def node(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


def shifted(*shape: int):
    """Mean 1000 and spread 0.1: one part in ten thousand is what matters."""
    return (1000 + 0.1 * normal(*shape)).astype(F32)


def wide(*shape: int):
    """Rows that hold +88 and -88, where exp overflows and vanishes."""
    x = normal(*shape)
    x[..., 0] = 88
    x[..., 1] = -88
    x[..., 2] = 88
    return x


def normalised(x, axes, epsilon):
    mean = x.mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + epsilon)


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def per_channel(vector, x):
    return vector.astype(np.float64).reshape(1, -1, *[1] * (x.ndim - 2))


def groups(x):
    return normalised(x.reshape(x.shape[0], 4, -1), 2, 1e-5).reshape(x.shape)


DECOMPOSED_NORM = [
    node("ReduceMean", "x axis", "mean"),
    node("Sub", "x mean", "centered"),
    node("Pow", "centered two", "squared"),
    node("ReduceMean", "squared axis", "variance"),
    node("Add", "variance epsilon", "shifted"),
    node("Sqrt", "shifted", "deviation"),
    node("Div", "centered deviation", "y"),
]
DECOMPOSED_SOFTMAX = [
    node("Exp", "x", "e"),
    node("ReduceSum", "e axis", "sum"),
    node("Div", "e sum", "y"),
]
LAST = {"axis": np.array([-1]), "two": np.array(2.0, F32), "epsilon": np.array(1e-5, F32)}
CHANNELS = {"s": SCALE, "b": BIAS}

CASES = {
    "LayerNormalization": (
        [node("LayerNormalization", "x s b", "y", epsilon=1e-5)],
        CHANNELS,
        (5, 24),
        lambda x: normalised(x, -1, 1e-5) * SCALE.astype(np.float64) + BIAS.astype(np.float64),
    ),
    "LayerNormalization of two axes": (
        [node("LayerNormalization", "x s", "y", axis=1, epsilon=1e-5)],
        {"s": np.ones((6, 24), F32)},
        (3, 6, 24),
        lambda x: normalised(x, (1, 2), 1e-5),
    ),
    "InstanceNormalization": (
        [node("InstanceNormalization", "x s b", "y", epsilon=1e-5)],
        CHANNELS,
        (2, 24, 5, 7),
        lambda x: normalised(x, (2, 3), 1e-5) * per_channel(SCALE, x) + per_channel(BIAS, x),
    ),
    "GroupNormalization": (
        [node("GroupNormalization", "x s b", "y", num_groups=4, epsilon=1e-5)],
        CHANNELS,
        (2, 24, 5, 7),
        lambda x: groups(x) * per_channel(SCALE, x) + per_channel(BIAS, x),
    ),
    "MeanVarianceNormalization": (
        [node("MeanVarianceNormalization", "x", "y", axes=[0, 2, 3])],
        {},
        (2, 24, 5, 7),
        lambda x: normalised(x, (0, 2, 3), 0.0),
    ),
    "decomposed norm": (DECOMPOSED_NORM, LAST, (5, 24), lambda x: normalised(x, -1, 1e-5)),
    "Softmax": ([node("Softmax", "x", "y", axis=-1)], {}, (5, 37), lambda x: softmax(x, -1)),
    "Softmax of the first axis": ([node("Softmax", "x", "y", axis=0)], {}, (37, 24), lambda x: softmax(x, 0)),
    "LogSoftmax": ([node("LogSoftmax", "x", "y")], {}, (5, 37), lambda x: np.log(softmax(x, -1))),
    "ReduceLogSumExp": (
        [node("ReduceLogSumExp", "x axis", "y")],
        LAST,
        (5, 37),
        lambda x: np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)) + x.max(-1, keepdims=True),
    ),
    "ReduceMean": ([node("ReduceMean", "x axis", "y")], LAST, (5, 3001), lambda x: x.mean(-1, keepdims=True)),
    "ReduceL2": ([node("ReduceL2", "x axis", "y")], LAST, (5, 37), lambda x: np.sqrt((x**2).sum(-1, keepdims=True))),
}


def build(folder: Path, nodes, weights, shape) -> Path:
    used = {name for n in nodes for name in n.input}
    kept = {name: array for name, array in weights.items() if name in used}
    return save(folder / "model.onnx", nodes, {"x": (F32, shape)}, ["y"], kept, 21)


def error(found, exact) -> float:
    return float(np.abs(found.astype(np.float64) - exact).max())


@pytest.mark.slow_cases("InstanceNormalization", "MeanVarianceNormalization")
@pytest.mark.parametrize("name", CASES)
def test_error_against_float64_is_at_most_twice_the_references(tmp_path, name):
    nodes, weights, shape, exact = CASES[name]
    path = build(tmp_path, nodes, weights, shape)
    session = compiled(path)
    inputs = [normal(*shape), 3 + normal(*shape), shifted(*shape)]
    if "norm" not in name and "L2" not in name:
        inputs.append(wide(*shape))
    for x in inputs:
        y = exact(x.astype(np.float64))
        (reference,) = onnxruntime(path, {"x": x})
        # The reference's own error may be NaN: its variance of a group can come out negative.
        ours, theirs = error(session.run({"x": x})["y"], y), np.nan_to_num(error(reference, y), nan=np.inf)
        assert ours <= 2 * theirs + 2.0**-22 * np.abs(y).max(), (ours, theirs)


def test_exponentials_that_overflow_do_so_as_in_the_reference(tmp_path):
    weights = {"axis": np.array([-1])}
    path = build(tmp_path, DECOMPOSED_SOFTMAX, weights, (3, 20))
    x = wide(3, 20)
    x[1] = 100
    check(path, {"x": x})


@pytest.mark.parametrize("lowest", [float(np.finfo(F32).min), -np.inf, -1e4])
def test_fully_masked_rows_come_out_as_in_the_reference(tmp_path, lowest):
    nodes = [
        node("MatMul", "q k", "scores"),
        node("Add", "scores mask", "masked"),
        node("Softmax", "masked", "p", axis=-1),
        node("MatMul", "p v", "y"),
    ]
    inputs = {"q": (F32, (2, 3, 8)), "k": (F32, (2, 8, 19)), "v": (F32, (2, 19, 8)), "mask": (F32, (2, 1, 19))}
    path = save(tmp_path / "model.onnx", nodes, inputs, ["p", "y"])
    mask = np.zeros((2, 1, 19), F32)
    mask[0] = lowest
    mask[1, 0, 4:] = lowest
    feeds = {"q": normal(2, 3, 8), "k": normal(2, 8, 19), "v": normal(2, 19, 8), "mask": mask}
    found, expected = compiled(path).run(feeds), onnxruntime(path, feeds)
    assert_close(found, dict(zip(("p", "y"), expected, strict=True)), 1e-5)
    assert np.isnan(found["p"][0]).all() == np.isinf(lowest)
    assert (found["p"][1, :, 4:] == 0).all()


HALVES = {"float16": (np.float16, 2.0**-10), "bfloat16": (ml_dtypes.bfloat16, 2.0**-7)}


def attend(q, k, v):
    return softmax(q @ k, -1) @ v


@pytest.mark.feature("L17")
@pytest.mark.parametrize("name", HALVES)
def test_half_precision_operands_are_converted_where_the_plan_says(tmp_path, name):
    """Small whole numbers and NaN in products and in a padded convolution of odd sizes."""
    dtype, _ = HALVES[name]
    nodes = [node("MatMul", "x w", "y"), node("Conv", "image filter", "z", pads=[1, 1, 1, 1])]
    shapes = {"x": (37, 53), "w": (53, 70), "image": (1, 9, 11, 13), "filter": (17, 9, 3, 3)}
    inputs = {n: (dtype, shape) for n, shape in shapes.items()}
    rng = np.random.default_rng(4)
    feeds = {n: rng.integers(-2, 3, shape).astype(dtype) for n, shape in shapes.items()}
    feeds["x"][0, 0] = np.nan
    session = compiled(save(tmp_path / "model.onnx", nodes, inputs, ["y", "z"]))
    variants = [group.variants[0] for group in plan_of(folder_of(tmp_path / "model.onnx")).groups]
    held = {tensor for variant in variants for of in variant.held.values() for tensor in of}
    assert {"x", "image"} <= held or any(variant.units for variant in variants), "a unit takes them as they are"
    found = {n: value.view(dtype).astype(np.float64) for n, value in session.run(feeds).items()}
    exact = {n: value.astype(np.float64) for n, value in feeds.items()}
    assert np.array_equal(found["y"], exact["x"] @ exact["w"], equal_nan=True)
    padded = np.pad(exact["image"][0], ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    assert np.array_equal(found["z"][0], np.einsum("chwrs,ocrs->ohw", windows, exact["filter"]))


@pytest.mark.parametrize("name", HALVES)
def test_half_precision_rounds_where_it_leaves_a_group(tmp_path, name):
    """And where a unit takes it."""
    dtype, unit = HALVES[name]
    nodes = [node("MatMul", "q k", "s"), node("Softmax", "s", "p", axis=-1), node("MatMul", "p v", "y")]
    shapes = {"q": (2, 16, 32), "k": (2, 32, 48), "v": (2, 48, 8)}
    path = save(tmp_path / "model.onnx", nodes, {n: (dtype, shape) for n, shape in shapes.items()}, ["y"])
    feeds = {n: (0.5 * normal(*shape, seed=i)).astype(dtype) for i, (n, shape) in enumerate(shapes.items())}
    session = compiled(path)
    groups = plan_of(folder_of(path)).groups
    exact = attend(*(feeds[n].astype(np.float64) for n in "qkv"))
    found = session.run(feeds)["y"].view(dtype).astype(np.float64)
    assert [group.variants[0].held != {} for group in groups] == [True]
    taken = any(group.variants[0].units for group in groups)
    magnitude = attend(*(feeds[n].astype(np.float64) for n in "qk"), np.abs(feeds["v"].astype(np.float64)))
    allowed = 0.5 * unit * (np.abs(exact) + (magnitude if taken else 0))
    assert (np.abs(found - exact) <= allowed + 1e-6).all()


def test_casts_to_half_precision_round_inside_a_group(tmp_path):
    """Squares pass 65504 on their way to `y`, which is small enough; a cast of the model makes them infinite."""
    nodes = [
        node("Mul", "h h", "square"),
        node("Div", "square large", "y"),
        node("Cast", "x", "wide", to=1),
        node("Mul", "wide wide", "exact"),
        node("Cast", "exact", "rounded", to=10),
        node("Div", "rounded large", "z"),
        node("Neg", "rounded", "edge"),
    ]
    nodes.insert(0, node("Neg", "x", "h"))
    path = save(
        tmp_path / "model.onnx",
        nodes,
        {"x": (np.float16, (5, 33))},
        ["y", "z", "edge"],
        {"large": np.array(1024, np.float16)},
    )
    found = compiled(path).run({"x": np.full((5, 33), 400, np.float16)})
    assert (found["y"] == 156.25).all()
    assert (found["z"] == np.inf).all()
    assert (found["edge"] == -np.inf).all()
