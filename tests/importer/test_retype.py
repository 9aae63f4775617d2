"""Weights rounded on import: formats, groups along what is summed up, errors that are told, models that run."""

from pathlib import Path

import numpy as np
import pytest
from onnx import helper
from quantised.compile import compiled

from tests.importer.reference import normal, run, save
from tilec.errors import ConfigError
from tilec.importer import import_model
from tilec.importer.quantise import quantise
from tilec.ir.formats import parse_format


def model(folder: Path, inner: int = 96, wide: int = 40) -> Path:
    """Two products, the second of a transposed weight, and a convolution's worth of names."""
    weights = {"proj.weight": normal(inner, wide), "head.weight": normal(8, wide, seed=1), "bias": normal(8)}
    nodes = [
        helper.make_node("MatMul", ["x", "proj.weight"], ["a"]),
        helper.make_node("Transpose", ["head.weight"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["a", "t"], ["b"]),
        helper.make_node("Add", ["b", "bias"], ["y"]),
    ]
    return save(folder / "m.onnx", nodes, {"x": ("float32", [2, inner])}, ["y"], weights)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("i8[column]", 1 / 254),
        ("i4[32]*f16", 1 / 14),
        ("u4[32]*f16-u4", 1 / 14),
        ("i3[16]*f32", 1 / 6),
        ("mxfp4", 1 / 6),
        ("mxfp8", 1 / 28),
        ("nvfp4", 1 / 5),
        ("nf4", 1 / 6),
        ("e3m2[32]*e8m0", 1 / 13),
        ("code<5 float: f32(i32(code)) * 0.5 - 7.0>[32]*f32", 1 / 28),
    ],
)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(33, 7), (64, 64), (1, 1)])
def test_no_weight_is_further_off_than_half_a_step_of_its_group(
    text: str, bound: float, axis: int, shape: tuple[int, int]
) -> None:
    kind, weight = parse_format(text), 3 * normal(*shape)
    weight[:, -1] = 0
    made = quantise(weight, kind, axis)
    group = kind.group or weight.shape[axis]
    at = np.arange(weight.shape[axis]) // group
    largest = np.stack([np.abs(np.take(weight, np.flatnonzero(at == g), axis)).max(axis) for g in at], axis)
    bound *= 1.02 * (2 if kind.scale == "e8m0" or kind.zero else 1)
    assert (np.abs(made.numbers - weight) <= bound * largest).all()
    assert made.scales.shape[axis] == at[-1] + 1
    assert (made.numbers[:, -1] == 0).all()


def test_ties_are_rounded_to_even_and_the_largest_number_is_exact() -> None:
    made = quantise(np.array([[7, 0.5, 1.5, 2.5, -0.5, -7]], np.float32), parse_format("i4[column]"), 1)
    assert made.numbers.tolist() == [[7, 0, 2, 2, 0, -7]]
    own = quantise(
        np.array([[7, 0.5, 1.5, 2.5, -7]], np.float32), parse_format("code<4 int: i32(code) - 7>[column]"), 1
    )
    assert own.codes.tolist() == [[14, 8, 8, 10, 0]]


@pytest.mark.feature("L27")
def test_groups_lie_along_what_a_reader_sums_up(tmp_path: Path) -> None:
    formats = {"proj*": parse_format("i4[32]*f16"), "*.weight": parse_format("i8[column]")}
    imported = import_model(model(tmp_path), types=formats)
    graph = imported.graph
    shapes = {name: [extent.value for extent in graph.tensors[name].shape] for name in graph.tensors}
    assert shapes["proj_weight_scales"] == [3, 40]
    assert shapes["head_weight_scales"] == [8, 1]
    told = graph.retyped["proj_weight"]
    assert (told.format, told.before, told.after) == ("i4[32]*f16", 96 * 40 * 4, 96 * 20 + 3 * 40 * 2)
    assert 0.05 < told.rms < 0.15
    x = normal(2, 96, seed=3)
    (found,) = run(imported, tmp_path, {"x": x})
    (exact,) = run(import_model(tmp_path / "m.onnx"), tmp_path, {"x": x})
    assert 1e-3 < np.abs(found - exact).max() / np.abs(exact).max() < 0.3


def test_weights_keep_their_type_where_a_recipe_says_so_or_nothing(tmp_path: Path) -> None:
    graph = import_model(model(tmp_path), types={"proj*": None, "head*": parse_format("mxfp4")}).graph
    assert list(graph.retyped) == ["head_weight"]
    assert import_model(tmp_path / "m.onnx", types={"*": None}).graph == import_model(tmp_path / "m.onnx").graph


def test_a_pattern_without_a_weight(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"types: 'bias' matches no weight[\s\S]*proj.weight, head.weight"):
        import_model(model(tmp_path), types={"bias": parse_format("mxfp4")})


@pytest.mark.feature("L27")
def test_a_recipe_makes_a_model_of_few_bits(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text('types:\n  "proj*": i4[32]*f16\n  "head*": mxfp8\n')
    arguments = ("--device", "avx2", "--recipe", str(tmp_path / "r.yaml"), "--no-bounds")
    result = compiled(model(tmp_path, 512, 1024), *arguments)
    assert result.code == 0, result.error
    (weights,) = (tmp_path / "m.tilec").glob("weights-*.safetensors")
    assert weights.stat().st_size < (tmp_path / "m.onnx").stat().st_size / 3
