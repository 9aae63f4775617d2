"""Step 4: whole models and each of their kernels, beside torch.compile with CUDA graphs, and with less fusion."""

from __future__ import annotations

import json
from typing import Any

import onnx

from tests.on_gpu.anchors import WARM, planned
from tests.on_gpu.card import Card
from tests.on_gpu.case import Case, feeds_of
from tests.on_gpu.clock import replayed
from tests.on_gpu.opened import opened
from tests.on_gpu.prepare import PLAN
from tests.on_gpu.restore import SEED

STEP, OF_KERNELS = "models", "kernels"


def whole_models(card: Card) -> None:
    """Time the models that are there."""
    for case in card.chosen if card.timed else ():
        if card.left <= 0:
            break
        if not case.zoo or case.name in card.found(STEP) or card.state(case)["error"]:
            continue
        card.touch(case.name)
        try:
            _timed(card, case)
        except Exception as wrong:
            card.failed(STEP, case.name, wrong)


def _timed(card: Card, case: Case) -> None:
    build = card.build(case)
    device = opened(build, card.driver, feeds_of(onnx.load(card.work / case.name / "model.onnx"), SEED))
    device.compute()
    facts = {name: value for name, value in planned(build).items() if name != "kernels"}
    card.note(STEP, case.name, {**facts, "time": replayed(card.driver, device.enqueue, 1)})
    if case.family != "model":
        return
    plan = json.loads((build / PLAN).read_text(encoding="utf-8"))
    predicted = {group["name"]: int(group["cost"]["picoseconds"]) / 1e6 for group in plan["groups"]}
    firsts = {launch.symbol: launch for launch in reversed(device.launches)}
    times: dict[str, Any] = {}
    for symbol, launch in firsts.items():
        found = replayed(card.driver, lambda one=launch: device.enqueue([one] * WARM), WARM, rounds=5)  # type: ignore[misc]
        many = sum(each.symbol == symbol for each in device.launches)
        times[symbol] = [found["us"], round(predicted.get(launch.group, 0.0), 3), many]
    card.note(OF_KERNELS, case.name, times)
