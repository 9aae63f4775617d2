"""Sweeps: which combinations are planned, and what is said of those that cannot be."""

import json
from pathlib import Path

import pytest
from cli import models

from tilec.errors import ConfigError
from tilec.ir.expr import constant_value
from tilec.pipeline.sweep import sweep
from tilec.report.sweep import Row
from tilec.spec.located import parse_yaml, validate
from tilec.spec.resolve import packaged, recipe_source
from tilec.spec.sweep import SweepRecipe


def rows(text: str, folder: Path, steps: list[tuple[int, int]] | None = None) -> list[Row]:
    located = parse_yaml(f"kind: sweep\n{text}", "s.yaml")
    told = steps if steps is not None else []
    places = {"models": folder, "devices": folder}
    return sweep(validate(SweepRecipe, located), located, lambda *step: told.append(step), places)


@pytest.mark.feature("W49", "W51")
def test_every_combination_is_a_row(tmp_path: Path) -> None:
    models.mlp(tmp_path / "open.onnx", batch="batch")
    models.mlp(tmp_path / "fixed.onnx")
    steps: list[tuple[int, int]] = []
    text = "models: [open.onnx, fixed.onnx]\ndevices: [a100, avx2]\nfusion: [none, register]\nshapes: {batch: [2, 8]}"
    found = rows(text, tmp_path, steps)
    heads = [(row.model, row.sizes.get("batch"), row.device, row.fusion) for row in found]
    assert heads == [
        (model, batch, device, fusion)
        for model, batch in (("open.onnx", 2), ("open.onnx", 8), ("fixed.onnx", None))
        for device in ("a100", "avx2")
        for fusion in ("none", "register")
    ]
    assert steps == [(done, 12) for done in range(13)]
    numbers = {(row.sizes.get("batch"), row.device, row.fusion): row.found for row in found}
    none, register = numbers[8, "avx2", "none"], numbers[8, "avx2", "register"]
    assert none is not None
    assert register is not None
    assert (none.groups, len(none.patterns), none.largest) == (4, 0, 1)
    assert register.groups < none.groups
    assert register.intermediate.value < none.intermediate.value  # type: ignore[union-attr]
    small = numbers[2, "avx2", "none"]
    assert small is not None
    assert small.intermediate.value * 4 == none.intermediate.value  # type: ignore[union-attr]


def test_sizes_of_a_model_replace_the_common_ones(tmp_path: Path) -> None:
    models.mlp(tmp_path / "a.onnx", batch="batch")
    text = "models: [a.onnx, {model: a.onnx, shapes: {batch: 3}}]\ndevices: [a100]\nfusion: [none]\nshapes: {batch: 2}"
    assert [row.sizes for row in rows(text, tmp_path)] == [{"batch": 2}, {"batch": 3}]


def test_sizes_may_stay_open(tmp_path: Path) -> None:
    models.mlp(tmp_path / "a.onnx", batch="batch")
    (row,) = rows("models: [a.onnx]\ndevices: [a100]\nfusion: [register]", tmp_path)
    assert row.sizes == {}
    assert row.found is not None
    assert constant_value(row.found.traffic), "traffic is that of the sizes that the plan is made for"


@pytest.mark.feature("W57", "W59")
@pytest.mark.slow_cases("nerf-mlp-v100")
@pytest.mark.parametrize("device", ["v100", "mi50"])
@pytest.mark.parametrize(
    ("model", "gain"),
    [({"model": "nerf-mlp", "shapes": {"batch": 64}}, 1), pytest.param("shufflenet-v2", 1.5, marks=pytest.mark.slow)],
    ids=["nerf-mlp", "shufflenet-v2"],
)
def test_fusion_gains_on_gpus_of_the_paper(device: str, model: object, gain: float, tmp_path: Path) -> None:
    """A network of its figures 9 and 15, as the recipes plan it: fewer launches, and less predicted time."""
    source = recipe_source(f"studies/{device}")
    recipe = validate(SweepRecipe, parse_yaml(source.text, source.place))
    assert (recipe.devices, recipe.fusion, recipe.shapes["batch"]) == ((device,), ("none", "full"), (1, 64))
    text = f"models: [{json.dumps(model)}]\ndevices: [{device}]\nfusion: [none, full]\nshapes: {{batch: 1}}"
    none, full = rows(text, tmp_path)
    assert none.found is not None
    assert full.found is not None
    assert full.found.groups < none.found.groups / gain
    assert full.found.picoseconds < none.found.picoseconds / gain


