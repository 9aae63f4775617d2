"""Recipes of kind sweep: forms, defaults, errors with places."""

import pytest

from tilec.errors import ConfigError
from tilec.spec.located import parse_yaml, validate
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.sweep import FUSIONS, SweepRecipe


def recipe(text: str) -> SweepRecipe:
    return validate(SweepRecipe, parse_yaml(f"kind: sweep\n{text}", "s.yaml"))


def test_models_are_names_or_have_sizes_of_their_own() -> None:
    found = recipe("models: [a, {model: b, shapes: {seq: [64, 128], batch: 2}}]\nshapes: {batch: [1, 16]}")
    assert [(each.model, each.shapes) for each in found.models] == [("a", {}), ("b", {"seq": (64, 128), "batch": (2,)})]
    assert found.shapes == {"batch": (1, 16)}
    assert (found.devices, found.objective, found.fallback) == (("host",), "time", "allow")


@pytest.mark.feature("W49")
def test_every_way_to_fuse_that_schedule_knows_is_compared() -> None:
    assert recipe("models: [a]").fusion == FUSIONS
    for fusion in FUSIONS:
        assert ScheduleOptions.model_validate({"fusion": fusion}).fusion == fusion


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("models: []", "s.yaml:2:9: expected at least 1, found []"),
        ("model: [a]", "s.yaml:2:1: unknown key 'model'\n  Did you mean 'models'?"),
        ("models: [a]\nfusion: [none, registr]", "s.yaml:3:9: no way to fuse is called 'registr'; did you mean 'regi"),
        ("models: [a]\nshapes: {batch: []}", "s.yaml:3:17: expected at least 1, found []"),
        ("models: [a]\nshapes: {batch: [1, -2]}", "s.yaml:3:21: expected greater than or equal to 0, found -2"),
        ("models: [a]\nshapes: {batch: [1.5]}", "s.yaml:3:18: expected integer, found 1.5"),
        ("models: [{model: a, shape: {}}]", "s.yaml:2:21: unknown key 'shape'\n  Did you mean 'shapes'?"),
        ("models: [3]", "s.yaml:2:10: expected an object, found 3"),
        ("models: [a]\nobjective: tmie", "s.yaml:3:12: expected 'time', 'traffic' or 'footprint', found 'tmie'"),
    ],
)
def test_errors_have_places(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        recipe(text)
    assert str(error.value).startswith(message)
    assert "after validation" not in str(error.value)
