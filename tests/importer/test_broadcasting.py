"""Broadcasting of symbolic shapes: what is proved or demanded, and operands that are repeated where a size is 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.importer.reference import normal, onnxruntime, run, save
from tilec.errors import UsageError
from tilec.importer import import_model
from tilec.importer.broadcasting import broadcast, require_fit
from tilec.importer.shapes import ShapeError, UndecidedError, shape_text
from tilec.ir.bind import bind
from tilec.ir.expr import Call, Expr
from tilec.ir.text import parse_expr, text_of


def shape(text: str) -> tuple[Expr, ...]:
    call = parse_expr(f"shape({text})")
    assert isinstance(call, Call)
    return call.args


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("2, 3", "3", "[2, 3]"),
        ("2, 1", "1, 3", "[2, 3]"),
        ("batch, 1, seq", "heads, 1", "[batch, heads, seq]"),
        ("batch, past + 1", "1, 1 + past", "[batch, past + 1]"),
        ("", "4", "[4]"),
        ("0", "1", "[0]"),
        ("seq", "minimum(512, seq)", "[seq]"),
    ],
)
def test_broadcast(a: str, b: str, expected: str) -> None:
    assert shape_text(broadcast(shape(a), shape(b))) == expected


def test_broadcast_that_fails_or_depends() -> None:
    with pytest.raises(ShapeError, match="3 meets 4"):
        broadcast(shape("2, 3"), shape("4"))
    with pytest.raises(UndecidedError, match="n meets 4: whether n == 4 or n == 1 depends on the sizes") as error:
        broadcast(shape("n"), shape("4"))
    with pytest.raises(UndecidedError) as error:
        broadcast(shape("n"), shape("m"))
    assert error.value.symbols == ("m", "n")


def test_a_shape_fits_another_one_or_does_not() -> None:
    require_fit(shape("1, n"), shape("b, m, n"))
    with pytest.raises(ShapeError, match=r"\[2, 3\] is broadcast to \[3\]"):
        require_fit(shape("2, 3"), shape("3"))
    with pytest.raises(UndecidedError, match="whether m == n or m == 1 depends"):
        require_fit(shape("m"), shape("n"))


def node(kind: str, inputs: str, output: str, **attributes: Any) -> Any:
    return helper.make_node(kind, inputs.split(), [output], name=output, **attributes)


ADDED = [node("Add", "x z", "y")]

MASKED = [node("MatMul", "q k", "s"), node("Add", "s m", "t"), node("Softmax", "t", "p"), node("MatMul", "p v", "y")]

CASES: dict[str, tuple[Sequence[Any], Mapping[str, Sequence[int | str]], Sequence[str], Sequence[str]]] = {
    "two sizes": (
        ADDED,
        {"x": ("a", "b"), "z": ("c", 3)},
        ["a == c or a == 1 or c == 1", "b == 3 or b == 1"],
        ["a=2 c=2 b=3", "a=1 c=4 b=3", "a=5 c=1 b=1", "a=0 c=1 b=3", "a=1 c=0 b=1"],
    ),
    "a size computed of others": (
        [node("Concat", "p n", "k", axis=0), node("Add", "k m", "y")],
        {"p": ("past", 2), "n": ("new", 2), "m": ("total", 2)},
        ["total == new + past or total == 1"],
        ["past=2 new=3 total=5", "past=2 new=3 total=1"],
    ),
    "a size beside itself and earlier ones": (
        [node("Concat", "p n", "k", axis=0), node("Add", "n k", "y")],
        {"p": ("past", 2), "n": ("new", 2)},
        ["new == new + past or new == 1"],
        ["past=0 new=3", "past=4 new=1", "past=0 new=1", "past=0 new=0"],
    ),
    "of a size itself": (
        [node("Pad", "x pads", "padded"), node("Slice", "padded one end", "cut"), node("Add", "cut x", "y")],
        {"x": ("n", 2)},
        ["minimum(n + 1, 9) - 1 == n"],
        ["n=3", "n=1"],
    ),
    "three operands": (
        [*ADDED, node("Mul", "y w", "u")],
        {"x": ("a",), "z": ("c",), "w": ("d",)},
        [
            "a == c or a == 1 or c == 1",
            "where(a == 1, c, a) == d or where(a == 1, c, a) == 1 or d == 1",
        ],
        [f"a={a} c={c} d={d}" for a, c, d in product((1, 3), repeat=3)],
    ),
    "an operand again": (
        [*ADDED, node("Mul", "y x", "u"), node("Sub", "z u", "w")],
        {"x": ("a",), "z": ("c",)},
        ["a == c or a == 1 or c == 1"],
        ["a=3 c=3", "a=1 c=3", "a=3 c=1"],
    ),
    "a mask that is as large as its reader demands": (
        MASKED,
        {"q": ("s", 4), "k": (4, "t"), "m": ("ms", "mt"), "v": ("t", 2)},
        ["s == ms or s == 1 or ms == 1", "mt == t or mt == 1"],
        ["s=2 t=3 ms=2 mt=3", "s=2 t=3 ms=1 mt=1", "s=1 t=3 ms=5 mt=1"],
    ),
    "the offset of a product": (
        [node("Gemm", "x w c", "y")],
        {"x": ("m", 3), "w": (3, "n"), "c": ("cm", "cn")},
        ["cm == m or cm == 1", "cn == n or cn == 1"],
        ["m=2 n=4 cm=2 cn=4", "m=2 n=4 cm=1 cn=1"],
    ),
    "a slope for each channel": (
        [node("PRelu", "x slope", "y")],
        {"x": ("b", "n"), "slope": ("m",)},
        ["m == n or m == 1"],
        ["b=2 n=3 m=3", "b=2 n=3 m=1"],
    ),
    "scales of a normalisation": (
        [node("LayerNormalization", "x scale shift", "y")],
        {"x": ("b", "n"), "scale": (4,), "shift": ("m",)},
        ["m == 4 or m == 1"],
        ["b=2 n=4 m=4", "b=1 n=4 m=1"],
    ),
    "scales of all or of each channel": (
        [node("DequantizeLinear", "q scale", "y", axis=0)],
        {"q": ("n", 2), "scale": ("m",)},
        ["m == n or m == 1"],
        ["n=3 m=3", "n=3 m=1"],
    ),
    "zero points of all or of each column": (
        [node("MatMulInteger", "q w a z", "y")],
        {"q": (3, 2), "w": (2, "n"), "a": (1,), "z": ("m",)},
        ["m == n or m == 1"],
        ["n=3 m=3", "n=3 m=1"],
    ),
    "batches of products": (
        [node("MatMul", "x w", "y")],
        {"x": ("a", 2, 3), "w": ("c", 3, 2)},
        ["a == c or a == 1 or c == 1"],
        ["a=2 c=2", "a=1 c=2", "a=2 c=1"],
    ),
    "the first column of any beside all": (
        [node("Slice", "x zero one one", "first"), node("Add", "first z", "y")],
        {"x": ("a", "b"), "z": ("a", "b")},
        [],
        ["a=2 b=3", "a=1 b=1"],
    ),
    "the first column of any, expanded": (
        [node("Slice", "x zero one one", "first"), node("Shape", "x", "shape"), node("Expand", "first shape", "y")],
        {"x": ("a", "b")},
        [],
        ["a=2 b=3", "a=1 b=1"],
    ),
    "by a shape": (
        [node("Shape", "z", "shape"), node("Expand", "x shape", "y")],
        {"x": ("a", 2), "z": ("c", 1)},
        ["a == c or a == 1 or c == 1"],
        ["a=2 c=2", "a=1 c=2", "a=2 c=1"],
    ),
}


@pytest.mark.feature("B07")
@pytest.mark.parametrize("name", CASES)
def test_open_sizes_broadcast_as_they_are_when_the_model_runs(tmp_path: Path, name: str) -> None:
    nodes, inputs, demanded, runs = CASES[name]
    made = {n for each in nodes for n in each.output}
    results = [each.output[0] for each in nodes if not any(each.output[0] in other.input for other in nodes)]
    weights = {"pads": np.int64([0, 0, 1, 0]), "one": np.int64([1]), "zero": np.int64([0]), "end": np.int64([9])}
    used = {n: w for n, w in weights.items() if any(n in each.input for each in nodes) and n not in made}
    whole = {"MatMulInteger": "qwaz", "DequantizeLinear": "q"}.get(nodes[0].op_type, "")
    ttypes = {n: np.uint8 if n in whole else np.float32 for n in inputs}
    path = save(tmp_path / "m.onnx", nodes, {n: (ttypes[n], s) for n, s in inputs.items()}, results, used)
    imported = import_model(path)
    assert imported.graph.calls == ()
    assert [text_of(each.holds) for each in imported.graph.constraints] == demanded
    for text in runs:
        sizes = {symbol: int(size) for symbol, _, size in (part.partition("=") for part in text.split())}
        real = {n: normal(*(sizes.get(str(e), e) for e in s), seed=len(n)) for n, s in inputs.items()}
        feeds = {n: (np.abs(x) * 50).astype(np.uint8) if n in whole else x for n, x in real.items()}
        for found, wanted in zip(run(imported, tmp_path, feeds, sizes), onnxruntime(path, feeds), strict=True):
            assert found.shape == wanted.shape, text
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_sizes_that_do_not_broadcast_are_refused_with_what_the_model_demands(tmp_path: Path) -> None:
    path = save(tmp_path / "m.onnx", ADDED, {"x": (np.float32, ("a",)), "z": (np.float32, ("c",))}, ["y"])
    with pytest.raises(UsageError, match=r"a == c or a == 1 or c == 1 does not hold \(node y"):
        bind(import_model(path).graph, {"a": 2, "c": 3})
