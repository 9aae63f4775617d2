"""Convolutions against onnxruntime: dimensions, groups, strides, dilations, paddings."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.importer.reference import check, compare, helper, normal, run, save, single
from tilec.errors import ConfigError, UnsupportedError
from tilec.importer import import_model
from tilec.ir.text import tensor_text

CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 7, 9), (4, 3, 3, 3), {}),
    ((1, 3, 7, 9), (4, 3, 3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    ((1, 3, 8, 8), (4, 3, 1, 1), {}),
    ((1, 3, 8, 8), (4, 3, 1, 1), {"strides": [2, 1]}),
    ((1, 4, 6, 6), (4, 1, 3, 3), {"group": 4, "pads": [1, 1, 1, 1]}),
    ((1, 4, 6, 6), (6, 2, 3, 3), {"group": 2, "pads": [0, 1, 2, 0]}),
    ((1, 2, 9, 9), (3, 2, 3, 3), {"dilations": [2, 3], "pads": [2, 3, 2, 3]}),
    ((1, 2, 7, 8), (3, 2, 3, 2), {"auto_pad": "SAME_UPPER", "strides": [2, 3]}),
    ((1, 2, 7, 8), (3, 2, 3, 2), {"auto_pad": "SAME_LOWER", "strides": [2, 1]}),
    ((1, 2, 7, 8), (3, 2, 3, 2), {"auto_pad": "VALID"}),
    ((2, 3, 10), (4, 3, 3), {"pads": [1, 1]}),
    ((1, 2, 4, 5, 6), (3, 2, 2, 3, 3), {"pads": [0, 1, 1, 1, 1, 1]}),
    ((1, 1, 1, 1), (1, 1, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((0, 3, 5, 5), (2, 3, 3, 3), {}),
]


@pytest.mark.parametrize(("x", "w", "attributes"), CASES)
@pytest.mark.feature("W01")
def test_conv(tmp_path: Path, x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, Any]) -> None:
    check(tmp_path, "Conv", normal(*x), normal(*w, seed=1), known=[1], atol=1e-5, **attributes)
    check(tmp_path, "Conv", normal(*x), normal(*w, seed=1), normal(w[0]), known=[1, 2], atol=1e-5, **attributes)


@pytest.mark.parametrize(("x", "w", "attributes"), CASES)
def test_conv_in_double_precision(
    tmp_path: Path, x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    arrays = normal(*x, dtype="float64"), normal(*w, seed=1, dtype="float64")
    path, feeds = single(tmp_path, "Conv", *arrays, **attributes)
    (found,) = run(import_model(path), tmp_path, feeds)
    path, feeds = single(tmp_path, "Conv", *(a.astype("float32") for a in arrays), **attributes)
    assert found.dtype == "float64"
    np.testing.assert_allclose(found, run(import_model(path), tmp_path, feeds)[0], rtol=1e-4, atol=1e-5)


def test_conv_guards_only_where_a_window_leaves_the_tensor(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "Conv", normal(1, 3, 8, 8), normal(4, 3, 3, 3), pads=[0, 1, 0, 1])
    (node,) = import_model(path).graph.nodes
    assert tensor_text(node.expr) == (
        "y0[n, o, h, w] = sum(c, r, s, where(s + w - 1 >= 0 and s + w - 1 < 8, x0[n, c, h + r, s + w - 1], 0.0)"
        " * x1[o, c, r, s])"
    )


def test_pointwise_and_depthwise_conv_have_no_needless_iterators(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "Conv", normal(1, 3, 8, 8), normal(4, 3, 1, 1))
    (node,) = import_model(path).graph.nodes
    assert tensor_text(node.expr) == "y0[n, o, h, w] = sum(c, x0[n, c, h, w] * x1[o, c, 0, 0])"
    path, _ = single(tmp_path, "Conv", normal(1, 4, 8, 8), normal(4, 1, 3, 3), group=4)
    (node,) = import_model(path).graph.nodes
    assert tensor_text(node.expr) == "y0[n, o, h, w] = sum(r, s, x0[n, o, h + r, s + w] * x1[o, 0, r, s])"


def test_conv_of_symbolic_images(tmp_path: Path) -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1], strides=[2, 2])
    path = save(tmp_path / "m.onnx", [node], {"x": ("float32", ["n", 3, "h", "w"])}, ["y"], {"w": normal(2, 3, 3, 3)})
    compare(path, {"x": normal(2, 3, 5, 6)}, {"n": 2, "h": 5, "w": 6}, atol=1e-5)


@pytest.mark.parametrize(
    ("x", "w", "attributes", "message"),
    [
        ((1, 3, 5, 5), (2, 4, 3, 3), {}, r"channels of .*: 3 and 4 differ"),
        ((1, 3, 2, 2), (2, 3, 3, 3), {}, "a window of 3 does not fit into dimension 0 of extent 2"),
        ((1, 0, 5, 5), (2, 0, 3, 3), {}, "a convolution has input channels"),
        ((1, 4, 5, 5), (3, 2, 3, 3), {"group": 2}, "3 output channels in 2 groups"),
        ((1, 3, 5, 5), (2, 3, 3, 3), {"kernel_shape": [2, 2]}, r"kernel_shape is \[2, 2\]"),
        ((1, 3, 5, 5), (2, 3, 3, 3), {"pads": [1, 1]}, "'pads' has 2 entries, not 4"),
        ((1, 3, 5, 5), (2, 3, 3, 3), {"strides": [1]}, "'strides' has 1 entries, not 2"),
        ((1, 3, 5, 5), (2, 3, 3, 3), {"auto_pad": "SAME"}, "auto_pad is 'SAME'"),
        ((1, 3, 5, 5), (2, 3, 3), {}, "an input .* and a weight"),
    ],
)
def test_conv_that_does_not_fit(
    tmp_path: Path, x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, Any], message: str
) -> None:
    path, _ = single(tmp_path, "Conv", normal(*x), normal(*w), known=[1], **attributes)
    with pytest.raises(ConfigError, match=message):
        import_model(path)


def test_conv_of_four_dimensions(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "Conv", normal(1, 1, 2, 2, 2, 2), normal(1, 1, 1, 1, 1, 1), known=[1])
    with pytest.raises(UnsupportedError, match="4 spatial dimensions"):
        import_model(path)
