"""Matrix products and Gemm against onnxruntime."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.reference import check, compare, helper, normal, run, save, single
from tilec.errors import ConfigError
from tilec.importer import import_model
from tilec.ir.expr import Const
from tilec.ir.text import tensor_text

SHAPES = [
    ((3, 4), (4, 5)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((4,), (4,)),
    ((2, 3, 4), (4, 5)),
    ((2, 1, 3, 4), (5, 4, 1)),
    ((1, 3, 4), (7, 4, 2)),
    ((3, 1), (1, 2)),
    ((0, 4), (4, 3)),
    ((2, 0), (0, 3)),
]


@pytest.mark.parametrize(("a", "b"), SHAPES)
@pytest.mark.feature("W01")
def test_matmul_of_all_ranks(tmp_path: Path, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    check(tmp_path, "MatMul", normal(*a), normal(*b, seed=1))


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64"])
def test_matmul_of_other_types(tmp_path: Path, dtype: str) -> None:
    check(tmp_path, "MatMul", (4 * normal(2, 3)).astype(dtype), (4 * normal(3, 4)).astype(dtype))


def test_matmul_is_one_plain_reduction(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "MatMul", normal(2, 1, 3, 4), normal(5, 4, 6))
    (node,) = import_model(path).graph.nodes
    assert tensor_text(node.expr) == "y0[b, h, m, n] = sum(k, x0[b, 0, m, k] * x1[h, k, n])"


def test_matmul_over_different_extents(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "MatMul", normal(2, 3), normal(4, 5))
    with pytest.raises(ConfigError, match=r"\[2, 3\] @ \[4, 5\] sums over two extents: 3 and 4 differ"):
        import_model(path)


def test_iterators_avoid_the_symbols(tmp_path: Path) -> None:
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    path = save(tmp_path / "m.onnx", [node], {"x": ("float32", ["m", "k"])}, ["y"], {"w": normal(3, 4)})
    graph = compare(path, {"x": normal(5, 3)}, {"m": 5, "k": 3})
    assert (graph.symbols, graph.symbol_values["k"].value) == (("m",), Const(3))
    path = save(tmp_path / "m.onnx", [node], {"x": ("float32", ["m", 3])}, ["y"], {"w": normal(3, 4)})
    graph = compare(path, {"x": normal(5, 3)}, {"m": 5})
    assert tensor_text(graph.nodes[0].expr) == "y[m_, n] = sum(k, x[m_, k] * w[k, n])"


@pytest.mark.parametrize("flips", [{}, {"transA": 1}, {"transB": 1}, {"transA": 1, "transB": 1}])
@pytest.mark.parametrize("factors", [{}, {"alpha": 0.5}, {"beta": 0.25}, {"alpha": 2.0, "beta": 3.0}])
@pytest.mark.parametrize("c", [None, (), (5,), (3, 1), (3, 5)])
def test_gemm(tmp_path: Path, flips: dict[str, int], factors: dict[str, float], c: tuple[int, ...] | None) -> None:
    a = normal(4, 3) if "transA" in flips else normal(3, 4)
    b = normal(5, 4) if "transB" in flips else normal(4, 5)
    check(tmp_path, "Gemm", a, b, None if c is None else normal(*c), **flips, **factors)


def test_gemm_keeps_scaling_and_bias_behind_the_sum(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "Gemm", normal(3, 4), normal(5, 4), normal(5), transB=1, alpha=0.5)
    first, second = import_model(path).graph.nodes
    assert tensor_text(first.expr) == "y0_product[m, n] = sum(k, x0[m, k] * x1[n, k])"
    assert tensor_text(second.expr) == "y0[i, j] = y0_product[i, j] * 0.5 + x2[j]"


def test_gemm_whose_bias_is_too_large(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "Gemm", normal(1, 4), normal(4, 5), normal(3, 5))
    with pytest.raises(ConfigError, match=r"\[3, 5\] is broadcast to \[1, 5\]"):
        import_model(path)


@pytest.mark.parametrize("dtype", ["int32", "uint64", "float64"])
def test_gemm_of_other_types(tmp_path: Path, dtype: str) -> None:
    a, b, c = ((4 * np.abs(normal(*s))).astype(dtype) for s in ((3, 4), (4, 5), (5,)))
    path, feeds = single(tmp_path, "Gemm", a, b, c, alpha=2.0, beta=3.0)
    (found,) = run(import_model(path), tmp_path, feeds)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, 2 * (a @ b) + 3 * c)


def test_gemm_of_nothing(tmp_path: Path) -> None:
    check(tmp_path, "Gemm", normal(0, 4), normal(4, 5), normal(5))
    check(tmp_path, "Gemm", normal(3, 0), normal(0, 5), normal(5))
