"""Integer operators on positions, whose results are looked up: as arithmetic of the index, or read from a tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from tests.importer.reference import normal, onnxruntime, run, save
from tilec.importer import import_model
from tilec.importer.index_arithmetic import index_arithmetic
from tilec.ir.evaluate import integer
from tilec.ir.text import parse_expr
from tilec.ir.verify.structure import is_integer

Step = tuple[str, str, Mapping[str, Any]]

I64, U64, F32 = TensorProto.INT64, TensorProto.UINT64, TensorProto.FLOAT

CASES: dict[str, Sequence[Step]] = {
    "remainder of C": [("Sub", "i c3", {}), ("Mod", "t0 c2", {"fmod": 1})],
    "remainder of C by less than 0": [("Sub", "i c3", {}), ("Mod", "t0 cm2", {"fmod": 1})],
    "remainder": [("Mod", "i cm2", {})],
    "reflected": [("Sub", "i c2", {}), ("Abs", "t0", {}), ("Sub", "last t1", {}), ("Abs", "t2", {})],
    "sign": [("Sub", "i c2", {}), ("Sign", "t0", {})],
    "half": [("Div", "i c2", {})],
    "half towards 0": [("Sub", "i c3", {}), ("Div", "t0 c2", {})],
    "half towards 0 of less than 0": [("Sub", "i c3", {}), ("Div", "t0 cm2", {})],
    "a quotient of sizes": [("Div", "last i1", {})],
    "one bit": [("BitwiseAnd", "i c1", {})],
    "another bit": [("BitwiseAnd", "i c2", {})],
    "either bit": [("BitwiseAnd", "i c1", {}), ("BitwiseOr", "t0 c2", {})],
    "a flipped bit": [("BitwiseAnd", "i c1", {}), ("BitwiseXor", "t0 c3", {})],
    "all bits": [("BitwiseNot", "i", {})],
    "shifted": [
        ("Cast", "i", {"to": U64}),
        ("Cast", "c1", {"to": U64}),
        ("BitShift", "t0 t1", {"direction": "RIGHT"}),
        ("Cast", "t2", {"to": I64}),
    ],
    "compared": [("Less", "i c2", {}), ("Cast", "t0", {"to": I64})],
    "not 0": [("Cast", "i", {"to": TensorProto.BOOL}), ("Cast", "t0", {"to": I64})],
    "neither": [("Less", "i c2", {}), ("Not", "t0", {}), ("Cast", "t1", {"to": I64})],
    "chosen": [("Less", "i c2", {}), ("Where", "t0 last i", {})],
    "of few bits": [("Cast", "i", {"to": TensorProto.INT8}), ("Cast", "t0", {"to": I64})],
    "a square": [("Min", "i c1", {}), ("Mul", "t0 t0", {})],
    "a power": [("Min", "i c1", {}), ("Pow", "t0 c3", {})],
    "rounded": [("Cast", "i", {"to": F32}), ("Mul", "t0 half", {}), ("Round", "t1", {}), ("Cast", "t2", {"to": I64})],
}


@pytest.mark.feature("B04", "B06")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("opened", [False, True], ids=["fixed", "open"])
def test_what_operators_make_of_positions_is_looked_up(tmp_path: Path, name: str, opened: bool) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["sizes"]),
        helper.make_node("Gather", ["sizes", "zero"], ["n"]),
        helper.make_node("Range", ["zero", "n", "one"], ["i"]),
        helper.make_node("Sub", ["n", "one"], ["last"]),
        helper.make_node("Add", ["i", "one"], ["i1"]),
    ]
    nodes += [
        helper.make_node(kind, inputs.split(), [f"t{n}"], **at) for n, (kind, inputs, at) in enumerate(CASES[name])
    ]
    nodes.append(helper.make_node("Gather", ["x", nodes[-1].output[0]], ["y"], axis=0))
    weights = {f"c{n}".replace("-", "m"): np.array([n]) for n in (-2, 1, 2, 3)}
    weights |= {"zero": np.array(0), "one": np.array(1), "half": np.float32([0.5])}
    path = save(tmp_path / "m.onnx", nodes, {"x": (np.float32, ["n" if opened else 8, 3])}, ["y"], weights, 20)
    imported = import_model(path)
    assert imported.graph.calls == ()
    for size in (8, 4) if opened else (8,):
        feeds = {"x": normal(size, 3)}
        (found,) = run(imported, tmp_path, feeds, {"n": size} if opened else {})
        np.testing.assert_array_equal(found, onnxruntime(path, feeds)[0])


TEXTS = st.recursive(
    st.sampled_from(["i", "j", "2", "i - 3", "4 - j"]),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["abs", "sign", "bitnot", "-"]), inner).map(lambda t: f"{t[0]}({t[1]})"),
        st.tuples(st.sampled_from(["truncdiv", "fmod"]), inner, st.sampled_from([-3, -1, 1, 2, 7])).map(
            lambda t: f"{t[0]}({t[1]}, {t[2]})"
        ),
        st.tuples(inner, st.sampled_from([0, 1, 7])).map(lambda t: f"bitand({t[0]}, {t[1]})"),
        st.tuples(inner, st.sampled_from("+-"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
    ),
    max_leaves=4,
)


@given(TEXTS)
def test_index_arithmetic_means_the_same(text: str) -> None:
    expr = parse_expr(text)
    written = index_arithmetic(expr)
    assert written is not None
    assert is_integer(written)
    places = {"i": np.arange(9)[:, None], "j": np.arange(7)[None]}
    np.testing.assert_array_equal(integer(written, places), integer(expr, places))


def test_bits_are_no_index_arithmetic() -> None:
    for text in ("bitand(i, 5)", "bitor(i, 1)", "shr(i, 1)", "truncdiv(i, 0)", "truncdiv(i, j)"):
        assert index_arithmetic(parse_expr(text)) is None
