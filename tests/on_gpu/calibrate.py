"""Step 2: rates, bandwidths and latencies by small kernels."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from tests.on_gpu.card import Card
from tests.on_gpu.probes import issue, latency, launches, memory, rounds, tensor
from tests.on_gpu.probes.probe import compiled, loaded

STEP = "calibrate"

PROBES: Mapping[str, ModuleType] = {
    "tensor": tensor,
    "issue": issue,
    "launches": launches,
    "memory": memory,
    "latency": latency,
    "rounds": rounds,
}


def calibrate(card: Card) -> None:
    """Measure, as long as there is time."""
    for name, probe in PROBES.items():
        if card.left <= 0 or not card.timed:
            break
        if name in card.found(STEP):
            continue
        card.touch(name)
        try:
            card.note(STEP, name, probe.measure(loaded(card.driver, compiled(probe.text()), probe.symbols())))
        except Exception as wrong:
            card.failed(STEP, name, wrong)
