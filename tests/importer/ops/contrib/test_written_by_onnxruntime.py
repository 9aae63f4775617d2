"""Models that onnxruntime's optimiser and quantiser have written compile in full."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from onnxruntime.quantization import QuantType, quantize_dynamic

from tests.importer.reference import onnxruntime, run
from tests.importer.test_convert import SMALL, feeds_of
from tilec import zoo
from tilec.importer import import_model
from tilec.ir.bind import bind


@pytest.fixture
def exported(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for module, values in SMALL.items():
        for name, value in values.items():
            monkeypatch.setattr(f"tilec.zoo.{module}.{name}", value)
    rows = {"seq": 5} if request.param in ("bert-base", "gpt2") else {}
    return zoo.export(request.param, tmp_path / "m.onnx", form="decomposed", **rows)


MODELS = ["bert-base", "gpt2", "mobilevit-s"]


@pytest.mark.parametrize("exported", MODELS, indirect=True)
@pytest.mark.parametrize("quantised", [False, True])
def test_models_compile_in_full(tmp_path: Path, exported: Path, quantised: bool) -> None:
    source = exported
    if quantised:
        source = tmp_path / "q.onnx"
        # Weights of 7 bits: of 8, onnxruntime's kernels for AVX2 saturate sums of two products in 16 bits.
        quantize_dynamic(exported, source, weight_type=QuantType.QInt8, reduce_range=True)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "o.onnx")
    ort.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
    imported = import_model(tmp_path / "o.onnx", fallback="allow")
    assert imported.graph.placement.fallback == ()
    feeds = feeds_of(bind(imported.graph, {}), 0)
    for result, wanted in zip(run(imported, tmp_path, feeds), onnxruntime(tmp_path / "o.onnx", feeds), strict=True):
        assert np.abs(result - wanted).max() <= (2e-2 if quantised else 1e-4) * np.abs(wanted).max()