@pytest.mark.feature("W51")
def test_models_of_the_zoo_are_built_for_batch_and_seq(tmp_path: Path) -> None:
    text = "models: [nerf-mlp]\ndevices: [a100]\nfusion: [none]\nshapes: {seq: [16, 32], batch: 1}"
    first, second = rows(text, tmp_path)
    assert (first.sizes, second.sizes) == ({"seq": 16, "batch": 1}, {"seq": 32, "batch": 1})
    assert first.found is not None
    assert second.found is not None
    assert first.found.intermediate.value * 2 == second.found.intermediate.value  # type: ignore[union-attr]


def test_a_combination_without_a_plan_is_a_row_with_an_error(tmp_path: Path) -> None:
    models.unary(tmp_path / "a.onnx", "NoSuchOperator")
    text = "models: [nerf-mlp, a.onnx]\ndevices: [a100]\nfusion: [none]\nshapes: {seq: [0, 8]}"
    empty, planned, strange = rows(text, tmp_path)
    assert (empty.found, empty.error) == (None, "seq 0 is less than 1")
    assert planned.found is not None
    assert strange.found is None
    assert "NoSuchOperator" in strange.error


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("models: [nerf-mpl]", "s.yaml:2:10: there is no model 'nerf-mpl'\n  Did you mean 'nerf-mlp' of the zoo?"),
        ("models: [{model: none.onnx}]", "s.yaml:2:18: there is no model 'none.onnx'"),
        ("models: [nerf-mlp]\ndevices: [a100, a10]", "s.yaml:3:17: no device is called 'a10'\n  Did you mean 'a100'?"),
        ("models: [nerf-mlp]\nshapes: {bach: 1}", "s.yaml:3:10: no model takes a size 'bach'\n  Did you mean 'batch'?"),
        (
            "models: [nerf-mlp, {model: resnet-50, shapes: {seq: 1}}]",
            "s.yaml:2:48: no model takes a size 'seq'\n  Sizes are batch.",
        ),
        (
            "models: [fixed.onnx]\nshapes: {batch: 1}",
            "s.yaml:3:10: no model takes a size 'batch'\n  Sizes are all fixed.",
        ),
    ],
)
def test_what_is_not_there_is_an_error_of_the_recipe(text: str, message: str, tmp_path: Path) -> None:
    models.mlp(tmp_path / "fixed.onnx")
    with pytest.raises(ConfigError) as error:
        rows(text if "devices" in text else f"{text}\ndevices: [a100]", tmp_path)
    assert str(error.value).startswith(message)


def test_traffic_is_compared_with_the_least_known_where_that_is_asked_for(tmp_path: Path) -> None:
    text = "models: [nerf-mlp]\ndevices: [a100]\nfusion: [register]\nshapes: {seq: 8, batch: 1}"
    (plain,) = rows(text, tmp_path)
    (compared,) = rows(f"{text}\nbounds: true", tmp_path)
    assert plain.ratio is None
    assert compared.ratio is not None
    assert compared.ratio.bound.known is not None
    assert compared.ratio.moved >= compared.ratio.bound.known >= compared.ratio.bound.least > 0


@pytest.mark.feature("W56")
def test_the_search_finds_one_kernel_for_matmul_and_softmax() -> None:
    """98304 x 64 x 128 on a V100 (Welder, figure 2), as the recipe plans it: only operands and results move."""
    name = "studies/matmul-softmax"
    source, file = recipe_source(name), packaged("recipes")[name]
    located = parse_yaml(source.text, source.place)
    assert isinstance(file, Path)
    places = {"models": file.parent, "devices": file.parent}
    none, full = sweep(validate(SweepRecipe, located), located, lambda *_: None, places)
    assert none.found is not None
    assert full.found is not None
    assert (none.fusion, full.fusion, full.found.groups) == ("none", "full", 1)
    compulsory = 4 * (98304 * 64 + 64 * 128 + 98304 * 128)
    assert constant_value(full.found.traffic) == compulsory
    assert (constant_value(none.found.traffic) or 0) > 3 * compulsory
    # The paper measures 1.26 against one kernel each.
    assert none.found.picoseconds > 1.26 * full.found.picoseconds
    assert full.tiles.startswith("smem P i:")
    assert none.tiles.count("smem") == none.found.kernels


@pytest.mark.feature("W51")
def test_the_sweep_over_sizes_has_gains_of_fusion_for_three_kinds_of_network() -> None:
    located = parse_yaml(recipe_source("sensitivity").text, "sensitivity.yaml")
    recipe = validate(SweepRecipe, located)
    assert {model.model for model in recipe.models} == {"bert-base", "nafnet", "conformer"}
    assert all(len(model.shapes["seq"]) >= 3 for model in recipe.models)
    assert recipe.fusion == ("none", "full")
