from __future__ import annotations

import pytest

from tilec.bounds.einsum.einsum import parse_einsum
from tilec.bounds.einsum.oro_plus import oro_plus
from tilec.bounds.levels import LevelCapacity, level_capacities
from tilec.spec.resolve import resolve_device

KIB, MIB = 2**10, 2**20


def capacities(device: str) -> dict[str, int]:
    return {level.level: level.capacity for level in level_capacities(resolve_device(device))}


@pytest.mark.feature("O09")
def test_a_level_counts_with_everything_above_it() -> None:
    # One multiprocessor holds 192 KiB of L1 and shared memory and 256 KiB of registers, 108 of them lie above L2.
    assert capacities("a100") == {"l2": 40 * MIB + 108 * 448 * KIB, "smem": 448 * KIB, "reg": 32 * 1020}
    # Two complexes of four cores: L3 with four L2, L1 and register files.
    assert capacities("avx2") == {"l3": 16 * MIB + 4 * (512 + 32 + 0.5) * KIB, "l2": 544.5 * KIB,
                                  "l1": 32.5 * KIB, "reg": 512}  # fmt: skip


def test_levels_of_one_memory_hold_no_more_than_it_and_neighbours_share() -> None:
    # The chip is its tiles' memories, and every tile reads all of them.
    assert capacities("ipu-mk2") == {"chip": 1472 * 624 * KIB, "tile": 1472 * 624 * KIB}


def test_traffic_is_that_of_all_instances_at_the_bandwidth_below() -> None:
    lowest, shared, registers = level_capacities(resolve_device("a100"))
    assert lowest == LevelCapacity("l2", "dram", 40 * MIB + 108 * 448 * KIB, 1, 2_039_000_000_000)
    assert (shared.below, shared.instances, registers.instances) == ("l2", 108, 108 * 64)
    # Tiles that read each other are one memory.
    assert [level.instances for level in level_capacities(resolve_device("ipu-mk2"))] == [1, 1]


@pytest.mark.feature("O10")
def test_cores_and_what_lies_below_need_tasks_for_all_of_them() -> None:
    def units(device: str) -> dict[str, int]:
        return {level.level: level.units for level in level_capacities(resolve_device(device))}

    assert units("a100") == {"l2": 1, "smem": 108, "reg": 1}
    assert units("avx2") == {"l3": 2, "l2": 8, "l1": 1, "reg": 1}
    assert set(units("ipu-mk2").values()) == {1}


@pytest.mark.feature("O09")
def test_accumulators_above_shared_memory_spare_it_traffic() -> None:
    curve = oro_plus(parse_einsum("C[m,n] = sum(k, A[m,k] * B[k,n])", {"m": 4096, "n": 4096, "k": 4096}, 32))
    alone, with_registers = curve.at(164 * KIB), curve.at(capacities("a100")["smem"])
    assert alone is not None
    assert with_registers is not None
    assert with_registers.traffic_bytes < alone.traffic_bytes
