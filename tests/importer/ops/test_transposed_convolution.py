"""Transposed convolutions against onnxruntime: dimensions, groups, strides, dilations, shapes of the result."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.importer.reference import check, compare, helper, normal, run, save, single
from tilec.errors import ConfigError
from tilec.importer import import_model
from tilec.ir.text import tensor_text


@pytest.mark.parametrize(
    ("x", "w", "attributes"),
    [
        ((1, 3, 4, 5), (3, 2, 3, 3), {}),
        ((2, 3, 4, 5), (3, 2, 2, 2), {"strides": [2, 2]}),
        ((1, 4, 4, 5), (4, 2, 3, 3), {"group": 2, "strides": [2, 3], "pads": [1, 0, 1, 2]}),
        ((1, 2, 4, 4), (2, 1, 3, 3), {"strides": [2, 2], "output_padding": [1, 1], "pads": [1, 1, 1, 1]}),
        ((1, 2, 4, 4), (2, 1, 3, 3), {"dilations": [2, 2]}),
        ((1, 2, 5), (2, 3, 4), {"strides": [3]}),
        ((1, 2, 5), (2, 3, 4), {"strides": [3], "dilations": [2], "pads": [1, 2]}),
        ((1, 2, 4, 5), (2, 3, 4, 3), {"strides": [2, 1], "dilations": [1, 2], "pads": [1, 0, 3, 1]}),
        ((1, 2, 4, 4), (2, 1, 3, 3), {"strides": [2, 2], "output_shape": [9, 8]}),
        ((1, 2, 4, 4), (2, 1, 3, 3), {"strides": [2, 2], "output_shape": [10, 8], "output_padding": [1, 0]}),
        ((1, 2, 4, 4), (2, 1, 3, 3), {"strides": [2, 2], "output_shape": [8, 7], "auto_pad": "SAME_LOWER"}),
        ((1, 2, 4, 4), (2, 1, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
        ((1, 2, 4, 4), (2, 1, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
        ((1, 2, 4, 4), (2, 1, 2, 2), {"strides": [3, 3], "auto_pad": "SAME_UPPER"}),
        ((1, 2, 4, 4), (2, 1, 3, 3), {"strides": [2, 2], "auto_pad": "VALID"}),
        ((1, 2, 3, 4, 2), (2, 3, 2, 3, 2), {"strides": [2, 1, 2], "pads": [0, 1, 0, 1, 0, 0]}),
        ((0, 2, 3, 3), (2, 1, 2, 2), {}),
        ((1, 1, 1, 1), (1, 1, 1, 1), {}),
        ((1, 2, 3, 4), (2, 3, 2, 3), {"strides": [7, 2], "pads": [1, 0, 0, 2], "output_padding": [3, 1]}),
    ],
)
def test_conv_transpose(tmp_path: Path, x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, Any]) -> None:
    bias = normal(w[1] * attributes.get("group", 1))
    check(tmp_path, "ConvTranspose", normal(*x), normal(*w, seed=1), bias, known=[1, 2], atol=1e-5, **attributes)


def test_phases_are_one_convolution_of_a_longer_kernel(tmp_path: Path) -> None:
    x, w = normal(1, 2, 5), normal(2, 3, 3, seed=1)
    path, _ = single(tmp_path, "ConvTranspose", x, w, strides=[2], pads=[1, 0])
    assert [tensor_text(node.expr) for node in import_model(path).graph.nodes] == [
        "y0_kernel[i, j, k] = where(k < 3, x1[i, j, k], 0.0)",
        "y0_phases[n, o, j, w] = sum(c, s, where(w - s >= 0 and w - s < 5, x0[n, c, w - s], 0.0)"
        " * y0_kernel[c, o, j + s * 2])",
        "y0[n, o, w] = y0_phases[n, o, (w + 1) % 2, (w + 1) // 2]",
    ]


def test_symbolic_images(tmp_path: Path) -> None:
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], pads=[1, 1, 1, 1])
    path = save(tmp_path / "m.onnx", [node], {"x": ("float32", ["n", 3, "h", "v"])}, ["y"], {"w": normal(3, 2, 4, 4)})
    compare(path, {"x": normal(2, 3, 5, 6)}, {"n": 2, "h": 5, "v": 6}, atol=1e-5)


def test_double_precision(tmp_path: Path) -> None:
    arrays = normal(1, 2, 4, dtype="float64"), normal(2, 3, 3, dtype="float64")
    path, feeds = single(tmp_path, "ConvTranspose", *arrays, strides=[2])
    (found,) = run(import_model(path), tmp_path, feeds)
    path, feeds = single(tmp_path, "ConvTranspose", *(a.astype("float32") for a in arrays), strides=[2])
    np.testing.assert_allclose(found, run(import_model(path), tmp_path, feeds)[0], atol=1e-5)


@pytest.mark.parametrize(
    ("x", "w", "options", "message"),
    [
        ((1, 2, 5), (3, 1, 3), {}, "channels of .*: 2 and 3 differ"),
        ((1, 3, 5), (3, 1, 3), {"group": 2}, "3 input channels in 2 groups"),
        ((1, 2, 5), (2, 1, 3), {"auto_pad": "SAME"}, "auto_pad is 'SAME'"),
        ((1, 2, 5), (2, 1, 3), {"pads": [1]}, "pads, output_padding or output_shape do not fit"),
        ((1, 2, 5), (2, 1, 3, 3), {}, "an input .* and a weight"),
        ((1, 2, 5), (2, 1, 3), {"strides": [0]}, r"strides \[0\]"),
    ],
)
def test_operands_that_do_not_fit(
    tmp_path: Path, x: tuple[int, ...], w: tuple[int, ...], options: dict[str, Any], message: str
) -> None:
    path, _ = single(tmp_path, "ConvTranspose", normal(*x), normal(*w), **options)
    with pytest.raises(ConfigError, match=message):
        import_model(path)
