"""The graph under construction."""

import numpy as np
import pytest

from tilec.errors import ConfigError
from tilec.importer.builder import Builder, Origin
from tilec.importer.formula import formula
from tilec.importer.value import Value
from tilec.importer.weights import Stored
from tilec.ir.expr import Const, Var
from tilec.ir.graph import Inline, WeightRef
from tilec.ir.text import tensor_text, text_of

ORIGIN = Origin("Test", "node", "model.onnx: node 'node' (Test)")


def emitted(builder: Builder, x: Value, text: str, name: str = "y") -> Value:
    axes = builder.iterators("ij", x.shape)
    body = formula(text, x=x.at([a.var for a in axes]), i=axes[0].var)
    return builder.emit(name, axes, body, x.ttype, ORIGIN)


def test_only_what_outputs_need_is_kept() -> None:
    builder = Builder(["n"])
    x = builder.input("x", [Var("n")], "f32")
    used = builder.constant("used", Stored(np.arange(2, dtype=np.float32), "f32"))
    builder.constant("unused", Stored(np.ones(3, np.float32), "f32"))
    y = emitted(builder, x, "x * 2.0")
    emitted(builder, x, "x * 3.0", "dead")
    built = builder.finish([x.name, y.name, used.name])
    assert [node.name for node in built.nodes] == ["y"]
    assert set(built.tensors) == {"x", "y", "used"}
    assert built.nodes[0].op == "Test"
    assert built.nodes[0].origin == ("node",)


def test_names_are_unique_and_iterators_avoid_symbols() -> None:
    builder = Builder(["i", "i_"])
    x = builder.input("x", [Var("i")], "f32")
    first, second = emitted(builder, x, "x + 1.0"), emitted(builder, x, "x + 2.0")
    assert (first.name, second.name) == ("y", "y_2")
    assert tensor_text(builder.finish([first.name]).nodes[0].expr) == "y[i__] = x[i__] + 1.0"


def test_reductions_over_one_element_vanish() -> None:
    builder = Builder([])
    x = builder.input("x", [Const(4), Const(1)], "f32")
    i, r, s = builder.iterators("irs", [Const(4), Const(1), Const(1)])
    y = builder.emit("y", [i], x.access([i.var, r.var]), "f32", ORIGIN, [r], "max")
    z = builder.emit("z", [i], x.access([i.var, s.var]), "f32", ORIGIN, [r, s], "sum")
    texts = [tensor_text(node.expr) for node in builder.finish([y.name, z.name]).nodes]
    assert texts == ["y[i] = x[i, 0]", "z[i] = x[i, 0]"]


def test_index_arithmetic_is_simplified_and_known_to_readers() -> None:
    builder = Builder(["n"])
    (i,) = builder.iterators("i", [Var("n")])
    index = builder.emit("index", [i], formula("i * 2 + 0 * i + 1 - 1", i=i.var), "i64", ORIGIN)
    assert text_of(index.at([Const(3)])) == "3 * 2"
    assert text_of(index.access([Const(3)])) == "index[3]"


def test_constants_go_inline_stay_in_their_file_or_are_owned() -> None:
    builder = Builder([])
    small = builder.constant("small", Stored(np.array([[1, 2]], np.int64), "i64", WeightRef("m.onnx", 5, 16)))
    big = np.arange(100, dtype=np.float32)
    stored = builder.constant("stored", Stored(big, "f32", WeightRef("m.onnx", 40, 400)))
    folded = emitted(builder, stored, "x * 2.0", "folded")
    built = builder.finish([small.name, stored.name, folded.name])
    assert built.constants == {"small": Inline((1, 2)), "stored": WeightRef("m.onnx", 40, 400)}
    np.testing.assert_array_equal(built.owned["folded"], big * 2)
    assert built.nodes == ()


def test_known_sizes_are_written_out() -> None:
    builder = Builder(["n"])
    (i,) = builder.iterators("i", [Const(2)])
    shape = builder.emit("s", [i], formula("where(i == 0, n, 3)", i=i.var, n=Var("n")), "i64", ORIGIN)
    doubled = emitted(builder, shape, "x * 2", "d")
    assert [text_of(e) for e in doubled.elements or ()] == ["n * 2", "6"]
    (node,) = builder.finish([doubled.name]).nodes
    assert tensor_text(node.expr) == "d[i] = where(i == 0, n * 2, 6)"


def test_a_tensor_of_absurd_size_is_refused_before_anything_is_allocated() -> None:
    builder = Builder([])
    axes = builder.iterators("ij", [Const(1 << 30), Const(1 << 30)])
    with pytest.raises(ConfigError, match="the result would take 4611686018427387904 bytes") as error:
        builder.emit("y", axes, Const(0.0), "f32", ORIGIN)
    assert error.value.place == ORIGIN.place


def test_a_copy_is_a_node_of_its_own() -> None:
    builder = Builder([])
    x = builder.input("x", [Const(2)], "f32")
    y = builder.copy("out/1", x)
    assert not builder.computes("x")
    assert builder.computes(y.name)
    assert tensor_text(builder.finish([y.name]).nodes[0].expr) == "out_1[i] = x[i]"
