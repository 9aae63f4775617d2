"""Second looks: what they cost, what happens where the budget does not allow one, and that recurrences are judged."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tilec.importer import import_model
from tilec.ir.bind_plan import bind_plan
from tilec.progress import unseen
from tilec.scheduler import schedule
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.resolve import resolve_device
from tilec.verify import native
from tilec.verify.inputs import Draw, random_inputs
from tilec.verify.locate import diverging_origin
from tilec.verify.look_budget import LEAST, NODE, LookBudget, LookTooLong, numpy_operations
from tilec.verify.native import verify_native
from tilec.verify.whole_plan import WholePlan
from verify.builds import OPTIONS, compiled, ill_conditioned
from verify.here import in_this_process
from verify.open_models import open_model
from verify.plans import node, plan_of, tensor


@pytest.fixture(scope="module")
def recurrence(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recurrence")
    model = open_model("recurrence", folder)
    imported = import_model(model)
    (folder / imported.owned_file).write_bytes(b"".join(imported.weights)) if imported.owned_file else None
    plan = schedule(imported.graph, resolve_device("avx2"), ScheduleOptions())
    assert any(call.loop for call in plan.calls)
    return folder, model, plan


def test_the_nodes_of_a_loop_cost_as_often_as_it_has_steps(recurrence):
    _, _, plan = recurrence
    one, ten, hundred = (numpy_operations(bind_plan(plan, {"t": t, "n": 1})) for t in (1, 10, 100))
    inside = (ten - one) // 9
    assert inside > NODE
    assert hundred - one == pytest.approx(99 * inside, rel=0.05)


def test_a_budget_allows_as_many_evaluations_as_it_holds():
    plan = plan_of([node("y[i] = x[i] + 1.0", {"i": 4})], {"x": tensor("f32", 4)}, ["y"])
    cost = numpy_operations(plan)
    assert LookBudget().evaluations(plan, 16) == 16
    assert LookBudget(11 * cost).evaluations(plan, 16) == 10
    with pytest.raises(LookTooLong, match="8 evaluations"):
        LookBudget(LEAST * cost).evaluations(plan, 16)
    budget = LookBudget(20 * cost)
    budget.spend(plan, 5)
    assert budget.evaluations(plan, 16) == 14


def test_what_only_a_look_beyond_the_budget_could_judge_is_left_out(tmp_path, monkeypatch):
    """An output that hangs on rounding is neither right nor wrong then."""
    path, plan, kernels = compiled(tmp_path, *ill_conditioned())
    monkeypatch.setattr(native, "LookBudget", lambda: LookBudget(0))
    with in_this_process():
        outcome = verify_native(tmp_path, plan, kernels, path, OPTIONS, unseen)
    assert outcome.failure is None
    assert outcome.report["verdict"] == "unverified"
    assert "whether rounding explains an output" in outcome.report["because"]


def test_right_steps_of_a_recurrence_are_not_called_the_first_divergence(recurrence):
    """Rounding adds up over the steps: the tensors behind a loop are off by more than one group's would be."""
    folder, model, plan = recurrence
    with in_this_process():
        for t, n in ((1, 1), (60, 3)):
            bound = bind_plan(plan, {"t": t, "n": n})
            found = diverging_origin(bound, folder, model, random_inputs(bound, Draw(0, 3.0)))
            assert (found.stage, found.group) == ("unknown", "")


def test_a_step_reads_no_constant_anew(recurrence, monkeypatch):
    folder, _, plan = recurrence
    bound = bind_plan(plan, {"t": 12, "n": 2})
    whole = WholePlan(bound, folder)
    read = []
    get = type(whole._constants).__getitem__
    monkeypatch.setattr(type(whole._constants), "__getitem__", lambda self, name: read.append(name) or get(self, name))
    outputs = whole.outputs(random_inputs(bound, Draw(0)))
    assert np.isfinite(outputs["y"]).all()
    assert max(Counter(read).values()) <= 3  # of itself, and for what is prepared of it


def test_groups_are_evaluated_segment_by_segment_in_whatever_order_a_plan_has_them(recurrence):
    folder, _, plan = recurrence
    bound = bind_plan(plan, {"t": 3, "n": 2})
    feeds = random_inputs(bound, Draw(0))
    right = WholePlan(bound, folder).outputs(feeds)
    segments = WholePlan(bound, folder)._segments
    place = {g.name: max(segments[each.name] for each in g.nodes) for g in bound.groups}
    later = sorted(bound.groups, key=lambda group: -place[group.name] % 3)
    moved = replace(bound, groups=tuple(later))
    assert [g.name for g in later] != [g.name for g in bound.groups]
    assert (WholePlan(moved, folder).outputs(feeds)["y"] == right["y"]).all()
