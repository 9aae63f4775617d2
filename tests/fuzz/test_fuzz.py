"""Random models compute what onnxruntime computes, and so do the small ones that once did not."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.check import check, read, text_of
from fuzz.draw import draw
from fuzz.worker import Worker

CASES = sorted(path.parent for path in (Path(__file__).parent / "cases").glob("*/model.onnx"))
MODELS, NODES = 24, 12


@pytest.mark.slow_cases(
    "average-of-nothing",
    "comparison-of-literals",
    "indices-of-padded-windows",
    "joined-quotients",
    "maximum-over-all",
    "sums-along-many-joined-inputs",
)
@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_what_was_wrong_once(case: Path, worker: Worker) -> None:
    model = read(case)
    finding = check(model, worker)
    assert finding is None, f"{finding.kind}: {finding.detail}\n{text_of(model)}"


@pytest.mark.slow_cases("0")
@pytest.mark.parametrize("part", [0, 1, *(pytest.param(part, marks=pytest.mark.slow) for part in (2, 3))])
def test_random_models(part: int, worker: Worker) -> None:
    for index in range(part, MODELS, 4):
        model = draw(0, index, NODES)
        finding = check(model, worker)
        assert finding is None, f"model {index}: {finding.kind}: {finding.detail}\n{text_of(model)}"
