"""Models in the forms of packages' files compile without a size and are right at all that verify draws.

They are compiled for a device of a file, whose kernels run on every machine with AVX2.
"""

from __future__ import annotations

import pytest
from acceptance.building import Quiet
from verify.here import in_this_process

from tests.outside.recipes import RECIPES
from tilec.pipeline import Job, compile_model
from tilec.spec.effective import effective_recipe

FALLS_BACK = {
    "boxes_of_objects": {"NonMaxSuppression"},
    "shifts_of_atoms": {"ScatterElements"},
    "scaled_trees": {"Scaler", "TreeEnsembleRegressor"},
}
"""Operators that onnxruntime runs, of those recipes that have any: what it alone does, or does in less work."""


@pytest.mark.slow_cases(
    "votes_of_a_set",
    "text_in_pictures",
    "columns_apart",
    "half_precision_morphemes",
    "voice_activity",
    "boxes_of_objects",
    "reversed_sequences",
    "shifts_of_atoms",
    "line_of_text",
    "sleep_spindles",
    "unrolled_cells",
    "masked_tokens",
)
@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_compiles_without_sizes_and_is_right(tmp_path, name):
    model = RECIPES[name]().save(tmp_path / "model.onnx")
    effective = effective_recipe(None, {"device": ("--device", "avx2")}, {})
    job = Job(effective.recipe, Quiet(), effective.device, device_text=effective.device_source.text)
    with in_this_process():
        stages = compile_model(job, model, tmp_path / "model.tilec")
    placement, report = stages["schedule"].body["placement"], stages["verify"].body
    assert {each["op"] for each in placement.get("fallback", ())} == FALLS_BACK.get(name, set())
    assert report["verdict"] == "pass"
    assert len(report["samples"]) >= 3
