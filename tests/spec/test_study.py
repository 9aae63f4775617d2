"""Recipes of design studies: forms, errors with places."""

import pytest

from tilec.errors import ConfigError
from tilec.spec.located import parse_yaml, validate
from tilec.spec.study import StudyRecipe

AREA = "area: {die_mm2: 529, mac_um2: 332.25, byte_um2: 2.59, clock_hz: 0.7e9, bandwidth: 147.8GB/s"


def recipe(text: str) -> StudyRecipe:
    return validate(StudyRecipe, parse_yaml(f"kind: sweep\nconvention: c\nworkloads: [bounds/ffn]\n{text}", "s.yaml"))


def test_workloads_are_names_or_have_sizes() -> None:
    text = "kind: sweep\nconvention: c\nworkloads: [a, {workload: b, shapes: {seq: 64}}]\ncapacities: [1MB]"
    found = validate(StudyRecipe, parse_yaml(text, "s.yaml"))
    assert [(each.workload, each.shapes) for each in found.workloads] == [("a", {}), ("b", {"seq": 64})]


def test_quantities_have_units() -> None:
    found = recipe("capacities: [1MB, 2MiB]\nbandwidths: [1GB/s]\nrate: 2TFLOP/s")
    assert (found.capacities, found.bandwidths, found.rate) == ((10**6, 2**21), (10**9,), 2 * 10**12)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a study has devices, capacities or an area"),
        ("bandwidths: [1GB/s]\ndevices: [a100]", "bandwidths need capacities beside them, or an area"),
        ("devices: [a100]\nrate: 1TFLOP/s", "devices have rates of their own"),
        (f"{AREA}}}\ndevices: [a100]", "an area has no devices, capacities or rate: it gives them"),
        (f"{AREA}, published: 3}}", "a study counts multiply-adds and bytes: leave out `published`"),
        ("capacities: [1]", "s.yaml:4:14: 1 has no unit; write bytes as '164KiB'"),
        ("capacity: [1MB]", "s.yaml:4:1: unknown key 'capacity'\n  Did you mean 'capacities'?"),
    ],
)
def test_what_does_not_go_together(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        recipe(text)
    assert said in str(caught.value)
