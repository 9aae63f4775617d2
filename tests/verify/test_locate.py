"""The first diverging group: which stage is at fault, and where."""

from dataclasses import replace

import numpy as np
import pytest

from tilec.artifact import bring_files
from tilec.errors import TilecError
from tilec.verify.groups import keep_all
from tilec.verify.inputs import Draw, random_inputs
from tilec.verify.locate import locate
from tilec.verify.runners import Reference, inner_tensors
from verify.builds import doubled, generated, planned


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """Folder, model, plan for this machine, feeds and what onnxruntime makes of them."""
    folder = tmp_path_factory.mktemp("locate")
    model, plan = planned(folder, "host")
    feeds = random_inputs(plan, Draw(0))
    return folder, model, plan, feeds, Reference(model).run(feeds)


def found_when(case, compiled):
    """What is found when the kernels compute the plan `compiled` instead of the plan."""
    folder, model, plan, feeds, expected = case

    def instrument(kept, temporary):
        bring_files(plan.files, folder, temporary)
        generated(replace(compiled, outputs=kept.outputs), temporary, "host")

    return locate(plan, folder, model, feeds, expected, instrument)


@pytest.mark.parametrize(("tensor", "origin"), [("h2", "first, bias and 1 more"), ("y", "second")])
def test_a_kernel_that_does_not_do_what_the_plan_says(case, tensor, origin):
    found = found_when(case, doubled(case[2], tensor))
    assert (found.stage, found.group) == ("codegen", tensor)
    assert origin.split(" ")[0].rstrip(",") in found.origin
    assert f"First diverging group: {tensor} (" in found.sentence()
    assert "not what the plan says" in found.sentence()
    assert found.json() == {"stage": "codegen", "group": tensor, "origin": found.origin}


def test_right_groups_and_a_wrong_result_point_at_shared_memory(case):
    found = found_when(case, case[2])
    assert found.stage == "memory"
    assert "share memory" in found.sentence()


def test_a_plan_that_means_something_else_points_at_the_models_node(case):
    folder, model, plan, feeds, expected = case
    wrong = doubled(plan, "h2")
    found = found_when((folder, model, wrong, feeds, expected), wrong)
    assert (found.stage, found.group, found.origin) == ("import", "h2", "relu")


def test_an_instrumented_build_that_fails_is_said(case):
    folder, model, plan, feeds, expected = case

    def instrument(kept, temporary):
        raise TilecError("no space")

    found = locate(plan, folder, model, feeds, expected, instrument)
    assert found.stage == "unknown"
    assert "no space" in found.sentence()
    assert "tilec compile" in locate(plan, folder, model, feeds, expected, None).sentence()


def test_keep_all_adds_every_inner_output_once(case):
    plan = case[2]
    kept = keep_all(plan)
    assert [port.tensor for port in kept.outputs] == ["y", "h2"]
    assert len({port.name for port in kept.outputs}) == 2


def test_inner_tensors_are_those_of_the_models_nodes(case):
    _, model, _, feeds, expected = case
    inner = inner_tensors(model, feeds, {"relu", "second", "nothing"})
    assert set(inner) == {"relu", "second"}
    np.testing.assert_array_equal(inner["second"], expected["y"])
    assert inner["relu"].shape == (4, 32)
    assert inner["relu"].min() == 0
