"""Recipes: defaults, sizes, digests by section."""

import pytest

from tilec.errors import ConfigError
from tilec.pipeline.request import declared_ranges
from tilec.spec.located import parse_yaml, validate
from tilec.spec.recipe import BenchRecipe, CompileRecipe, Dimension


def recipe(text: str) -> CompileRecipe:
    return validate(CompileRecipe, parse_yaml(text, "r.yaml"))


def test_an_empty_recipe_is_the_default() -> None:
    assert recipe("kind: compile") == CompileRecipe()
    assert CompileRecipe().device == "host"


def test_sizes_are_numbers_or_what_is_known() -> None:
    shapes = recipe("shapes:\n  batch: 4\n  seq: {range: [1, 512], divisor: 8, likely: [128]}").shapes
    assert shapes["batch"] == Dimension(value=4)
    assert shapes["seq"] == Dimension(range=(1, 512), divisor=8, likely=(128,))


def test_import_is_a_key_although_a_python_keyword() -> None:
    assert recipe("import: {print_between_passes: true}").import_.print_between_passes


@pytest.mark.feature("B06")
@pytest.mark.parametrize(
    ("known", "text", "pivot"),
    [
        ("{likely: [48, 200]}", "0..", 48),
        ("{range: [1, 64]}", "1..64", 64),
        ("{range: [500, null]}", "500..", 500),
        ("{divisor: 24}", "0.., a multiple of 24", 120),
        ("{range: [130, 600], divisor: 50}", "130..600, a multiple of 50", 150),
    ],
)
def test_what_is_known_of_a_size_is_its_range(known: str, text: str, pivot: int) -> None:
    ranges = declared_ranges(recipe(f"shapes: {{seq: {known}, batch: 4, other: {{}}}}"))
    assert (list(ranges), ranges["seq"].text, ranges["seq"].pivot) == (["seq"], text, pivot)
    assert ranges["seq"].origin == "recipe: shapes.seq"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "schedule: {fusion: regster}",
            "r.yaml:1:20: expected 'none', 'register', 'apollo' or 'full', found 'regster'",
        ),
        ("shcedule: {}", "r.yaml:1:1: unknown key 'shcedule'\n  Did you mean 'schedule'?"),
        ("schedule:\n  fussion: none", "r.yaml:2:3: unknown key 'fussion'\n  Did you mean 'fusion'?"),
        (
            "scenarios:\n  decode: {seq: past * seq}",
            "r.yaml:2:17: 'past * seq' is no sum of sizes and numbers, like past + 1",
        ),
        ("scenarios:\n  decode: {seq: past +}", "r.yaml:2:17: 'past +' is no size"),
        ("shapes:\n  seq: {devisor: 8}", "r.yaml:2:9: unknown key 'devisor'\n  Did you mean 'divisor'?"),
        (
            "shapes:\n  seq: {divisor: 8, value: 12}",
            "r.yaml:2:28: seq: 12 is not divisible by 8\n  `divisor` is given at r.yaml:2:18.",
        ),
        ("shapes:\n  seq: {range: [8, 4]}", "r.yaml:2:8: the range [8, 4] holds no size that is divisible by 1"),
        ("shapes:\n  seq: {range: [0, 4], likely: [9]}", "r.yaml:2:32: seq: 9 is not in the range from 0 to 4"),
        ("shapes:\n  seq: {range: [5, null], likely: [4]}", "r.yaml:2:35: seq: 4 is not in the range from 5 to "),
        ("types: {w: f16}", "r.yaml:1:12: 'f16' is no format; it is written like i4[128]*f16"),
        ("import: {passes: []}", "r.yaml:1:10: key 'passes' is not supported: import has no passes"),
        ("shapes:\n  seq: true", "r.yaml:2:8: expected "),
        ("shapes:\n  seq: -1", "r.yaml:2:8: expected greater than or equal to 0, found -1"),
        ("verify: {seeds: []}", "r.yaml:1:17: "),
        ("codegen: {threads: 0}", "r.yaml:1:20: expected greater than 0, found 0"),
        ("fallback: sometimes", "r.yaml:1:11: expected 'allow' or 'refuse', found 'sometimes'"),
    ],
)
def test_errors_have_places(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        recipe(text)
    assert str(error.value).startswith(message)


def test_fallback_may_name_operators() -> None:
    assert recipe("fallback: [NonMaxSuppression]").fallback == ("NonMaxSuppression",)


def test_digests_are_by_section() -> None:
    plain, seeded = recipe("kind: compile"), recipe("verify: {seeds: [7]}")
    assert plain.digest("import", "schedule") == seeded.digest("import", "schedule")
    assert plain.digest("verify") != seeded.digest("verify")


def test_bench() -> None:
    bench = validate(BenchRecipe, parse_yaml("kind: bench\nmodels: [nerf-mlp]", "b.yaml"))
    assert bench.against == ("onnxruntime",)
    assert bench.rounds * bench.processes >= 15
