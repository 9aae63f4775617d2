"""Bounds for a terminal."""

from __future__ import annotations

from report.bounds.subjects import small, square

from tilec.analysis.bounds.rows import at_capacity, at_levels
from tilec.bounds.levels import NOT_JOINT, level_capacities
from tilec.report.bounds.table import HEADS, cells, footer, heading, size_text
from tilec.spec.resolve import resolve_device


def test_a_heading_says_what_is_bounded_and_from_where_nothing_is_gained() -> None:
    assert heading(square()) == [
        "C[m, n] = sum(k, A[m, k] * B[k, n])",
        "  m=4096 n=4096 k=4096, 32 bits, 137.4 G operations, at least 192.0 MiB, more than 64.0 MiB saves nothing",
    ]
    first, facts = heading(small())
    assert first.endswith(", 3 times")
    assert "A:16 B:8 C:32 bits, 240 operations" in facts


def test_the_mapspace_stands_beside_each_number() -> None:
    lines = cells(square(), [at_capacity("40MB"), at_capacity("4B")])
    assert all(len(line) == len(HEADS) for line in lines)
    mapping = "loops n:2 m:4096, tile n:2048 k:4096"
    assert lines[1][1] == "oro+"
    assert [lines[0], lines[2]] == [
        ["40MB", "oro", "256.0 MiB", "1.33", "32.0 MiB", mapping],
        ["", "lb", "192.0 MiB", "1.00", "", "compulsory"],
    ]
    assert lines[3] == ["4B", "oro", "-", "-", "", "nothing fits, 12 bytes are the least"]


def test_sizes_keep_two_digits_before_the_point() -> None:
    assert [size_text(size) for size in (0, 10_239, 10_240, 1600 * 2**20, 16 * 2**30)] == [
        "0 bytes", "10239 bytes", "10.0 KiB", "1600.0 MiB", "16.0 GiB",
    ]  # fmt: skip


def test_the_footer_tells_what_mapspaces_hold_and_levels_do_not() -> None:
    assert [line.split()[0] for line in footer([small()], [at_capacity("1B")])] == ["oro", "oro+", "lb"]
    ats = at_levels(level_capacities(resolve_device("a100")))
    assert footer([small()], ats)[-1] == f"levels: {NOT_JOINT}"
    assert cells(square(), ats)[0][0] == "dram -> l2 87.2 MiB"
