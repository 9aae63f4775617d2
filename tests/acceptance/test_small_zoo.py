"""Every model of the zoo, made small, in both forms: compiled whole, equal to onnxruntime, static or dynamic."""

from __future__ import annotations

import pytest

from acceptance.building import FORMS, check_draws
from acceptance.miniatures import SMALL, miniature


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SMALL)
def test_small_models_agree_with_onnxruntime(tmp_path, name, form):
    check_draws(miniature(name, form, tmp_path))
