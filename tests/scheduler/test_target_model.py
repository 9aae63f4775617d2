"""The levels of a plan as a device file describes them."""

import pytest
from scheduler.running import device

from tilec.scheduler.target_model import target_model_of


@pytest.mark.parametrize(
    ("name", "alignments"),
    [
        ("a100", {"dram": 256, "smem": 16, "reg": None}),
        ("ipu-mk2", {"streaming": 64, "chip": 4, "tile": 8}),
        ("snowcat", {"memory": 1, "buffer": 1}),
        ("zen5-avx512", {"dram": None, "l2": None, "reg": None}),
    ],
)
def test_scratchpads_have_addresses(name: str, alignments: dict[str, int | None]) -> None:
    """Caches have none, nor has the highest level where it is above the core's: registers."""
    assert {level.name: level.alignment for level in target_model_of(device(name)).levels} == alignments
