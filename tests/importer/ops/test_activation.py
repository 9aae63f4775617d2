"""Activations against onnxruntime, with special values and attributes."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.importer.reference import check, normal, single
from tilec.errors import ConfigError
from tilec.importer import import_model
from tilec.importer.ops.activation import ACTIVATIONS
from tilec.ir.text import tensor_text

X = np.concatenate([5 * normal(40), [0.0, -0.0, 1.0, -20.0, 20.0, 88.0, -88.0]]).astype(np.float32)
REFERENCE = sorted(k for k in ACTIVATIONS if onnx.defs.get_schema(k).since_version < 24)


@pytest.mark.parametrize("kind", REFERENCE)
@pytest.mark.feature("A04")
def test_activation(tmp_path: Path, kind: str) -> None:
    check(tmp_path, kind, X, opset=22)


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("Celu", {"alpha": 0.7}),
        ("Elu", {"alpha": 0.7}),
        ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}),
        ("LeakyRelu", {"alpha": 0.3}),
        ("Selu", {"alpha": 1.5, "gamma": 1.1}),
        ("Shrink", {"lambd": 1.0, "bias": 0.25}),
        ("ThresholdedRelu", {"alpha": 0.5}),
    ],
)
def test_attributes(tmp_path: Path, kind: str, attributes: dict[str, float]) -> None:
    check(tmp_path, kind, X, **attributes)


@pytest.mark.parametrize("kind", ["Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSwish"])
def test_nan_and_infinity(tmp_path: Path, kind: str) -> None:
    check(tmp_path, kind, np.array([np.nan, np.inf, -np.inf][: 1 if kind == "HardSwish" else 3], np.float32))


def test_relu_of_integers(tmp_path: Path) -> None:
    check(tmp_path, "Relu", np.array([-3, 0, 4], np.int32))


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
@pytest.mark.parametrize("attributes", [{}, {"lambd": 1.5, "bias": 0.5}])
def test_shrink(tmp_path: Path, dtype: str, attributes: dict[str, float]) -> None:
    check(tmp_path, "Shrink", np.array([0, 1, 2, 5]).astype(dtype), **attributes)
    check(tmp_path, "Shrink", np.array([-3, -1, 0, 4], np.int64), **attributes)


def test_swish_of_opset_24(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "Swish", X, opset=24, alpha=1.5)
    assert tensor_text(import_model(path).graph.nodes[0].expr) == "y0[i] = x0[i] * sigmoid(1.5 * x0[i])"


def test_prelu_broadcasts_its_slope(tmp_path: Path) -> None:
    check(tmp_path, "PRelu", normal(2, 3, 4), normal(3, 1, seed=1), known=[1])


@pytest.mark.parametrize("form", ["none", "tanh"])
def test_gelu(tmp_path: Path, form: str) -> None:
    check(tmp_path, "Gelu", X, approximate=form)


def test_gelu_of_an_unknown_form(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "Gelu", X, approximate="erf")
    with pytest.raises(ConfigError, match="approximate is 'erf'"):
        import_model(path)
