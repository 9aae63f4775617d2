"""Every model of the zoo, made small, in both forms: compiled whole, equal to onnxruntime, static or dynamic."""

from __future__ import annotations

import pytest

from acceptance.building import FORMS, check_draws
from acceptance.miniatures import LONG, SMALL, miniature

SLOW = {(name, form) for name in LONG for form in FORMS} - {("gpt2", "decomposed"), ("conformer", "fused")}
SLOW |= {("nafnet", "decomposed")}
CASES = [
    pytest.param(name, form, marks=[pytest.mark.slow] if (name, form) in SLOW else [])
    for name in SMALL
    for form in FORMS
]


@pytest.mark.parametrize(("name", "form"), CASES)
def test_small_models_agree_with_onnxruntime(tmp_path, name, form):
    check_draws(miniature(name, form, tmp_path))
