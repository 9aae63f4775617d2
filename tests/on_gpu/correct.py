"""Step 1: every case against float64 of PyTorch or against onnxruntime, and three runs that agree to the bit."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from tests.on_gpu.card import Card
from tests.on_gpu.case import Case, feeds_of
from tests.on_gpu.opened import opened
from tests.on_gpu.restore import SEED

STEP = "correct"

MOST = {"f32": 1e-5, "f16": 2e-3, "i8": 0.0}
"""Error of the norm of a kernel's outputs, by type: half precision rounds operands that a kernel keeps as well."""

OF_A_MODEL = 5
"""Times as much for a model, whose layers add up."""


def correct(card: Card) -> None:
    """Check the cases in the order in which they are restored."""
    waiting = [case for case in card.chosen if case.name not in card.found(STEP)]
    while waiting and card.left > 0:
        case = next((each for each in waiting if card.restored(each)), waiting[-1])
        waiting.remove(case)
        told = card.state(case)
        card.touch(case.name)
        if told["error"]:
            card.note(STEP, case.name, told)
            continue
        try:
            card.note(STEP, case.name, told | _checked(card, case))
        except Exception as wrong:
            card.failed(STEP, case.name, wrong)


def is_wrong(told: Mapping[str, Any]) -> bool:
    """Whether a case did not run, gave other numbers, or not the same again."""
    return bool(told.get("error")) or not told.get("right", True) or not told.get("repeats", True)


def _checked(card: Card, case: Case) -> dict[str, Any]:
    model = onnx.load(card.work / case.name / "model.onnx")
    feeds = feeds_of(model, SEED)
    device = opened(card.build(case), card.driver, feeds)
    first = device.compute()
    repeats = all(_same(first, device.compute()) for _ in range(2))
    expected, reference = _expected(card, case, feeds, list(first))
    if expected is None:
        return {"repeats": repeats, "reference": reference, "finite": all(map(_finite, first.values()))}
    norm = max(_error(first[name], value) for name, value in expected.items())
    largest = max(_largest(first[name], value) for name, value in expected.items())
    most = MOST[case.ttype] * (OF_A_MODEL if case.zoo else 1)
    right = bool(norm <= most)
    return {"repeats": repeats, "reference": reference, "right": right, "error_norm": norm, "error_most": largest}


def _expected(
    card: Card, case: Case, feeds: Mapping[str, NDArray[Any]], names: list[str]
) -> tuple[dict[str, NDArray[Any]] | None, str]:
    file = card.work / case.name / "expected.npz"
    if file.exists():
        with np.load(file) as arrays:
            return {name: arrays[name] for name in names}, "onnxruntime"
    torch = card.torch
    if torch is None or case.reference is None:
        return None, "none"
    with torch.no_grad():
        values = {name: torch.from_numpy(array).cuda() for name, array in {**operands(card, case), **feeds}.items()}
        exact = {
            name: v.double() if v.is_floating_point() or v.dtype == torch.int8 else v for name, v in values.items()
        }
        computed = case.reference(torch, SimpleNamespace(**exact))
        parts = computed if isinstance(computed, tuple) else (computed,)
        found = dict(zip(names, (part.cpu().numpy() for part in parts), strict=True))
    del values, exact, computed, parts
    torch.cuda.empty_cache()
    return found, "PyTorch in float64"


def operands(card: Card, case: Case) -> dict[str, NDArray[Any]]:
    """The weights of a case, as they were restored."""
    with np.load(card.work / case.name / "operands.npz") as arrays:
        return dict(arrays)


def _same(one: Mapping[str, NDArray[Any]], other: Mapping[str, NDArray[Any]]) -> bool:
    return all(one[name].tobytes() == other[name].tobytes() for name in one)


def _finite(array: NDArray[Any]) -> bool:
    return bool(np.isfinite(array.astype(np.float64)).all())


def _error(found: NDArray[Any], expected: NDArray[Any]) -> float:
    wide = expected.astype(np.float64)
    return float(np.linalg.norm(found.astype(np.float64) - wide) / (np.linalg.norm(wide) or 1.0))


def _largest(found: NDArray[Any], expected: NDArray[Any]) -> float:
    wide = expected.astype(np.float64)
    return float(np.abs(found.astype(np.float64) - wide).max() / (np.abs(wide).max() or 1.0))
