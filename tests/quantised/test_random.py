"""Random quantised models compute the judge's integers, bit by bit; the judge agrees with onnxruntime."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from fuzz.check import check, read, text_of
from fuzz.worker import Worker

from quantised.draw import draw
from quantised.judge import evaluate

MODELS, JUDGED = 3, 120
CASES = sorted(path.parent for path in (Path(__file__).parent / "cases").glob("*/model.onnx"))


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as process:
        yield process


@pytest.mark.feature("L18", "L21", "L27")
def test_random_models(worker: Worker) -> None:
    """`make fuzz-quantised` draws thousands."""
    for index in range(MODELS):
        model = draw(0, index)
        finding = check(model, worker)
        assert finding is None, f"model {index}: {finding.kind}: {finding.detail}\n{text_of(model)}"


@pytest.mark.quick_cases("lanes-of-words", "qlinear-mul-ties")
@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_what_was_wrong_once(case: Path, worker: Worker) -> None:
    model = read(case, evaluate)
    finding = check(model, worker)
    assert finding is None, f"{finding.kind}: {finding.detail}\n{text_of(model)}"


def test_judge_agrees_with_onnxruntime() -> None:
    """On what onnxruntime runs, unoptimised."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    agreed = 0
    for index in range(JUDGED):
        model = draw(1, index)
        try:
            session = onnxruntime.InferenceSession(model.proto.SerializeToString(), options)
            outputs = session.run(None, model.feeds)
        except Exception:  # onnxruntime's own classes share no base
            continue
        judged = model.evaluate(model.proto, model.feeds)
        names = [port.name for port in model.proto.graph.output]
        wrong = [judged.difference(name, np.asarray(made)) for name, made in zip(names, outputs, strict=True)]
        assert not any(wrong), f"model {index}: {wrong}\n{text_of(model)}"
        agreed += 1
    assert agreed > JUDGED // 2
