"""Products over flattened dimensions, between reshapes, compiled once for all sizes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from acceptance.test_any_size import compiled, near, reference_of, weight, write
from tilec.ir.plan import Plan
from tilec.ir.text import text_of

SIZES = ((0, 3), (3, 0), (1, 1), (1, 17), (5, 1), (2, 33), (3, 40))


def flattened(folder: Path) -> Path:
    """`x [batch, seq, 24]` as rows through a layer, then as 3 heads a batch through the product with itself."""

    def reshape(source: str, result: str, parts: list[str]) -> list[onnx.NodeProto]:
        shape = helper.make_node("Concat", parts, [f"{result}_shape"], axis=0)
        return [shape, helper.make_node("Reshape", [source, f"{result}_shape"], [result], allowzero=1)]

    nodes = [
        helper.make_node("Shape", ["x"], ["b"], start=0, end=1),
        helper.make_node("Shape", ["x"], ["s"], start=1, end=2),
        helper.make_node("Mul", ["b", "s"], ["bs"]),
        helper.make_node("Mul", ["b", "three"], ["b3"]),
        *reshape("x", "rows", ["bs", "width"]),
        helper.make_node("MatMul", ["rows", "w"], ["p"]),
        helper.make_node("Add", ["p", "bias"], ["q"]),
        helper.make_node("Relu", ["q"], ["r"]),
        *reshape("r", "split", ["b", "s", "three", "eight"]),
        helper.make_node("Transpose", ["split"], ["heads"], perm=[0, 2, 1, 3]),
        *reshape("heads", "left", ["b3", "s", "eight"]),
        helper.make_node("Transpose", ["left"], ["right"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["left", "right"], ["scores"]),
        *reshape("scores", "y", ["b", "three", "s", "s"]),
    ]
    sizes = [numpy_helper.from_array(np.array([n], np.int64), name) for name, n in NUMBERS.items()]
    inputs, outputs = {"x": ("batch", "seq", 24)}, {"y": ("batch", 3, "seq", "seq")}
    weights = (weight("w", 24, 24), weight("bias", 24))
    return write(folder / "flattened.onnx", nodes, inputs, outputs, *weights, *sizes)


NUMBERS = {"width": 24, "three": 3, "eight": 8}


@pytest.mark.feature("B01", "B06", "B08")
def test_flattened_products_are_planned_over_their_factors(tmp_path: Path) -> None:
    seen: list[Plan] = []

    def any_size(plan: Plan) -> Plan:
        seen.append(replace(plan, symbol_ranges={}))
        return seen[0]

    path = flattened(tmp_path)
    session, reference = compiled(path, any_size), reference_of(path)
    for group in seen[0].groups:
        footprints = " ".join(map(text_of, group.cost.footprint.values()))
        assert "//" not in footprints
        assert len(group.variants) <= 3
        for node in group.nodes:
            assert {text_of(extent) for extent in node.expr.extents} <= {"batch", "seq", "3", "8", "24"}
    for batch, seq in SIZES:
        x = np.random.default_rng(seq).standard_normal((batch, seq, 24), np.float32)
        assert near(session.run({"x": x})["y"], reference.run(None, {"x": x})[0]), x.shape
