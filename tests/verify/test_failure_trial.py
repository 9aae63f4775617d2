"""A trial of --reduce passes and fails what verify passes and fails."""

import pytest

from tilec.verify.compare import compare
from tilec.verify.failure_trial import Bench
from tilec.verify.input_files import feedings, feeds_of
from tilec.verify.runners import Compiled, Reference
from tilec.verify.tolerance import tolerances
from verify.builds import OPTIONS, compiled, doubled, generated, ill_conditioned, planned
from verify.planted import planted, swallows_nan


@pytest.fixture
def bench(tmp_path):
    with Bench(tmp_path / "trials", None) as bench:
        yield bench


def test_an_ill_conditioned_output_is_no_failure(bench, tmp_path):
    model, plan, kernels = compiled(tmp_path, *ill_conditioned())
    feeds = feeds_of(plan, feedings(OPTIONS.seeds, None, model)[0])
    expected = Reference(model).run(feeds)
    assert not compare("y", Compiled(tmp_path).run(feeds)["y"], expected["y"], tolerances(plan)["y"]).passed
    assert bench.judged(model, plan, kernels, tmp_path, feeds, expected) is None


def test_wrong_kernels_fail_by_their_outputs_or_behind_right_outputs(bench, tmp_path):
    model, plan = planned(tmp_path, "host")
    feeds = feeds_of(plan, feedings(OPTIONS.seeds, None, model)[0])
    expected = Reference(model).run(feeds)
    for wrong, kind in ((doubled(plan, "y"), "mismatch"), (next(planted(plan, swallows_nan("h2"))), "wrong group")):
        kernels = generated(wrong, tmp_path, "host").body
        failure = bench.judged(model, plan, kernels, tmp_path, feeds, expected)
        assert failure.kind == kind
        assert failure.divergence.stage == "codegen"
