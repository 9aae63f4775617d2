"""Energy of plans: bytes by accesses of all levels that they pass, multiply-adds by their unit."""

from dataclasses import replace

import pytest
from report.plans import group, layers, plan

from tilec.analysis.energy import plan_energy
from tilec.ir.text import parse_expr
from tilec.report.formatting import energy_text
from tilec.report.sweep import Row, sweep_cells, sweep_to_json
from tilec.spec.device import DeviceSpec
from tilec.spec.located import parse_yaml, validate

TOY = """
name: toy
kind: three levels and a cache
levels:
  - {name: dram, capacity: 1GiB, managed: explicit, transaction: {element: 1B, shape: [1]},
     access: {energy: 100pJ, bytes: 8B}}
  - {name: l2, capacity: 1MiB, managed: implicit, transaction: {element: 1B, shape: [1]},
     access: {energy: 10pJ, bytes: 4B}}
  - {name: smem, capacity: 64KiB, managed: explicit, transaction: {element: 1B, shape: [1]},
     access: {energy: 1pJ, bytes: 1B}}
  - {name: reg, capacity: 1KiB, managed: explicit, transaction: {element: 1B, shape: [1]}}
launch_level: dram
core_level: smem
compute:
  - {name: slow, inputs: [f32, f32], accumulator: f32, rate: 1TFLOP/s, energy: 9pJ}
  - {name: fma, inputs: [f32, f32], accumulator: f32, rate: 2TFLOP/s, energy: 2pJ}
  - {name: mma, inputs: [f16, f16], accumulator: f32, rate: 9TFLOP/s}
target: {backend: none}
"""


def toy(text: str = TOY) -> DeviceSpec:
    return validate(DeviceSpec, parse_yaml(text, "toy.yaml"))


@pytest.mark.feature("O28")
def test_bytes_pass_every_level_below_and_products_are_counted():
    """4608 bytes between dram and smem pay for dram and the cache: 12.5 and 2.5 pJ a byte."""
    found = plan_energy(plan(group("h r"), group("top y")), toy())
    assert found is not None
    first, second = found.groups
    assert (first.name, first.traffic, first.moved) == ("r", 4608, 4608 * 15_000)
    assert first.multiply_adds == 64 * 32 * 16 * 2000
    assert (second.moved, second.multiply_adds) == (4608 * 15_000, 0)
    assert found.femtojoules == 2 * 4608 * 15_000 + 64 * 32 * 16 * 2000
    assert found.untold == ()


def test_data_between_the_levels_above_costs_the_lower_one():
    moving = group("top y")
    cost = replace(moving.cost, read={**moving.cost.read, "reg": parse_expr("1000")})
    found = plan_energy(plan(replace(moving, cost=cost)), toy())
    assert found is not None
    assert found.femtojoules == 4608 * 15_000 + 1000 * 1000


def test_the_unit_that_the_plan_names():
    (variant,) = group("g").variants
    named = replace(group("g"), variants=(replace(variant, units={"g": "slow"}),))
    found = plan_energy(plan(named), toy())
    assert found is not None
    assert found.groups[0].multiply_adds == 64 * 8 * 32 * 9000


def test_what_no_source_tells_is_left_out_by_name():
    silent = toy(TOY.replace(",\n     access: {energy: 10pJ, bytes: 4B}", "").replace(", energy: 2pJ", ""))
    found = plan_energy(plan(group("h")), silent)
    assert found is not None
    assert (found.femtojoules, found.untold) == (4608 * 12_500, ("l2", "fma"))
    halves = plan_energy(plan(group("h")), toy(TOY.replace("[f32, f32]", "[i8, i8]")))
    assert halves is not None
    assert halves.untold == ("multiply-adds of MatMul",)


def test_no_energy_without_sources_or_sizes():
    lines = [line for line in TOY.splitlines() if "access" not in line]
    bare = "\n".join(lines).replace("[1]},", "[1]}}").replace(", energy: 9pJ", "").replace(", energy: 2pJ", "")
    assert plan_energy(plan(*layers()), toy(bare)) is None
    assert plan_energy(plan(group("h", traffic="s * 4")), toy()) is None


def test_a_sweep_has_a_column_where_a_device_tells_energies():
    from tilec.analysis.statistics import statistics

    made = plan(group("top y"))
    row = Row("net", "toy", "none", {}, statistics(made), energy=plan_energy(made, toy()))
    silent = replace(row, energy=None)
    head, first, second = sweep_cells([row, silent])
    assert (head[-1], first[-1], second[-1]) == ("energy", "69.1 nJ", "-")
    assert "energy" not in sweep_cells([silent])[0]
    told, other = (each["plan"] for each in sweep_to_json([row, silent])["rows"])
    assert (told["energy_femtojoules"], told["energy_leaves_out"]) == (69_120_000, [])
    assert "energy_femtojoules" not in other


@pytest.mark.parametrize(
    ("size", "text"), [(7, "7 fJ"), (1690, "1.69 pJ"), (69_120_000, "69.1 nJ"), (21_500_000_000_000, "21.5 mJ")]
)
def test_energies_in_words(size, text):
    assert energy_text(size) == text
