"""Movement operators against onnxruntime, and the index algebra that they become."""

import random
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from tests.importer.reference import check, compare, normal, save, single
from tilec.errors import ConfigError, UsageError
from tilec.importer import import_model
from tilec.ir.bind import bind
from tilec.ir.expr import Access, Const, accesses
from tilec.ir.sizes import SymbolRange
from tilec.ir.text import tensor_text


@pytest.mark.parametrize(
    ("shape", "target"),
    [
        ((2, 3, 4), [6, 4]),
        ((2, 3, 4), [4, 6]),
        ((2, 3, 4), [0, -1]),
        ((2, 3, 4), [-1]),
        ((6,), [2, 1, 3]),
        ((1, 1), []),
        ((0, 3), [3, 0]),
        ((4, 6), [2, 2, 3, 2]),
    ],
)
@pytest.mark.feature("W42")
def test_reshape(tmp_path: Path, shape: tuple[int, ...], target: list[int]) -> None:
    allow = {"allowzero": 1} if 0 in shape else {}
    check(tmp_path, "Reshape", normal(*shape), np.array(target, np.int64), known=[1], **allow)


@pytest.mark.parametrize(
    ("shape", "target", "text"),
    [
        ((2, 3, 64), [0, 0, 4, 16], "y0[i, j, k, l] = x0[i, j, k * 16 + l]"),
        ((2, 4, 16), [0, 64], "y0[i, j] = x0[i, j // 16, j % 16]"),
        ((5, 1, 7), [1, 5, 7], "y0[i, j, k] = x0[j, 0, k]"),
        ((5, 6), [15, 2], "y0[i, j] = x0[i // 3, j + i % 3 * 2]"),
    ],
)
def test_reshape_takes_the_smallest_groups(
    tmp_path: Path, shape: tuple[int, ...], target: list[int], text: str
) -> None:
    path, _ = single(tmp_path, "Reshape", normal(*shape), np.array(target, np.int64), known=[1])
    (node,) = import_model(path).graph.nodes
    assert tensor_text(node.expr) == text


def test_reshape_to_another_size_is_an_error(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "Reshape", normal(2, 3), np.array([4, 2], np.int64), known=[1])
    with pytest.raises(ConfigError, match=r"\[2, 3\] cannot become \[4, 2\]: 6 and 8 differ"):
        import_model(path)
    path, _ = single(tmp_path, "Reshape", normal(2, 3), np.array([-1, 4], np.int64), known=[1])
    with pytest.raises(ConfigError, match="6 elements are no multiple of 4"):
        import_model(path)


@pytest.mark.feature("B06")
def test_reshape_of_symbols(tmp_path: Path) -> None:
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    inputs = {"x": ("float32", ["batch", "seq", 12])}
    path = save(tmp_path / "m.onnx", [node], inputs, ["y"], {"shape": np.array([0, -1, 3, 4], np.int64)})
    graph = compare(path, {"x": normal(2, 5, 12)}, {"batch": 2, "seq": 5})
    assert tensor_text(graph.nodes[0].expr) == "y[i, j, k, l] = x[i, j, k * 4 + l]"
    path = save(tmp_path / "m.onnx", [node], inputs, ["y"], {"shape": np.array([1, -1], np.int64)})
    compare(path, {"x": normal(2, 5, 12)}, {"batch": 2, "seq": 5})


@pytest.mark.feature("B07")
def test_reshape_into_parts_demands_a_divisor(tmp_path: Path) -> None:
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    path = save(
        tmp_path / "m.onnx", [node], {"x": ("float32", ["n", 3])}, ["y"], {"shape": np.array([4, -1], np.int64)}
    )
    graph = compare(path, {"x": normal(8, 3)}, {"n": 8})
    assert graph.symbol_ranges == {"n": SymbolRange(divisor=4, origin="node Reshape_0 (Reshape)")}
    with pytest.raises(UsageError, match=r"n=6 is none of 0.., a multiple of 4 \(node Reshape_0 \(Reshape\)\)"):
        bind(graph, {"n": 6})
    imported = import_model(path, sizes={"n": 8})
    assert imported.graph.tensors["y"].shape == (Const(4), Const(6))


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1])
def test_flatten(tmp_path: Path, axis: int) -> None:
    check(tmp_path, "Flatten", normal(2, 3, 4), axis=axis)


def test_squeeze_and_unsqueeze_by_attribute_and_input(tmp_path: Path) -> None:
    check(tmp_path, "Squeeze", normal(1, 3, 1), np.array([0, -1], np.int64), known=[1])
    check(tmp_path, "Squeeze", normal(1, 3, 1))
    check(tmp_path, "Squeeze", normal(1, 3, 1), opset=11, axes=[2])
    check(tmp_path, "Unsqueeze", normal(3, 2), np.array([0, -1], np.int64), known=[1])
    check(tmp_path, "Unsqueeze", normal(3, 2), opset=11, axes=[1, 2])
    path, _ = single(tmp_path, "Squeeze", normal(2, 3), np.array([0], np.int64), known=[1])
    with pytest.raises(ConfigError, match=r"axis 0 of \[2, 3\] is squeezed: 2 and 1 differ"):
        import_model(path)


@pytest.mark.parametrize("order", [None, [2, 0, 1], [0, 1, 2]])
def test_transpose(tmp_path: Path, order: list[int] | None) -> None:
    check(tmp_path, "Transpose", normal(2, 3, 4), **({} if order is None else {"perm": order}))


