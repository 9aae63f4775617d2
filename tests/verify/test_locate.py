"""The first diverging group: which stage is at fault, and where."""

import numpy as np
import pytest

from tilec.artifact import bring_files
from tilec.verify.inputs import Draw, random_inputs
from tilec.verify.locate import Divergence, locate
from tilec.verify.runners import Reference, inner_tensors
from tilec.verify.step_checks import Stale
from verify.builds import doubled, generated, planned


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """Folder, model, plan for this machine, feeds and what onnxruntime makes of them."""
    folder = tmp_path_factory.mktemp("locate")
    model, plan = planned(folder, "host")
    feeds = random_inputs(plan, Draw(0))
    return folder, model, plan, feeds, Reference(model).run(feeds)


def compiled_as(case, plan, folder):
    """The record of code generation of a library in `folder` that computes `plan`."""
    bring_files(case[2].files, case[0], folder)
    return generated(plan, folder, "host").body


@pytest.mark.parametrize(("tensor", "origin"), [("h2", "first, bias and 1 more"), ("y", "second")])
def test_a_kernel_that_does_not_do_what_the_plan_says(case, tmp_path, tensor, origin):
    _, model, plan, feeds, _ = case
    kernels = compiled_as(case, doubled(plan, tensor), tmp_path)
    found = locate(plan, tmp_path, kernels, model, feeds)
    assert (found.stage, found.group) == ("codegen", tensor)
    assert origin.split(" ")[0].rstrip(",") in found.origin
    assert f"First diverging group: {tensor} (" in found.sentence()
    assert "not what the plan says" in found.sentence()
    assert found.json() == {"stage": "codegen", "group": tensor, "origin": found.origin}


def test_a_plan_that_means_something_else_points_at_the_models_node(case, tmp_path):
    _, model, plan, feeds, _ = case
    wrong = doubled(plan, "h2")
    kernels = compiled_as(case, wrong, tmp_path)
    found = locate(wrong, tmp_path, kernels, model, feeds)
    assert (found.stage, found.group, found.origin) == ("import", "h2", "relu")


def test_an_operand_that_changes_in_memory_is_named():
    stale = Stale("y", "second", "h2", "h2")
    found = Divergence.memory(stale)
    assert "operand h2 changed since group h2 stored it" in found.sentence()
    assert found.json() == {"stage": "memory", "group": "y", "origin": "second"}


def test_a_library_that_cannot_run_is_said(case, tmp_path):
    _, model, plan, feeds, _ = case
    found = locate(plan, tmp_path, {}, model, feeds)
    assert found.stage == "unknown"
    assert "not known" in found.sentence()


def test_inner_tensors_are_those_of_the_models_nodes(case):
    _, model, _, feeds, expected = case
    inner = inner_tensors(model, feeds, {"relu", "second", "nothing"})
    assert set(inner) == {"relu", "second"}
    np.testing.assert_array_equal(inner["second"], expected["y"])
    assert inner["relu"].shape == (4, 32)
    assert inner["relu"].min() == 0
