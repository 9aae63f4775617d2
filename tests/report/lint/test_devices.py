"""Lint of devices: every rule fires on a device that breaks it, at its line, and on no device that comes with tilec."""

import pytest

from tilec.report.lint.files import lint_text
from tilec.spec.resolve import packaged

SOUND = """\
name: toy # made up
kind: gpu
levels:
  - name: dram
    capacity: 16GiB # made up
    managed: explicit
    bandwidth: {total: 1TB/s, reader: 100GB/s} # made up
    transaction: {element: 1B, shape: [32]} # made up
    alignment: 64B # made up
  - name: smem
    capacity: 128KiB # made up
    units: 16 # made up
    managed: explicit
    pool: l1
    bandwidth: {total: 2TB/s} # made up
    transaction: {element: 4B, shape: [32]} # made up
  - name: reg
    capacity: 1KiB # made up
    # made up, too
    units: 32
    managed: explicit
    transaction: {element: 4B, shape: [1]} # made up
launch_level: dram
core_level: smem
pools: {l1: 128KiB} # made up
compute:
  - {name: fma, inputs: [f32, f32], accumulator: f32, rate: 1TFLOP/s} # made up
target: {backend: cuda}
"""


def found(text: str) -> list[tuple[str, int, int]]:
    return [(each.code, each.place.line, each.place.column) for each in lint_text(text, "toy.yaml", None)]


def test_a_sound_device_has_no_findings():
    assert found(SOUND) == []


@pytest.mark.parametrize(
    ("before", "after", "code", "line"),
    [
        ("capacity: 16GiB # made up", "capacity: 16GiB", "unsourced", 5),
        ("    # made up, too\n", "", "unsourced", 19),
        ("capacity: 16GiB # made up", 'capacity: "16GiB"', "unsourced", 5),
        ("capacity: 1KiB", "capacity: 2B", "capacity-below-transaction", 18),
        ("total: 2TB/s", "total: 0.5TB/s", "slower-towards-core", 15),
        ("reader: 100GB/s", "reader: 2TB/s", "bandwidth-exceeds-total", 7),
        ("reader: 100GB/s", "instance: 2TB/s", "bandwidth-exceeds-total", 7),
        ("{l1: 128KiB}", "{l1: 127KiB}", "pool-too-small", 11),
        ("    pool: l1\n", "", "unused-pool", 24),
        ("capacity: 16GiB", "capacity: 64KiB", "smaller-below", 5),
        ("rate: 1TFLOP/s", "rate: 1TFLOP/s, scope: wrap", "unknown-scope", 27),
        ("backend: cuda", "backend: mynpu", "unknown-backend", 28),
        ("alignment: 64B", "alignment: 48B", "odd-alignment", 9),
        (
            "managed: explicit\n    bandwidth: {total: 1T",
            "manged: explicit\n    bandwidth: {total: 1T",
            "unknown-key",
            6,
        ),
        ("kind: gpu\n", "", "invalid", 1),
        ("name: toy", "name: [toy", "invalid", 0),
    ],
)
def test_each_rule_fires_at_its_line(before, after, code, line):
    assert before in SOUND
    (finding,) = (each for each in lint_text(SOUND.replace(before, after, 1), "toy.yaml", None))
    assert finding.code == code
    assert not line or finding.place.line == line
    assert finding.place.file == "toy.yaml"
    assert finding.remedy


def test_a_level_of_a_pool_below_others_takes_a_share_of_each():
    """64 blocks of a chip's memory of 8 MiB lie in 16 pools of 128 KiB: four times what there is."""
    wide = SOUND.replace("capacity: 16GiB # made up", "capacity: 8MiB # made up\n    pool: l1")
    (finding,) = lint_text(wide, "toy.yaml", None)
    assert finding.message == "level dram takes 0.5MiB of its pool l1, which has 128KiB"
    assert found(wide.replace("8MiB", "2MiB")) == []


@pytest.mark.parametrize("kind", ["devices", "recipes"])
def test_what_comes_with_tilec_has_no_findings(kind):
    for name, entry in packaged(kind).items():
        assert lint_text(entry.read_text(encoding="utf-8"), f"{kind}/{name}.yaml", None) == [], name