@pytest.mark.parametrize("target", [[2, 3, 4], [3, 1], [1], [3, 4]])
def test_expand(tmp_path: Path, target: list[int]) -> None:
    check(tmp_path, "Expand", normal(3, 1), np.array(target, np.int64), known=[1])


def test_expand_to_sizes_that_are_found_to_be_equal(tmp_path: Path) -> None:
    """Two numbers of rows, neither an expression of the other: nothing is repeated."""
    nodes = [
        helper.make_node("Reshape", ["x", "pairs"], ["p"]),
        helper.make_node("Reshape", ["z", "triples"], ["t"]),
        helper.make_node("Shape", ["p"], ["rows"], start=0, end=1),
        helper.make_node("Concat", ["rows", "three"], ["s"], axis=0),
        helper.make_node("Expand", ["t", "s"], ["y"]),
    ]
    weights = {name: np.array(value, np.int64) for name, value in PAIRS.items()}
    path = save(tmp_path / "m.onnx", nodes, {"x": ("float32", ["a"]), "z": ("float32", ["long"])}, ["y"], weights)
    compare(path, {"x": normal(4), "z": normal(6)}, {"a": 4, "long": 6})


PAIRS = {"pairs": [-1, 2], "triples": [-1, 3], "three": [3]}


@pytest.mark.parametrize("repeats", [[1, 2], [3, 1], [0, 2]])
def test_tile(tmp_path: Path, repeats: list[int]) -> None:
    check(tmp_path, "Tile", normal(2, 3), np.array(repeats, np.int64), known=[1])


@pytest.mark.parametrize("extents", [[2], [2, 3], [1, 0, 4, 2], [0, 0]])
@pytest.mark.parametrize("axis", [1, -2])
def test_concat(tmp_path: Path, extents: list[int], axis: int) -> None:
    check(tmp_path, "Concat", *(normal(2, e, 3, seed=i) for i, e in enumerate(extents)), axis=axis)


def test_concat_of_very_many_parts(tmp_path: Path) -> None:
    check(tmp_path, "Concat", *(normal(2, 1, seed=i) for i in range(300)), axis=1)


def test_concat_is_guarded_accesses(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "Concat", normal(2, 3), normal(2, 4), axis=1)
    (node,) = import_model(path).graph.nodes
    assert tensor_text(node.expr) == "y0[i, j] = where(j < 3, x0[i, j], x1[i, j - 3])"


def test_concat_of_unequal_parts_is_an_error(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "Concat", normal(2, 3), normal(3, 3), axis=1)
    with pytest.raises(ConfigError, match="dimension 0 of the parts: 2 and 3 differ"):
        import_model(path)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space(tmp_path: Path, mode: str) -> None:
    check(tmp_path, "DepthToSpace", normal(2, 12, 3, 5), blocksize=2, mode=mode)
    check(tmp_path, "DepthToSpace", normal(1, 9, 1, 2), blocksize=3, mode=mode)


def test_space_to_depth(tmp_path: Path) -> None:
    check(tmp_path, "SpaceToDepth", normal(2, 3, 4, 6), blocksize=2)
    path, _ = single(tmp_path, "SpaceToDepth", normal(1, 3, 5, 6), blocksize=2)
    with pytest.raises(ConfigError, match="5 elements are no multiple of 2"):
        import_model(path)


def test_movement_reads_one_tensor_and_computes_nothing(tmp_path: Path) -> None:
    for kind, arrays, attributes in (
        ("Reshape", (normal(4, 6), np.array([3, 8], np.int64)), {}),
        ("Transpose", (normal(4, 6),), {}),
        ("Tile", (normal(4, 6), np.array([2, 2], np.int64)), {}),
        ("DepthToSpace", (normal(1, 8, 2, 2),), {"blocksize": 2}),
    ):
        path, _ = single(tmp_path, kind, *arrays, known=[1], **attributes)
        (node,) = import_model(path).graph.nodes
        assert isinstance(node.expr.body, Access)
        assert len(accesses(node.expr)) == 1


def test_identities_leave_no_node(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Identity", ["a"], ["b"]),
        helper.make_node("Transpose", ["b"], ["c"], perm=[0, 1]),
        helper.make_node("Reshape", ["c", "shape"], ["d"]),
        helper.make_node("Expand", ["d", "shape"], ["e"]),
        helper.make_node("Cast", ["e"], ["f"], to=1),
        helper.make_node("Neg", ["f"], ["y"]),
    ]
    path = save(tmp_path / "m.onnx", nodes, {"x": ("float32", [2, 3])}, ["y"], {"shape": np.array([2, 3], np.int64)})
    assert [node.op for node in compare(path, {"x": normal(2, 3)}).nodes] == ["Relu", "Neg"]


@pytest.mark.parametrize("seed", range(24))
def test_a_reshape_of_open_sizes_says_nothing_of_sizes_that_it_keeps(tmp_path: Path, seed: int) -> None:
    """Extents that are copied, split in two, joined or left to be found: no size of the input is another one's."""
    draw = random.Random(seed)
    sizes = {name: draw.choice([2, 3, 5]) for name in "abcd"[: draw.randint(2, 4)]}
    split = draw.choice([0, 2, 3])
    last = list(sizes)[-1]
    copied = draw.randint(0, len(sizes) - 1)
    target = [*[0] * copied, *([split] if split else []), -1]
    sizes[last] *= max(1, split)
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    path = save(tmp_path / "m.onnx", [node], {"x": ("float32", list(sizes))}, ["y"], {"shape": np.array(target)})
    graph = compare(path, {"x": normal(*sizes.values())}, sizes)
    assert not graph.symbol_values
