"""Precedence of flag, variable, recipe file and device; every value knows its origin."""

from pathlib import Path

import pytest

from tilec.errors import ConfigError, UsageError
from tilec.report.lint.files import lint_file
from tilec.spec.effective import effective_recipe, recipe_without_device, variable

FILE = """
kind: compile
device: avx2
shapes: {batch: 4, seq: {range: [1, 64], divisor: 2}}
schedule:
  fusion: none
  budget: 7
verify: {seeds: [1, 2, 3]}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "r.yaml"
    path.write_text(FILE)
    return str(path)


def test_each_source_overrides_the_one_below(file: str) -> None:
    flags = {"schedule.budget": ("--budget", 9), "shapes.batch.value": ("--shape", 8)}
    environ = {"TILEC_SCHEDULE_BUDGET": "8", "TILEC_SCHEDULE_OBJECTIVE": "traffic", "TILEC_VERIFY_SEEDS": "[5]"}
    effective = effective_recipe(file, flags, environ)
    recipe = effective.recipe
    assert (recipe.schedule.budget, recipe.schedule.objective, recipe.schedule.fusion) == (9, "traffic", "none")
    assert recipe.verify.seeds == (5,)
    assert recipe.shapes["batch"].value == 8
    assert (recipe.codegen.threads, recipe.codegen.processor) == (8, "znver2")
    assert effective.device.name == "avx2"
    origins = effective.origins
    assert origins["schedule.budget"] == "--budget"
    assert origins["shapes.batch.value"] == "--shape"
    assert origins["schedule.objective"] == "TILEC_SCHEDULE_OBJECTIVE"
    assert origins["verify.seeds"] == "TILEC_VERIFY_SEEDS"
    assert origins["schedule.fusion"] == f"{file}:6:11"
    assert origins["codegen.threads"] == "device avx2"
    assert origins["fallback"] == "default"


def test_a_flag_value_keeps_what_the_file_knows_of_a_size(file: str) -> None:
    seq = effective_recipe(file, {"shapes.seq.value": ("--shape", 16)}, {}).recipe.shapes["seq"]
    assert (seq.value, seq.range, seq.divisor) == (16, (1, 64), 2)


@pytest.mark.parametrize(
    ("size", "said", "line"), [(66, "66 is not in the range from 1 to 64", "33"), (7, "7 is not divisible by 2", "51")]
)
def test_a_bound_size_that_the_file_excludes_is_refused_with_both_places(
    file: str, size: int, said: str, line: str
) -> None:
    with pytest.raises(ConfigError) as error:
        effective_recipe(file, {"shapes.seq.value": ("--shape", size)}, {})
    assert str(error.value).startswith(f"--shape: seq: {said}\n")
    assert error.value.hint is not None
    assert f"{file}:4:{line}" in error.value.hint


@pytest.mark.parametrize("name", ["TILEC_IMPORT_PASSES"])
def test_variables_of_keys_that_are_not_supported_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="is not supported") as error:
        effective_recipe(None, {}, {name: "[a]"})
    assert error.value.place == name


def test_the_printed_recipe_is_a_recipe_with_origins(file: str, tmp_path: Path) -> None:
    effective = effective_recipe(file, {"schedule.budget": ("--budget", 9)}, {})
    assert "  budget: 9  # --budget\n" in effective.text()
    assert f'  fusion: "none"  # {file}:6:11\n' in effective.text()
    printed = tmp_path / "printed.yaml"
    printed.write_text(effective.text())
    assert effective_recipe(str(printed), {}, {}).recipe == effective.recipe


def test_a_whole_section_in_a_variable(file: str) -> None:
    effective = effective_recipe(file, {}, {"TILEC_SHAPES": "{batch: 2}", "TILEC_SCHEDULE": "{budget: 3}"})
    assert effective.recipe.shapes["batch"].value == 2
    assert effective.recipe.shapes["seq"].range == (1, 64)
    assert effective.recipe.schedule.budget == 3
    assert effective.origins["shapes.batch.value"] == "TILEC_SHAPES"


def test_without_a_recipe(tmp_path: Path) -> None:
    effective = effective_recipe(None, {"device": ("--device", "neon")}, {})
    assert effective.recipe.codegen.threads == 64
    assert effective.device_source.place == "devices/neon.yaml"


def test_a_device_only_suggests(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text("device: neon\ncodegen: {threads: 3}\n")
    recipe = str(tmp_path / "r.yaml")
    assert effective_recipe(recipe, {}, {}).recipe.codegen.threads == 3
    assert effective_recipe(recipe, {}, {"TILEC_CODEGEN_THREADS": "5"}).recipe.codegen.threads == 5
    found = effective_recipe(recipe, {"codegen.threads": ("--threads", 7)}, {"TILEC_CODEGEN_THREADS": "5"})
    assert (found.recipe.codegen.threads, found.origins["codegen.threads"]) == (7, "--threads")


def test_a_device_file_is_found_beside_the_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = Path(__file__).parents[2].joinpath("devices/neon.yaml").read_text().replace("name: neon", "name: mine")
    (tmp_path / "mine.yaml").write_text(text)
    (tmp_path / "r.yaml").write_text("device: mine.yaml")
    monkeypatch.chdir("/")
    recipe = str(tmp_path / "r.yaml")
    assert effective_recipe(recipe, {}, {}).device.name == "mine"
    with pytest.raises(UsageError, match="^mine.yaml: no such file"):
        effective_recipe(recipe, {"device": ("--device", "mine.yaml")}, {})


def test_the_device_is_not_looked_up_where_nobody_asks() -> None:
    assert recipe_without_device(None, {"device": ("--device", "no-such")}, {}).device == "no-such"


@pytest.mark.parametrize(
    ("flags", "environ", "message"),
    [
        ({"schedule.budget": ("--budget", 0)}, {}, "--budget: expected greater than 0, found 0"),
        ({"shapes.batch.value": ("--shape", -2)}, {}, "--shape: expected greater than or equal to 0, found -2"),
        (
            {},
            {"TILEC_SCHEDULE_FUSION": "fully"},
            "TILEC_SCHEDULE_FUSION: expected 'none', 'register', 'apollo' or 'full', found 'fully'",
        ),
        ({}, {"TILEC_VERIFY_SEEDS": "[a"}, "TILEC_VERIFY_SEEDS:1:10: not valid YAML: "),
        (
            {},
            {"TILEC_SCHEDULE": "3", "TILEC_SCHEDULE_BUDGET": "x"},
            "TILEC_SCHEDULE_BUDGET: expected integer, found 'x'",
        ),
        ({}, {"TILEC_SCHEDULE": "3"}, "TILEC_SCHEDULE: "),
        ({"device": ("--device", "neno")}, {}, "no device is called 'neno'\n  Did you mean 'neon'?"),
    ],
)
def test_errors_name_the_source(
    file: str, flags: dict[str, tuple[str, object]], environ: dict[str, str], message: str
) -> None:
    with pytest.raises((ConfigError, UsageError)) as error:
        effective_recipe(file, flags, environ)
    assert str(error.value).startswith(message)


def test_errors_in_the_file_keep_their_place(file: str) -> None:
    Path(file).write_text(FILE.replace("budget: 7", "budget: seven"))
    with pytest.raises(ConfigError, match=r"r\.yaml:7:11: expected integer, found 'seven'"):
        effective_recipe(file, {}, {})
    assert effective_recipe(file, {"schedule.budget": ("--budget", 1)}, {}).recipe.schedule.budget == 1


def test_a_bench_recipe_does_not_compile(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("kind: bench\nmodels: [x]")
    with pytest.raises(ConfigError, match=r"b\.yaml:1:7: expected kind 'compile', found 'bench'"):
        effective_recipe(str(tmp_path / "b.yaml"), {}, {})


def test_variables_are_named_after_keys() -> None:
    assert variable("schedule.fusion") == "TILEC_SCHEDULE_FUSION"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("schedule: {closed: [l3, l2x]}", "avx2 has no level 'l2x', did you mean 'l2'"),
        ("verify: {inputs: none.npz}", "no such file: none.npz"),
        ("schedule: {record: none.json}", "no such file: none.json"),
    ],
)
def test_what_lint_calls_an_error_in_a_recipe_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "r.yaml"
    file.write_text(f"device: avx2\n{text}\n")
    (found,) = (each for each in lint_file(file) if each.rule.severity == "error")
    with pytest.raises(ConfigError) as error:
        effective_recipe(str(file), {}, {})
    assert (error.value.message, error.value.place, error.value.hint) == (message, str(found.place), found.remedy)
    assert (found.message, found.place.line) == (message, 2)


def test_a_flag_over_a_wrong_name_is_what_counts(tmp_path: Path) -> None:
    file = tmp_path / "r.yaml"
    file.write_text("device: avx2\nverify: {inputs: none.npz}\n")
    given = effective_recipe(str(file), {"verify.inputs": ("--inputs", "other.npz")}, {}).recipe
    assert given.verify.inputs == "other.npz"
