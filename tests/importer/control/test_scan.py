"""Scan: unrolled over slices, forwards and backwards, along any axis, and for batches in opset 8."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.helper import make_node

from tests.importer.reference import compare, normal, run, save
from tilec.errors import ConfigError
from tilec.importer import import_model
from tilec.ir.text import text_of

F32 = TensorProto.FLOAT


def info(name: str, shape: Sequence[int] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, F32, shape)


def running_sum(shape: Sequence[int] | None = None) -> onnx.GraphProto:
    """Carries the sum of what is scanned; gives it, and the scanned value negated."""
    nodes = [
        make_node("Add", ["s", "v"], ["sum"]),
        make_node("Identity", ["sum"], ["now"]),
        make_node("Neg", ["v"], ["n"]),
    ]
    return helper.make_graph(
        nodes, "b", [info("s", shape), info("v", shape)], [info(n, shape) for n in ("sum", "now", "n")]
    )


def model(
    folder: Path,
    body: onnx.GraphProto,
    start: Sequence[int | str],
    x: Sequence[int | str],
    opset: int = 20,
    **attributes: Any,
) -> Path:
    names = ["start", "x"] if opset > 8 else ["", "start", "x"]
    node = make_node("Scan", names, ["last", "sums", "minus"], "scan", body=body, num_scan_inputs=1, **attributes)
    inputs = {"start": ("float32", start), "x": ("float32", x)}
    return save(folder / "m.onnx", [node], inputs, ["last", "sums", "minus"], opset=opset)


@pytest.mark.parametrize("opset", [9, 11, 16, 21])
@pytest.mark.parametrize("length", [1, 5])
def test_along_the_first_axis(tmp_path: Path, length: int, opset: int) -> None:
    path = model(tmp_path, running_sum([3]), [3], [length, 3], opset)
    graph = compare(path, {"start": normal(3), "x": normal(length, 3)})
    assert {"last", "sums", "minus"} <= set(graph.tensors)
    assert ("scan_0_sum" in graph.tensors) == (length > 1)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("given", [(0, 2), (1, 0), (-1, 1)])
@pytest.mark.parametrize("back", [(0, 0, 0), (1, 0, 1), (0, 1, 0), (1, 1, 1)])
def test_axes_and_directions(tmp_path: Path, axis: int, given: tuple[int, int], back: tuple[int, int, int]) -> None:
    start = np.delete((2, 4, 3), axis).tolist()
    path = model(
        tmp_path,
        running_sum(start),
        start,
        [2, 4, 3],
        11,
        scan_input_axes=[axis],
        scan_input_directions=back[:1],
        scan_output_axes=given,
        scan_output_directions=back[1:],
    )
    compare(path, {"start": normal(*start), "x": normal(2, 4, 3)})


@pytest.mark.parametrize("axis", [0, 1])
def test_nothing_to_scan(tmp_path: Path, axis: int) -> None:
    """The reference divides by the number of iterations."""
    shape = [3]
    shape.insert(axis, 0)
    path = model(tmp_path, running_sum([3]), [3], shape, scan_input_axes=[axis], scan_output_axes=[axis, axis])
    last, sums, minus = run(import_model(path), tmp_path, {"start": normal(3), "x": normal(*shape)})
    assert np.array_equal(last, normal(3))
    assert list(sums.shape) == list(minus.shape) == shape


def test_several_scanned_inputs_and_no_state(tmp_path: Path) -> None:
    nodes = [make_node("Mul", ["a", "b"], ["p"]), make_node("Add", ["p", "w"], ["q"])]
    body = helper.make_graph(nodes, "b", [info("a"), info("b")], [info("q")])
    node = make_node("Scan", ["x", "z"], ["y"], body=body, num_scan_inputs=2, scan_input_directions=[0, 1])
    inputs = {"x": ("float32", [4, 2]), "z": ("float32", [4, 2]), "w": ("float32", [2])}
    path = save(tmp_path / "m.onnx", [node], inputs, ["y"])
    compare(path, {"x": normal(4, 2), "z": normal(4, 2, seed=1), "w": normal(2)})


def test_symbolic_extents_beside_the_scanned_one(tmp_path: Path) -> None:
    path = model(tmp_path, running_sum(), ["n"], [4, "n"])
    compare(path, {"start": normal(3), "x": normal(4, 3)}, {"n": 3})


def test_a_state_has_the_size_that_the_body_demands(tmp_path: Path) -> None:
    """Its name for the size is another one than that of the scanned elements, which are repeated where they are 1."""
    path = model(tmp_path, running_sum(), ["states"], ["steps", "elements"])
    graph = import_model(path).graph
    assert not graph.placement.fallback
    assert [text_of(each.holds) for each in graph.constraints] == ["elements == states or elements == 1"]
    compare(path, {"start": normal(3), "x": normal(4, 3)}, {"states": 3, "steps": 4, "elements": 3})
    compare(path, {"start": normal(3), "x": normal(4, 1)}, {"states": 3, "steps": 4, "elements": 1})


def cell() -> list[onnx.NodeProto]:
    """h = tanh(x W + h R), as an exporter writes it."""
    return [
        make_node("MatMul", ["v", "w"], ["a"]),
        make_node("MatMul", ["h", "r"], ["b"]),
        make_node("Add", ["a", "b"], ["c"]),
        make_node("Tanh", ["c"], ["next"]),
        make_node("Identity", ["next"], ["given"]),
    ]


def test_a_recurrent_cell(tmp_path: Path) -> None:
    nodes = cell()
    body = helper.make_graph(nodes, "b", [info("h"), info("v")], [info("next"), info("given")])
    node = make_node("Scan", ["start", "x"], ["last", "y"], body=body, num_scan_inputs=1)
    weights = {"w": normal(4, 3), "r": normal(3, 3)}
    inputs = {"start": ("float32", [2, 3]), "x": ("float32", [6, 2, 4])}
    path = save(tmp_path / "m.onnx", [node], inputs, ["last", "y"], weights)
    compare(path, {"start": normal(2, 3), "x": normal(6, 2, 4)})


@pytest.mark.parametrize("back", [0, 1])
@pytest.mark.parametrize(("batch", "length"), [(1, 3), (2, 1), (3, 4)])
def test_batches(tmp_path: Path, batch: int, length: int, back: int) -> None:
    path = model(tmp_path, running_sum([2]), [batch, 2], [batch, length, 2], 8, directions=[back])
    compare(path, {"start": normal(batch, 2), "x": normal(batch, length, 2)})


@pytest.mark.parametrize("back", [0, 1])
def test_batches_of_short_sequences(tmp_path: Path, back: int) -> None:
    node = make_node(
        "Scan", ["lengths", "start", "x"], ["l", "s", "m"], body=running_sum([2]), num_scan_inputs=1, directions=[back]
    )
    inputs = {"start": ("float32", [3, 2]), "x": ("float32", [3, 4, 2])}
    lengths = {"lengths": np.array([4, 1, 3])}
    path = save(tmp_path / "m.onnx", [node], inputs, ["l", "s", "m"], lengths, 8)
    compare(path, {"start": normal(3, 2), "x": normal(3, 4, 2)})


def test_a_sequence_without_elements(tmp_path: Path) -> None:
    """The reference refuses lengths of 0; the state stays, what is gathered is zero."""
    node = make_node("Scan", ["lengths", "start", "x"], ["l", "s", "m"], body=running_sum([2]), num_scan_inputs=1)
    inputs = {"start": ("float32", [2, 2]), "x": ("float32", [2, 2, 2])}
    path = save(tmp_path / "m.onnx", [node], inputs, ["l", "s", "m"], {"lengths": np.array([0, 2])}, 8)
    start, x = normal(2, 2), normal(2, 2, 2)
    last, sums, minus = run(import_model(path), tmp_path, {"start": start, "x": x})
    assert np.array_equal(last[0], start[0])
    assert not sums[0].any()
    assert not minus[0].any()
    np.testing.assert_allclose(last[1], start[1] + x[1].sum(0), rtol=1e-4)


@pytest.mark.parametrize("backward", [0, 1])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_symbolic_extent_is_a_loop(tmp_path: Path, axis: int, backward: int) -> None:
    ways = {"scan_input_axes": [axis], "scan_input_directions": [backward]}
    ways |= {"scan_output_axes": [axis, 0], "scan_output_directions": [1 - backward, backward]}
    path = model(tmp_path, running_sum(), [3], [3, "n"] if axis else ["n", 3], **ways)
    loop = import_model(path)
    assert [call.loop for call in loop.graph.calls] == ["start", "end"]
    for steps in (0, 1, 4):
        feeds = {"start": normal(3), "x": normal(3, steps) if axis else normal(steps, 3)}
        unrolled = import_model(path, sizes={"n": steps})
        assert not unrolled.graph.calls
        for one, other in zip(run(loop, tmp_path, feeds, {"n": steps}), run(unrolled, tmp_path, feeds), strict=True):
            assert np.array_equal(one, other)


def test_many_iterations_are_a_loop(tmp_path: Path) -> None:
    graph = compare(model(tmp_path, running_sum(), [3], [5000, 3]), {"start": normal(3), "x": normal(5000, 3)})
    assert len(graph.nodes) < 10


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        ({"scan_input_axes": [2]}, "axis 2 of a scanned input of shape .4, 3."),
        ({"scan_input_axes": [0, 1]}, "'scan_input_axes' has 2 values for 1 tensors"),
        ({"scan_output_axes": [0, 5]}, "axis 5"),
        ({"scan_output_directions": [0]}, "'scan_output_directions' has 1 values for 2 tensors"),
    ],
)
def test_wrong_attributes(tmp_path: Path, attributes: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=f"node 'scan'.*{why}"):
        import_model(model(tmp_path, running_sum(), [3], [4, 3], **attributes))


@pytest.mark.parametrize(("scans", "why"), [(0, "num_scan_inputs is 0"), (3, "num_scan_inputs is 3, .* 2 inputs")])
def test_wrong_numbers(tmp_path: Path, scans: int, why: str) -> None:
    node = make_node("Scan", ["start", "x"], ["a", "b", "c"], "scan", body=running_sum(), num_scan_inputs=scans)
    inputs = {"start": ("float32", [4, 3]), "x": ("float32", [4, 3])}
    with pytest.raises(ConfigError, match=why):
        import_model(save(tmp_path / "m.onnx", [node], inputs, ["a", "b", "c"]))


def test_extents_that_differ(tmp_path: Path) -> None:
    body = helper.make_graph([make_node("Mul", ["a", "b"], ["p"])], "b", [info("a"), info("b")], [info("p")])
    node = make_node("Scan", ["x", "z"], ["y"], "scan", body=body, num_scan_inputs=2)
    path = save(tmp_path / "m.onnx", [node], {"x": ("float32", [4]), "z": ("float32", [5])}, ["y"])
    with pytest.raises(ConfigError, match="what is scanned together: 4 and 5 differ"):
        import_model(path)
