"""Design studies: which workloads are bounded, on what, and what is said of those that are not there."""

from pathlib import Path

import pytest
from cli import models

from tilec.analysis.studies.rows import Row
from tilec.errors import ConfigError
from tilec.pipeline.study import Study, study
from tilec.spec.located import parse_yaml, validate
from tilec.spec.resolve import recipe_source
from tilec.spec.study import StudyRecipe

WORKLOAD = """
kind: bounds
convention: bytes
workload:
  - {einsum: "C[m,n] = sum(k, A[m,k] * B[k,n])", dims: {m: 64, n: 64, k: 64}, bits: 8}
"""


def ran(text: str, folder: Path, steps: list[tuple[int, int]] | None = None) -> Study:
    located = parse_yaml(text if text.startswith("#") else f"kind: sweep\nconvention: c\n{text}", "s.yaml")
    told = steps if steps is not None else []
    places = {"workloads": folder, "devices": folder}
    return study(validate(StudyRecipe, located), located, lambda *step: told.append(step), places)


def packaged_study(name: str, folder: Path) -> tuple[Row, ...]:
    return ran(recipe_source(f"studies/{name}").text, folder).rows


@pytest.mark.feature("O32", "O35")
def test_recipes_and_models_side_by_side(tmp_path: Path) -> None:
    models.mlp(tmp_path / "open.onnx", batch="batch")
    (tmp_path / "gemm.yaml").write_text(WORKLOAD)
    steps: list[tuple[int, int]] = []
    text = "workloads: [gemm.yaml, {workload: open.onnx, shapes: {batch: 4}}]\ncapacities: [1KiB, 1MiB]\nmapspace: oro+"
    found = ran(text, tmp_path, steps)
    assert [(each.workload, each.mapspace, each.machine.capacity) for each in found.rows] == [
        ("gemm", "oro+", 1024),
        ("gemm", "oro+", 1 << 20),
        ("open", "best known", 1024),
        ("open", "best known", 1 << 20),
    ]
    assert found.rows[1].traffic == 3 * 64 * 64
    assert found.rows[3].traffic == 4 * (4 * 16 + 16 * 32 + 32 + 32 * 8 + 4 * 8)
    assert set(found.mapspaces) == {"oro+", "best known"}
    assert steps == [(0, 2), (1, 2), (2, 2)]


@pytest.mark.feature("O28")
def test_the_study_of_a_die_says_what_its_recipe_says(tmp_path: Path) -> None:
    rows = packaged_study("gpt3-area", tmp_path)
    best = {
        (each.mapspace, each.machine.bandwidth): (round(100 * (each.machine.share or 0)), each.throughput or 0)
        for each in rows
        if each.mark == "fastest"
    }
    slow, fast = 147_800_000_000, 600_000_000_000
    assert [best[name, slow][0] for name in ("oro fused", "oro")] == [65, 85]
    assert round(best["oro fused", slow][1] / best["oro", slow][1], 2) == 3.83
    assert [best[name, fast][0] for name in ("oro fused", "oro")] == [25, 45]
    assert round(best["oro fused", fast][1] / best["oro", fast][1], 2) == 2.43


@pytest.mark.feature("O27")
def test_the_case_study_says_what_its_recipe_says(tmp_path: Path) -> None:
    rows = {(each.mapspace, each.machine.capacity): each for each in packaged_study("gpt3-capacity", tmp_path)}
    for size, gain in ((50_000_000, 2.76), (370_000_000, 5.84)):
        assert round((rows["oro", size].traffic or 0) / (rows["oro fused", size].traffic or 1), 2) == gain
    assert [rows["oro", size].limit for size in (100_000, 1_000_000)] == ["memory", "compute"]
    spent = [round((rows[name, 370_000_000].femtojoules or 0) / 1e15, 2) for name in ("oro fused", "oro")]
    assert spent == [5.29, 5.98]
    busy = {
        (each.mapspace, each.machine.capacity, each.machine.bandwidth)
        for each in packaged_study("gpt3-bandwidth", tmp_path)
        if each.limit == "compute"
    }
    least = {
        (name, size): min(speed or 0 for slope, room, speed in busy if (slope, room) == (name, size))
        for name, size, _ in busy
    }
    assert least == {
        ("oro fused", 400_000_000): 100 * 10**9,
        ("oro fused", 40_000_000): 200 * 10**9,
        ("oro", 400_000_000): 400 * 10**9,
        ("oro", 40_000_000): 400 * 10**9,
    }


def test_levels_of_devices(tmp_path: Path) -> None:
    (tmp_path / "gemm.yaml").write_text(WORKLOAD)
    found = ran("workloads: [gemm.yaml]\ndevices: [a100, ipu-mk2]", tmp_path).rows
    assert [each.machine.name for each in found] == ["a100"] * 3 + ["ipu-mk2"] * 2
    assert [each.mark for each in found][3:] == ["limits the device", ""]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("workloads: [bert-bse]\ncapacities: [1MB]", "s.yaml:3:13: there is no "),
        ("workloads: [gone.yaml]\ncapacities: [1MB]", "s.yaml:3:13: no such file"),
        ("workloads: [bounds/ffn]\ndevices: [a10]", "s.yaml:4:11: no device is called 'a10'"),
        (
            "workloads: [{workload: bounds/ffn, shapes: {m: 3}}]\ncapacities: [1MB]",
            "s.yaml:3:13: a recipe takes no shapes, they are in it",
        ),
    ],
)
def test_what_is_not_there_is_an_error_of_the_recipe(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        ran(text, tmp_path)
    assert str(caught.value).startswith(said)
