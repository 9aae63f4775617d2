"""Names and files of devices and recipes; the files that come with tilec are sound and say their sources."""

import json
import re
from pathlib import Path

import pytest

from tilec.errors import ConfigError, UsageError
from tilec.spec.bounds import BoundsRecipe
from tilec.spec.effective import effective_recipe
from tilec.spec.located import parse_yaml, validate
from tilec.spec.recipe import BenchRecipe, CompileRecipe
from tilec.spec.resolve import device_source, packaged, recipe_source, resolve_device
from tilec.spec.schema import schema
from tilec.spec.study import StudyRecipe
from tilec.spec.sweep import SweepRecipe

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", sorted(packaged("devices")))
def test_packaged_devices(name: str) -> None:
    device = resolve_device(name)
    assert device.name == name
    assert device.launch_level in device.level_names
    capacities = [device.level(level).capacity * device.instances(level) for level in device.level_names]
    pooled = {level.name for level in device.levels if level.pool}
    for below, above in zip(device.levels, device.levels[1:], strict=False):
        if not {below.name, above.name} & pooled:
            assert device.level(above.name).capacity < below.capacity
    assert all(capacity > 0 for capacity in capacities)


@pytest.mark.parametrize("name", sorted(packaged("devices")))
def test_every_number_says_its_source(name: str) -> None:
    text = packaged("devices")[name].read_text()
    assert text.startswith("# yaml-language-server: $schema=device.schema.json\n")
    assert "\n# Sources\n" in text
    number = re.compile(r"^[^#]*:\s.*\b\d")
    named = re.compile(r"^\s*-? ?(name|description|triple|processor|inputs|accumulator): ")
    silent = [line for line in text.splitlines() if number.match(line) and "#" not in line and not named.match(line)]
    assert silent == []


@pytest.mark.feature("W30", "L07")
def test_the_devices_of_the_papers_are_described() -> None:
    a100, v100, ipu = (resolve_device(name) for name in ("a100", "v100", "ipu-mk2"))
    tiles = {level.name: (level.transaction.element, level.transaction.shape) for level in a100.levels}
    assert tiles == {"dram": (1, (32,)), "l2": (1, (32,)), "smem": (4, (32,)), "reg": (4, (1,))}
    assert [a100.level(name).transaction.bytes for name in ("dram", "smem")] == [32, 128]
    (product,) = (unit for unit in a100.compute if unit.inputs == ("f16", "f16"))
    assert (product.accumulator, product.tile) == ("f32", {"m": 16, "n": 8, "k": 16})
    assert a100.bandwidth("dram") == 2_039_000_000_000
    assert v100.bandwidth("dram") == 900_000_000_000
    assert v100.level("smem").capacity == 96 * 1024
    assert ipu.cores == 1472
    assert ipu.level("tile").neighbours_readable


@pytest.mark.parametrize(
    ("name", "base", "below", "launch"),
    [
        ("a100-host", "a100", ("host",), "dram"),
        ("a100-ssd", "a100", ("ssd", "host"), "dram"),
        ("v100-16g-host", "v100", ("host",), "dram"),
        ("ipu-mk2-host", "ipu-mk2", ("host",), "chip"),
    ],
)
def test_memory_below_the_device_changes_nothing_above(
    name: str, base: str, below: tuple[str, ...], launch: str
) -> None:
    """The levels of the device itself stay; kernels start on its own memory, behind a slower link."""
    device, plain = resolve_device(name), resolve_device(base)
    own = [level for level in plain.levels if level.name != "streaming"]
    assert device.level_names == (*below, *(level.name for level in own))
    assert list(device.levels[len(below) :]) == own
    assert (device.compute, device.pools, device.target) == (plain.compute, plain.pools, plain.target)
    assert device.launch_level == launch
    rates = [device.bandwidth(level) or 0 for level in (*below, launch)]
    assert rates == sorted(set(rates))


@pytest.mark.parametrize("name", sorted(packaged("recipes")))
def test_packaged_recipes(name: str) -> None:
    located = parse_yaml(recipe_source(name).text, name)
    sweep = StudyRecipe if "workloads" in located.data else SweepRecipe
    models = {"bench": BenchRecipe, "bounds": BoundsRecipe, "compile": CompileRecipe, "sweep": sweep}
    assert validate(models[located.data["kind"]], located).kind == located.data["kind"]


def test_the_default_recipe_says_what_happens_without_one() -> None:
    flags = {"device": ("--device", "neon")}
    assert effective_recipe("default", flags, {}).recipe == effective_recipe(None, flags, {}).recipe


@pytest.mark.parametrize(("name", "folder"), [("device", "devices"), ("recipe", "recipes"), ("type", "types")])
def test_the_shipped_schemas_are_current(name: str, folder: str) -> None:
    shipped = json.loads((ROOT / folder / f"{name}.schema.json").read_text())
    assert shipped == json.loads(json.dumps(schema(name))), "run `make schema`"


def test_schema_of_an_unknown_thing() -> None:
    with pytest.raises(UsageError, match="no schema is called 'devcie'\n  Did you mean 'device'"):
        schema("devcie")


def test_a_file_by_path_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.yaml").write_text(packaged("devices")["neon"].read_text())
    monkeypatch.chdir(tmp_path)
    assert resolve_device("mine.yaml").name == "neon"
    assert resolve_device("neon").name == "neon"
    assert device_source("mine.yaml").place == "mine.yaml"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a10", "no device is called 'a10'\n  Did you mean 'a100'?"),
        ("hots", "no device is called 'hots'\n  Did you mean 'host'?"),
        ("toaster", "no device is called 'toaster'\n  Known: a100, a100-host, "),
        ("a100.yaml", "a100.yaml: no such file\n  a100 without .yaml comes with tilec."),
        ("gone.yaml", "gone.yaml: no such file"),
        (".", ".: this is a folder\n  Name a file."),
    ],
)
def test_names_that_lead_nowhere(name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as error:
        resolve_device(name)
    assert str(error.value).startswith(message)
    assert error.value.exit_code == 2


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(packaged("devices")["neon"].read_text().replace("1MiB", "-1MiB"))
    with pytest.raises(ConfigError, match=r"mine\.yaml:\d+:\d+: '-1MiB' is negative; bytes cannot be"):
        resolve_device(str(tmp_path / "mine.yaml"))
