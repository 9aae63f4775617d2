"""Bounds at capacities."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from report.bounds.subjects import MIB, small, square

from tilec.analysis.bounds.rows import (
    Row,
    at_bytes,
    at_capacity,
    at_levels,
    rows_of,
    some_capacities,
    usual_capacities,
)
from tilec.analysis.bounds.subject import Measured
from tilec.bounds.levels import level_capacities
from tilec.spec.resolve import resolve_device


def found(rows: list[Row]) -> dict[tuple[str, str], int | None]:
    return {(row.at.text, row.mapspace): row.traffic for row in rows}


@pytest.mark.feature("O01", "O05")
def test_square_gemm_at_the_capacities_of_gpus() -> None:
    rows = list(rows_of(square(), [at_capacity(f"{mib}MiB") for mib in (1, 40)]))
    traffic = found(rows)
    assert {at: moved for at, moved in traffic.items() if at[1] != "oro+"} == {
        ("1MiB", "oro"): 1600 * MIB,
        ("1MiB", "lb"): 1022 * MIB,
        ("40MiB", "oro"): 256 * MIB,
        ("40MiB", "lb"): 192 * MIB,
    }
    assert 1022 * MIB < (traffic["1MiB", "oro+"] or 0) < 1600 * MIB
    assert [row.gap for row in rows if row.mapspace == "oro"] == pytest.approx([1600 / 192, 256 / 192])


def test_decimal_and_binary_sizes_differ() -> None:
    assert at_capacity("40MB").capacity == 40_000_000
    assert at_capacity(" 40MiB ").capacity == 40 * MIB
    # 33,554,432 bytes hold half of an operand, one column less does not.
    subject = square()
    need = next(p.buffer_bytes for p in subject.slopes[0].points if p.traffic_bytes == 256 * MIB)
    assert [row.traffic for row in rows_of(subject, [at_capacity(f"{need - 1}B"), at_capacity(f"{need}B")])][::3] == [
        320 * MIB,
        256 * MIB,
    ]


def test_where_nothing_fits_the_row_says_what_would() -> None:
    rows = list(rows_of(small(), [at_capacity("1B")]))
    assert [(row.mapspace, row.traffic, row.gap) for row in rows[:2]] == [("oro", None, None), ("oro+", None, None)]
    assert rows[0].because == "nothing fits, 7 bytes are the least"
    assert (rows[2].mapspace, rows[2].because) == ("lb", "matrix product")


def test_usual_capacities_end_where_more_saves_nothing() -> None:
    sizes = [at.capacity for at in usual_capacities(square())]
    assert sizes == [*(4**power for power in range(4, 14)), 67_141_632]
    assert [at.capacity for at in usual_capacities(small())] == [4, 16, small().largest_useful_buffer]


def test_capacities_are_told_in_the_unit_that_needs_fewest_digits() -> None:
    told = [at_bytes(size).text for size in (100_000_000, 40 * MIB, 67_141_632, 320_000_000, 7, 0)]
    assert told == ["100MB", "40MiB", "65568KiB", "320MB", "7B", "0B"]
    assert [at.text for at in some_capacities()] == ["64KiB", "1MiB", "16MiB"]


@pytest.mark.feature("O29")
def test_what_was_measured_stands_beside_the_bounds_of_its_capacity() -> None:
    subject = replace(square(), measured=(Measured("A100", 40 * MIB, 411 * MIB),))
    rows = list(rows_of(subject, [at_capacity("1MiB"), at_capacity("40MiB")]))
    assert [(row.at.text, row.traffic, row.because) for row in rows if row.mapspace == "measured"] == [
        ("40MiB", 411 * MIB, "A100")
    ]


@pytest.mark.feature("O09")
def test_levels_of_a_device() -> None:
    levels = level_capacities(resolve_device("a100"))
    rows = list(rows_of(square(), at_levels(levels)))
    assert [row.at.text for row in rows[::3]] == ["dram -> l2", "l2 -> smem", "smem -> reg"]
    traffic = [row.traffic for row in rows if row.mapspace == "oro"]
    assert traffic[0] == 192 * MIB
    assert all(a is not None and b is not None and a < b for a, b in pairwise(traffic))
