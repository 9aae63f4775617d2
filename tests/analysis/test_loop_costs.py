"""Figures of plans with serial loops: what a loop runs counts once for each of its steps."""

from dataclasses import replace
from pathlib import Path

import pytest
from importer.control.test_scan import model, running_sum

from tilec.analysis.diff import diff_plans
from tilec.analysis.energy import plan_energy
from tilec.analysis.ratios import plan_ratio
from tilec.analysis.statistics import statistics
from tilec.analysis.totals import at_level, launches, plan_costs, predicted, total
from tilec.importer import import_model
from tilec.ir.bind_plan import bind_plan
from tilec.ir.expr import Const, constant_value
from tilec.ir.loop_steps import loop_steps, usual_loop_steps
from tilec.ir.plan import Group, Plan
from tilec.ir.sizes import SymbolRange
from tilec.ir.text import text_of
from tilec.scheduler import schedule
from tilec.spec.resolve import resolve_device


@pytest.fixture(scope="module")
def scanned(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """A scan of `n` rows: its body is planned once."""
    path = model(tmp_path_factory.mktemp("scan"), running_sum(), ["w"], ["n", "w"])
    graph = import_model(Path(path)).graph
    graph = replace(graph, symbol_ranges={"n": SymbolRange(likely=(100,)), "w": SymbolRange(likely=(64,))})
    return schedule(graph, resolve_device("a100"))


def moved(group: Group) -> int:
    sides = (group.cost.read["smem"], group.cost.written["smem"])
    return sum(constant_value(side) or 0 for side in sides)


@pytest.mark.feature("B01")
def test_groups_run_once_for_each_step(scanned: Plan) -> None:
    steps = loop_steps(scanned)
    inside = [group for group in scanned.groups if group.name in steps]
    assert inside
    assert {text_of(count) for count in steps.values()} == {"n"}
    assert set(usual_loop_steps(scanned).values()) == {Const(100)}
    often = {group.name: 100 if group in inside else 1 for group in scanned.groups}
    assert launches(scanned) == statistics(scanned).launches == sum(often.values())
    assert predicted(scanned) == sum(often[g.name] * g.cost.picoseconds for g in scanned.groups)
    assert plan_costs(scanned)["picoseconds"] == Const(predicted(scanned))
    loaded = at_level(scanned, "smem")
    assert loaded == Const(sum(often[g.name] * moved(g) for g in scanned.groups)) == plan_costs(scanned)["traffic@smem"]
    use = statistics(scanned).levels["smem"]
    assert total((use.read, use.written)) == loaded
    for level, apart in scanned.unfused.items():
        assert (constant_value(apart) or 0) >= (constant_value(at_level(scanned, level)) or 0) > 0
    assert plan_ratio(scanned) is None


def test_a_bound_number_of_steps_counts(scanned: Plan) -> None:
    ten, none = (bind_plan(scanned, {"n": n, "w": 64}) for n in (10, 0))
    assert set(loop_steps(ten).values()) == {Const(10)}
    assert predicted(ten) < predicted(scanned)
    outside = [group for group in scanned.groups if group.name not in loop_steps(scanned)]
    assert predicted(none) == sum(group.cost.picoseconds for group in outside)
    device = resolve_device("a100")
    energy = [plan_energy(each, device) for each in (ten, bind_plan(scanned, {"n": 20, "w": 64}))]
    assert all(energy)
    first, second = (sum(g.moved for g in each.groups if g.name in loop_steps(ten)) for each in energy if each)
    assert second == 2 * first > 0


def test_ends_of_loops_are_no_calls_of_another_runtime(scanned: Plan) -> None:
    facts = {
        change.after for change in diff_plans(replace(scanned, calls=()), scanned).changes if change.kind == "call"
    }
    assert facts == {"loop start", "loop end"}
