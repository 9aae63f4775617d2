"""Workloads on machines: times, throughput, limits, energy, marks."""

from __future__ import annotations

import csv
import io
import json

import pytest
from report.bounds.subjects import MIB, small, square

from tilec.analysis.studies.machine import Machine, machines
from tilec.analysis.studies.rows import Row, compared, row, slowest
from tilec.bounds.area import Die, best, designs
from tilec.report.studies.forms import study_cells, study_csv, study_to_json
from tilec.report.studies.picture import study_panels
from tilec.spec.device import Access
from tilec.spec.located import parse_yaml, validate
from tilec.spec.resolve import resolve_device
from tilec.spec.study import StudyRecipe

AREA = "area: {die_mm2: 100, share: 0.5, mac_um2: 300, byte_um2: 2.5, clock_hz: 1e9, bandwidth: 100GB/s"


def recipe(text: str) -> StudyRecipe:
    return validate(StudyRecipe, parse_yaml(f"kind: sweep\nconvention: c\nworkloads: [w]\n{text}", "s.yaml"))


def rows(text: str, device: str = "") -> list[list[Row]]:
    subject = square()
    devices = [resolve_device(device)] if device else []
    return [
        [row(subject, slope, machine) for machine in alternatives]
        for slope in subject.slopes[:1]
        for alternatives in machines(recipe(text), devices, subject, slope)
    ]


@pytest.mark.feature("O32")
def test_one_curve_tells_of_many_machines() -> None:
    slow, fast = rows("capacities: [1MiB, 40MiB]\nbandwidths: [100GB/s, 1TB/s]\nrate: 100TFLOP/s")
    assert [each.traffic for each in slow] == [each.traffic for each in fast] == [1600 * MIB, 256 * MIB]
    assert [each.limit for each in slow] == ["memory", "memory"]
    assert slow[0].picoseconds == round(1600 * MIB * 10)
    assert [each.limit for each in fast] == ["memory", "compute"]
    assert fast[1].throughput == 10**14
    assert fast[1].picoseconds == round(2 * 4096**3 / 100)


def test_of_a_device_every_level_or_other_buffers_above_its_memory() -> None:
    (levels,) = rows("devices: [a100]", "a100")
    assert [each.machine.level for each in levels] == ["dram -> l2", "l2 -> smem", "smem -> reg"]
    assert {each.machine.rate for each in levels} == {19_500_000_000_000}
    (swept,) = rows("devices: [a100]\ncapacities: [1MiB]", "a100")
    assert (swept[0].machine.bandwidth, swept[0].machine.level) == (2_039_000_000_000, "dram")
    assert swept[0].femtojoules == 1600 * MIB * 450_000 // 8 + 4096**3 * 1690
    (other,) = rows("devices: [a100]\ncapacities: [1MiB]\nbandwidths: [1GB/s]\nrate: 1TFLOP/s", "a100")
    assert (other[0].machine.bandwidth, other[0].machine.rate) == (10**9, 10**12)


@pytest.mark.feature("O28")
def test_shares_of_a_die_are_the_designs_of_the_area_study() -> None:
    (found,) = rows(f"{AREA}}}")
    subject = square()
    slope = subject.slopes[0]

    def moved(buffer: int) -> float | None:
        point = slope.at(buffer)
        return point.traffic_bytes if point else None

    die = Die(100e6 * 0.5, 300, 2.5, 1e9, 100e9)
    expected = designs(die, 4096**3, moved, [point.buffer_bytes for point in slope.points])
    assert [each.machine.capacity for each in found] == [design.buffer for design in expected]
    for each, design in zip(found, expected, strict=True):
        assert each.throughput == pytest.approx(2 * design.throughput, rel=1e-6)
    (marked,) = [each for each in compared(found) if each.mark]
    assert (marked.mark, marked.machine.capacity) == ("fastest", best(expected).buffer)


