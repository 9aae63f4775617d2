"""Models that onnxruntime's quantiser writes compile native in full, and verify says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from quantised.compile import compiled
from quantised.forms import FORMS, MODELS, Form, quantised

QUICK = {("mobilenet-v2", "qoperator-u8s8-tensor"), ("vit-s32", "qdq-u8s8-tensor")}
"""Scales that put values on the boundary of two steps; products whose last vector is one word."""

CASES = [
    pytest.param(model, form, id=f"{model}-{form.name}", marks=[] if (model, form.name) in QUICK else pytest.mark.slow)
    for model in MODELS
    for form in FORMS
]


@pytest.mark.slow
@pytest.mark.parametrize(("model", "form"), CASES)
def test_quantised_models_are_right(model: str, form: Form, tmp_path: Path) -> None:
    result = compiled(quantised(model, form, tmp_path / "model.onnx"), "--no-bounds", "--budget", "4")
    assert result.code == 0, result.error
    assert result.native == result.total
    assert set(result.verdicts) <= {"exact", "within rounding", "ill-conditioned"}
