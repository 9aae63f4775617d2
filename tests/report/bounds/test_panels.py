"""What the pictures show."""

from __future__ import annotations

from itertools import pairwise

import pytest
from report.bounds.subjects import MIB, small, square

from tilec.analysis.bounds.units import peak
from tilec.report.bounds.panels import intensity, panels
from tilec.spec.resolve import resolve_device


@pytest.mark.feature("O01")
def test_ski_slopes_fall_to_the_compulsory_traffic_and_stay_there() -> None:
    slope = panels([square()], None)[0]
    assert [line.label for line in slope.lines] == ["oro", "oro+", "lb"]
    for line in slope.lines:
        traffic = [y for _, y in line.pairs]
        assert all(a >= b for a, b in pairwise(traffic))
        assert traffic[-1] == 192 * MIB


@pytest.mark.feature("O07")
def test_the_mesa_of_intensity_peaks_at_operations_over_compulsory_bytes() -> None:
    subject = square()
    mesa = panels([subject], None)[1]
    for line in mesa.lines:
        assert max(y for _, y in line.pairs) == 2 * 4096**3 / (192 * MIB)
    assert intensity(subject, 256 * MIB) == 512


@pytest.mark.feature("O08")
def test_the_mesa_of_performance_is_bandwidth_bound_below_the_ridge() -> None:
    device = resolve_device("a100")
    title, plain = (panels([square()], each)[-1] for each in (device, None))
    assert (title.title, plain.title) == ("Performance mesa: a100, dram 2039 GB/s", "OI mesa")
    oro = title.lines[0].pairs
    assert oro[0][1] == pytest.approx(2 * 4096**3 / square().slopes[0].points[0].traffic_bytes * 2.039e12)
    assert oro[-1] == (float(title.marks[0][0]), 19.5e12)


@pytest.mark.feature("O08")
def test_the_peak_is_that_of_units_wide_enough() -> None:
    device = resolve_device("a100")
    assert peak(device, square()) == 19.5e12
    assert peak(device, small()) == 312e12  # 16 and 8 bits in


def test_capacities_of_the_device_are_marked_and_names_told_apart() -> None:
    slope = panels([square(), small()], resolve_device("a100"))[0]
    assert [name for _, name in slope.marks] == ["l2", "smem", "reg"]
    assert len({line.label for line in panels([square()], None)[0].lines}) == 3
    assert slope.lines[0].label == "C oro"
