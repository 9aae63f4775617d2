"""Verifying on the tile machine: whole models, single groups within a budget, and what is refused."""

import json

import pytest

from tilec.artifact import pretty
from tilec.errors import ArtifactError
from tilec.verify import on_machine
from tilec.verify.cases import cases_of
from tilec.verify.program_files import read_programs
from tilec.verify.stage import verify
from verify.builds import OPTIONS, doubled, generated, planned


@pytest.fixture
def case(tmp_path):
    model, plan = planned(tmp_path, "a100")
    return tmp_path, model, plan, programs_only(generated(plan, tmp_path, "a100").body)


def programs_only(body):
    """The data of a model for a device without a code generator."""
    return {key: value for key, value in body.items() if key != "runtime"}


def run(case, plan=None):
    folder, model, own, body = case
    steps = []

    def advance(done, total, step=""):
        if step == "compare groups":
            steps.append((done, total))

    return verify(folder, plan or own, body, model, OPTIONS, advance), steps


@pytest.mark.feature("W07")
def test_a_small_model_runs_whole_on_every_draw(case):
    outcome, steps = run(case)
    assert outcome.failure is None
    assert outcome.report["verdict"] == "pass"
    assert outcome.report["because"] == "no a100 code generator yet"
    assert outcome.report["groups"] == {"total": 2, "verified": 2}
    assert set(outcome.report["outputs"]) == {"y"}
    assert steps == [(done, 4) for done in range(1, 5)]
    assert len(outcome.run["draws"]) == 2


def test_the_report_does_not_depend_on_the_run(case):
    assert run(case)[0].report == run(case)[0].report


def test_a_wrong_program_is_a_mismatch(case):
    folder, model, plan, _ = case
    body = generated(doubled(plan, "h2"), folder, "a100").body
    outcome, _ = run((folder, model, plan, programs_only(body)))
    assert outcome.report["verdict"] == "mismatch"
    assert "group h2 (first, bias and 1 more) is wrong on the tile machine" in str(outcome.failure)


@pytest.mark.parametrize("budget", [0, 10**9])
def test_beyond_the_budget_single_groups_are_verified_and_counted(case, monkeypatch, budget):
    monkeypatch.setattr(on_machine, "BUDGET", budget)
    monkeypatch.setattr(on_machine, "work", lambda group, program: 10**8 if group.name == "h2" else 5 * 10**8)
    outcome, steps = run(case)
    verified = 1 if budget == 0 else 2
    assert outcome.failure is None
    assert outcome.report["groups"] == {"total": 2, "verified": verified}
    assert "outputs" not in outcome.report
    assert len(outcome.report["traffic"]) == verified
    assert steps[-1] == (verified, verified)


def test_a_group_runs_with_the_weights_of_the_model(case, monkeypatch):
    drawn, draw = [], on_machine.random_tensors
    monkeypatch.setattr(on_machine, "BUDGET", 0)
    monkeypatch.setattr(on_machine, "work", lambda group, program: int(group.name == "y"))
    monkeypatch.setattr(on_machine, "random_tensors", lambda names, *more: drawn.extend(names) or draw(names, *more))
    assert run(case)[0].failure is None
    known = {*case[2].constants, *(node.name for node in case[2].prepared)}
    assert known
    assert drawn
    assert not known & set(drawn)


def test_a_wrong_group_is_named(case, monkeypatch):
    folder, model, plan, _ = case
    body = programs_only(generated(doubled(plan, "h2"), folder, "a100").body)
    monkeypatch.setattr(on_machine, "BUDGET", 0)
    monkeypatch.setattr(on_machine, "work", lambda group, program: int(group.name == "y"))
    outcome, _ = run((folder, model, plan, body))
    assert outcome.report["verdict"] == "mismatch"
    assert outcome.report["diverging"]["group"] == "h2"
    assert "group h2 (" in str(outcome.failure)


def without_loads(body):
    return [
        {**statement, "body": without_loads(statement["body"])} if "body" in statement else statement
        for statement in body
        if statement["do"] != "load"
    ]


@pytest.mark.parametrize("budget", [0, 10**9])
def test_a_program_that_reads_what_it_did_not_load_is_a_mismatch(case, monkeypatch, budget):
    monkeypatch.setattr(on_machine, "BUDGET", budget)
    folder, _, _, body = case
    for written in body["programs"].values():
        path = folder / written["file"]
        program = json.loads(path.read_text())
        path.write_text(pretty({**program, "body": without_loads(program["body"])}))
    outcome, _ = run(case)
    assert outcome.report["verdict"] == "mismatch"
    assert "is wrong on the tile machine: " in str(outcome.failure)


@pytest.mark.parametrize("content", [None, "{", "{}"])
def test_missing_and_damaged_programs(case, content):
    folder, _, _, body = case
    path = folder / next(iter(body["programs"].values()))["file"]
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    with pytest.raises(ArtifactError):
        run(case)


@pytest.mark.feature("W07")
def test_planned_bytes_are_the_counted_ones(case):
    outcome, _ = run(case)
    for group in outcome.report["traffic"].values():
        planned = {level: both for level, both in group["planned"].items() if any(both)}
        assert planned == {level: both for level, both in group["counted"].items() if any(both)}


def test_work_grows_with_the_number_of_tiles(tmp_path):
    model, plan = planned(tmp_path, "a100")
    body = generated(plan, tmp_path, "a100").body
    cases = cases_of(plan, OPTIONS, model)
    steps = on_machine._steps(cases[0], read_programs(tmp_path, body), body, tmp_path, on_machine.TileMachine())
    for step in steps:
        assert step.cost >= on_machine.STATEMENT * len(step.program.body)
        assert step.cost == on_machine.work(step.group, step.program)
