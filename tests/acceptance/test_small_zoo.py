"""Every model of the zoo, made small, in both forms: compiled whole, equal to onnxruntime, static or dynamic."""

from __future__ import annotations

import pytest

from acceptance.building import FORMS, check_draws
from acceptance.miniatures import LONG, SMALL, miniature

QUICK = {("conformer", "fused")}
QUICK |= {(name, FORMS[place % 2]) for place, name in enumerate(name for name in SMALL if name not in LONG)}
"""One form of each model that compiles quickly, by turns, and the conformer."""
CASES = [
    pytest.param(name, form, marks=[] if (name, form) in QUICK else [pytest.mark.slow])
    for name in SMALL
    for form in FORMS
]


@pytest.mark.parametrize(("name", "form"), CASES)
def test_small_models_agree_with_onnxruntime(tmp_path, name, form):
    check_draws(miniature(name, form, tmp_path))