def test_bandwidths_and_samples_of_a_die() -> None:
    slow, fast = rows(f"{AREA}, samples: 5}}\nbandwidths: [100GB/s, 200GB/s]")
    assert len(slow) == len(fast) == 5
    assert [each.machine.share for each in slow][-1] == pytest.approx(1)
    assert fast[1].throughput == pytest.approx(2 * (slow[1].throughput or 0), rel=1e-6)
    assert slow[-1].limit == "compute"


def test_what_limits_a_device() -> None:
    def made(picoseconds: int, limit: str) -> Row:
        return Row("w", "oro", Machine("d", 8), 8, 1, picoseconds, 1, limit)

    found = slowest([made(5, "memory"), made(7, "memory"), made(7, "memory"), made(9, "compute")])
    assert [each.mark for each in found] == ["", "limits the device", "", ""]
    assert [each.mark for each in slowest([made(9, "compute")])] == [""]


def test_nothing_fits_nothing_limits() -> None:
    subject = small()
    slope = subject.slopes[0]
    least = slope.points[0].buffer_bytes
    none = row(subject, slope, Machine("", least - 1, bandwidth=1, rate=1))
    assert (none.traffic, none.throughput) == (None, None)
    free = row(subject, slope, Machine("", least))
    assert (free.picoseconds, free.throughput, free.limit, free.femtojoules) == (None, None, "", None)
    dead = row(subject, slope, Machine("", least, rate=0))
    assert (dead.throughput, dead.limit) == (0, "compute")
    half = row(subject, slope, Machine("", least, access=Access.model_validate({"energy": "3fJ", "bytes": "1B"})))
    assert half.femtojoules is None
    assert [each.mark for each in compared([none, free])] == ["", ""]
    assert study_cells([none])[1][-1] == f"nothing fits, {least} bytes are the least"


def test_forms_agree() -> None:
    (found,) = rows("devices: [a100]\ncapacities: [1B, 1MiB, 5MB, 33333333B]", "a100")
    marked = compared(found)
    told = json.loads(json.dumps(study_to_json("c", {"oro": "all"}, marked)))
    assert (told["convention"], told["mapspaces"]) == ("c", {"oro": "all"})
    for one, other in zip(csv.DictReader(io.StringIO(study_csv(marked))), told["rows"], strict=True):
        assert {key: value for key, value in one.items() if value} == {key: str(value) for key, value in other.items()}
    head, first, second, third, last = study_cells(marked)
    assert "of die" not in head
    column = head.index("buffer")
    assert [first[column], second[column], third[column], last[column]] == ["1B", "1MiB", "5MB", "31.8 MiB"]
    cells = dict(zip(head, second, strict=True))
    assert (cells["traffic"], cells["bandwidth"], cells["peak"]) == ("1600.0 MiB", "2.039 TB/s", "19.5 Top/s")
    assert cells["energy"] == "211 mJ"


@pytest.mark.parametrize(
    ("text", "across", "linear", "lines"),
    [
        ("capacities: [1MiB, 40MiB]\nbandwidths: [1GB/s, 2GB/s]", "buffer (bytes)", False, ["1 GB/s", "2 GB/s"]),
        ("capacities: [1MiB]\nbandwidths: [1GB/s, 2GB/s]", "bandwidth (bytes per second)", False, [""]),
        (f"{AREA}, samples: 4}}", "share of the die that is buffer", True, ["die 100 GB/s"]),
    ],
)
def test_pictures_show_what_varies(text: str, across: str, linear: bool, lines: list[str]) -> None:
    flat = [each for alternatives in rows(text) for each in alternatives]
    throughput, *others = study_panels(flat)
    assert (throughput.x, throughput.linear) == (across, linear)
    assert [panel.y for panel in others] == ["traffic (bytes)"] * (across == "buffer (bytes)")
    assert [line.label for line in throughput.lines] == [f"C oro {line}".strip() for line in lines]
    for line in throughput.lines:
        assert list(line.pairs) == sorted(line.pairs)
