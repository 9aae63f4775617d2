from __future__ import annotations

import pytest

from tilec.bounds.area import Die, best, designs, evenly

# 100 units of area, a multiplier takes 1, a byte 0.5, both run at 1 per second.
DIE = Die(area=100, mac_area=1, byte_area=0.5, clock=1, bandwidth=1)


def traffic(buffer: int) -> float | None:
    """Bytes of a curve with three steps."""
    return None if buffer < 10 else 100 if buffer < 40 else 20 if buffer < 120 else 10


@pytest.mark.feature("O28")
def test_throughput_is_what_memory_and_multipliers_both_allow() -> None:
    found = designs(DIE, 1000, traffic, [300, 120, 5, 40, 10, 40])
    assert [design.buffer for design in found] == [10, 40, 120]  # 5 fits no mapping, 300 no die
    assert [design.memory_bound for design in found] == [10, 50, 100]
    assert [design.compute_bound for design in found] == [95, 80, 40]
    assert [design.throughput for design in found] == [10, 50, 40]
    assert [design.share for design in found] == [0.05, 0.2, 0.6]
    assert best(found).buffer == 40


def test_of_equally_fast_designs_the_smallest_buffer_is_best() -> None:
    assert best(designs(DIE, 1000, traffic, range(10, 100))).buffer == 40


def test_evenly_spaced_buffers_end_with_a_die_of_buffer() -> None:
    assert evenly(10, DIE, 3) == [10, 105, 200]
    assert designs(DIE, 1000, traffic, [200])[0].throughput == 0
