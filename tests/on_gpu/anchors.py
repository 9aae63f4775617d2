"""Step 3: kernels beside PyTorch's, warm (operands stay in the second cache) and cold (sets of operands in turn)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from math import ceil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnx
from numpy.typing import NDArray

from tests.on_gpu.card import Card
from tests.on_gpu.case import Case, feeds_of
from tests.on_gpu.clock import Figures, replayed, replayed_by_torch
from tests.on_gpu.correct import operands
from tests.on_gpu.opened import Opened, enqueued, opened
from tests.on_gpu.prepare import PLAN
from tests.on_gpu.restore import SEED

STEP = "anchors"

WARM = 20
"""Launches in a graph whose operands are the same."""

COLD_BYTES, SETS = 150e6, 100
"""Bytes of all sets of operands, three times the second cache, and the most sets."""


def anchors(card: Card) -> None:
    """Time the kernels that are not those of whole models, one of every family before a second one."""
    kernels = [case for case in card.chosen if not case.zoo]
    for case in _in_turns(kernels) if card.timed else ():
        if card.left <= 0:
            break
        if case.name in card.found(STEP) or card.state(case)["error"]:
            continue
        card.touch(case.name)
        try:
            card.note(STEP, case.name, _timed(card, case))
        except Exception as wrong:
            card.failed(STEP, case.name, wrong)


def _in_turns(cases: Sequence[Case]) -> list[Case]:
    """One case of every family, then a second one, and so on."""
    seen: dict[str, int] = {}
    numbered = []
    for case in cases:
        numbered.append((seen.setdefault(case.family, 0), case))
        seen[case.family] += 1
    return [case for _, case in sorted(numbered, key=lambda each: each[0])]


def _timed(card: Card, case: Case) -> dict[str, Any]:
    feeds = feeds_of(onnx.load(card.work / case.name / "model.onnx"), SEED)
    result = {"family": case.family, **planned(card.build(case)), **_replayed(card, case, feeds)}
    if card.torch is not None:
        result["peer"] = _peer(card, case, feeds, result["sets"])
        card.torch.cuda.empty_cache()
    return result


def _replayed(card: Card, case: Case, feeds: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Warm and cold times, and the sets of operands that the cold one takes."""
    every = [opened(card.build(case), card.driver, feeds)]
    size = _bytes(every[0])
    sets = max(2, min(SETS, ceil(COLD_BYTES / size)))
    every += [opened(card.build(case), card.driver, feeds) for _ in range(sets - 1)]
    for each in every:
        each.compute()
    warm = replayed(card.driver, lambda: enqueued([every[0]] * WARM), WARM)
    return {"bytes": size, "sets": sets, "warm": warm, "cold": replayed(card.driver, lambda: enqueued(every), sets)}


def planned(build: Path) -> dict[str, Any]:
    """The predicted time, and what the kernels are launched with."""
    plan = json.loads((build / PLAN).read_text(encoding="utf-8"))
    gpu = json.loads((build / "3-kernels.json").read_text(encoding="utf-8"))["runtime"]["gpu"]
    told = ("symbol", "grid", "block", "shared_bytes", "registers", "spilled_bytes")
    return {
        "predicted_us": sum(int(group["cost"]["picoseconds"]) for group in plan["groups"]) / 1e6,
        "flops": sum(int(group["cost"].get("flops", 0)) for group in plan["groups"]),
        "launches": len(gpu["launches"]),
        "kernels": [{name: kernel.get(name) for name in told} for kernel in gpu["kernels"]],
    }


def _bytes(device: Opened) -> int:
    """Bytes that a run reads and writes at least: inputs, weights, outputs."""
    places = {(a.space, a.index): int(a.offset) + int(a.bytes) for launch in device.launches for a in launch.arguments}
    return max(1, sum(size for (space, _), size in places.items() if space != "arena"))


def _peer(card: Card, case: Case, feeds: Mapping[str, NDArray[Any]], sets: int) -> dict[str, Any]:
    torch, call = card.torch, case.peer or case.reference
    if call is None:
        return {}
    arrays = {**operands(card, case), **feeds}
    last = torch.channels_last if case.ttype == "f16" else torch.contiguous_format
    one = {name: torch.from_numpy(array).cuda() for name, array in arrays.items()}
    if case.family in ("convolution", "depthwise"):
        one = {name: v.to(memory_format=last) if v.dim() == 4 else v for name, v in one.items()}
    every = [SimpleNamespace(**one)]
    every += [SimpleNamespace(**{name: v.clone() for name, v in one.items()}) for _ in range(sets - 1)]

    def timed(chosen: Callable[[int], SimpleNamespace], count: int) -> Figures:
        return replayed_by_torch(torch, lambda number: call(torch, chosen(number)), count)

    for values in every:
        call(torch, values)
    return {
        "note": case.note,
        "warm": timed(lambda _number: every[0], WARM),
        "cold": timed(lambda number: every[number], sets),
    }
