"""Layers in both forms against float64."""

import math
from typing import Literal

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

from tilec.zoo import cnn, nn
from tilec.zoo.builder import GraphBuilder
from tilec.zoo.forms import Form

FORMS: tuple[Form, ...] = ("fused", "decomposed")
Double = NDArray[np.float64]


def _finish(graph: GraphBuilder, tensor: str, rank: int, **feeds: NDArray[np.float32]) -> NDArray[np.float32]:
    graph.output(tensor, "y", [f"d{axis}" for axis in range(rank)])
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        graph.finish().SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    (result,) = session.run(None, feeds)
    assert isinstance(result, np.ndarray)
    return result


def _normal(*shape: int, mean: float = 0.0) -> NDArray[np.float32]:
    return (np.random.default_rng(9).standard_normal(shape) + mean).astype(np.float32)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mean", [0.0, 30.0])
def test_layer_norm(form: Form, mean: float) -> None:
    x = _normal(3, 5, 16, mean=mean)
    graph = GraphBuilder("g", form, 0, 20)
    scale, bias = graph.draw("n.weight", [16], 0.2, 1.0), graph.draw("n.bias", [16], 0.1)
    y = _finish(graph, nn.layer_norm(graph, graph.input("x", [3, 5, 16]), "n", 16, 1e-6), 3, x=x)
    double = x.astype(np.float64)
    centered = double - double.mean(-1, keepdims=True)
    expected = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-6) * scale + bias
    np.testing.assert_allclose(y, expected, atol=2e-5)


@pytest.mark.parametrize("form", FORMS)
def test_rms_norm(form: Form) -> None:
    x = _normal(3, 16)
    graph = GraphBuilder("g", form, 0, 23)
    scale = graph.draw("n.weight", [16], 0.2, 1.0)
    y = _finish(graph, nn.rms_norm(graph, graph.input("x", [3, 16]), "n", 16, 1e-5), 2, x=x)
    double = x.astype(np.float64)
    expected = double / np.sqrt((double**2).mean(-1, keepdims=True) + 1e-5) * scale
    np.testing.assert_allclose(y, expected, rtol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_gelu_is_exact(form: Form) -> None:
    x = np.linspace(-6, 6, 97, dtype=np.float32)
    graph = GraphBuilder("g", form, 0, 20)
    y = _finish(graph, nn.gelu(graph, graph.input("x", [97])), 1, x=x)
    expected = [value * 0.5 * (1 + math.erf(value / math.sqrt(2))) for value in x.astype(float)]
    np.testing.assert_allclose(y, expected, atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scaling", ["divide", "multiply", "query"])
def test_attention(form: Form, scaling: Literal["divide", "multiply", "query"]) -> None:
    query, key, value = _normal(2, 3, 5, 4), _normal(2, 3, 7, 4)[..., ::-1], _normal(2, 3, 7, 4)
    mask = np.where(np.arange(7) < 6, 0, np.finfo(np.float32).min).astype(np.float32)
    graph = GraphBuilder("g", form, 0, 20)
    graph.input("q", [2, 3, 5, 4])
    graph.input("k", [2, 3, 4, 7])
    graph.input("v", [2, 3, 7, 4])
    mixed = nn.attention(graph, "q", "k", "v", 4, mask=graph.input("m", [7]), scaling=scaling)
    y = _finish(graph, mixed, 4, q=query, k=np.ascontiguousarray(key.swapaxes(-1, -2)), v=value, m=mask)
    scores: Double = query.astype(np.float64) @ key[..., :6, :].swapaxes(-1, -2) / 2
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    np.testing.assert_allclose(y, weights @ value[..., :6, :], atol=1e-5)


def test_batch_norm_is_folded_into_the_convolution() -> None:
    x, results = _normal(2, 4, 5, 5), []
    for form in FORMS:
        graph = GraphBuilder("g", form, 0, 20)
        tensor = graph.input("x", [2, 4, 5, 5])
        results.append(_finish(graph, cnn.conv_bn(graph, tensor, "c", "n", 4, 6, 3, stride=2, pad=1, groups=2), 4, x=x))
    assert results[0].shape == (2, 6, 3, 3)
    np.testing.assert_allclose(results[1], results[0], atol=1e-5)
