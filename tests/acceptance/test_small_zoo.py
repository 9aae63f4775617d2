"""Every model of the zoo, made small, in both forms: compiled whole, equal to onnxruntime, static or dynamic."""

from __future__ import annotations

import pytest

from acceptance.building import FORMS, check_draws
from acceptance.miniatures import SMALL, miniature

QUICK = {
    *(("mobilenet-v2", "fused"), ("unet", "fused"), ("resnet-50", "fused"), ("vgg16", "decomposed")),
    *(("bert-base", "decomposed"), ("llama-layer-decode", "fused"), ("nerf-mlp", "fused")),
}
"""Convolutions of every kind, pooling, upsampling, normalisation, attention with and without a cache: about 17 s."""
CASES = [
    pytest.param(name, form, marks=[] if (name, form) in QUICK else [pytest.mark.slow])
    for name in SMALL
    for form in FORMS
]


@pytest.mark.quick_cases("vgg16-decomposed", "nerf-mlp-fused")
@pytest.mark.parametrize(("name", "form"), CASES)
def test_small_models_agree_with_onnxruntime(tmp_path, name, form):
    check_draws(miniature(name, form, tmp_path))
