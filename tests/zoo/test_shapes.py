"""Reshapes, broadcasts and halves in both forms, at known and symbolic extents."""

from collections.abc import Callable

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

from tilec.zoo.builder import GraphBuilder
from tilec.zoo.forms import Dim, Form
from tilec.zoo.pixels import Pixels
from tilec.zoo.shapes import Extent, expand, halves, scalar, view

FORMS: tuple[Form, ...] = ("fused", "decomposed")


def _run(
    form: Form, dims: list[Dim], add: Callable[[GraphBuilder], list[str]], x: NDArray[np.float32]
) -> list[NDArray[np.float32]]:
    graph = GraphBuilder("g", form, 0, 20)
    graph.input("x", dims)
    for position, tensor in enumerate(add(graph)):
        graph.output(tensor, f"y{position}", [])
    model = graph.finish()
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    results: list[NDArray[np.float32]] = session.run(None, {"x": x})
    return results


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch", [2, "batch"])
def test_view_splits_an_axis(form: Form, batch: Dim) -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 12)
    (y,) = _run(
        form,
        [batch, 12],
        lambda g: [view(g, "x", Extent("x", 0, batch), Extent("x", 1, 4, divisor=3), -1)],
        x,
    )
    np.testing.assert_array_equal(y, x.reshape(2, 4, 3))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("known", [True, False])
def test_view_of_pixels_that_are_scaled(form: Form, known: bool) -> None:
    pixels = Pixels(6, 4) if known else Pixels("height", "width")
    x = np.arange(24, dtype=np.float32).reshape(1, 1, 6, 4)

    def add(graph: GraphBuilder) -> list[str]:
        height, width = pixels.scaled("x", divisor=2)
        split = view(graph, "x", height, 2, width, 2)
        return [split, view(graph, "x", pixels.count, 1), view(graph, "x", *pixels.scaled("x", 6, 6), 1)]

    split, flat, whole = _run(form, [1, 1, pixels.height, pixels.width], add, x)
    assert [split.shape, flat.shape, whole.shape] == [(3, 2, 2, 2), (24, 1), (6, 4, 1)]
    assert (pixels.over(2) == pixels) is not known


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch", [3, "batch"])
def test_expand_keeps_axes_given_as_minus_one(form: Form, batch: Dim) -> None:
    x = np.arange(6, dtype=np.float32).reshape(3, 1, 2)
    (y,) = _run(form, [batch, 1, 2], lambda g: [expand(g, "x", Extent("x", 0, batch), 4, -1)], x)
    np.testing.assert_array_equal(y, np.broadcast_to(x, (3, 4, 2)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("extent", [1, 2, 5, 6])
def test_halves(form: Form, extent: int) -> None:
    x = np.arange(2 * extent, dtype=np.float32).reshape(2, extent)
    first, second = _run(form, [2, extent], lambda g: list(halves(g, "x", 1, extent)), x)
    middle = (extent + 1) // 2
    np.testing.assert_array_equal(first, x[:, :middle])
    np.testing.assert_array_equal(second, x[:, middle:])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows", [7, "rows"])
def test_scalar(form: Form, rows: Dim) -> None:
    def add(graph: GraphBuilder) -> list[str]:
        return [graph.node("Cast", scalar(graph, Extent("x", 0, rows)), to=1)]

    (y,) = _run(form, [rows, 2], add, np.zeros((7, 2), np.float32))
    assert y.shape == ()
    assert y == 7
