"""Verifying models with symbols: samples on the host and on the tile machine, what the report says of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from cli.models import save, value
from onnx import helper

from tilec.artifact import digest_file, pretty
from tilec.errors import TilecError, UsageError
from tilec.importer import import_model
from tilec.ir.bind_plan import complete_sizes
from tilec.ir.plan import Plan
from tilec.ir.restrict import restricted
from tilec.ir.sizes import Constraint, SymbolRange
from tilec.ir.text import parse_expr
from tilec.ir.verify.program import check_program
from tilec.progress import unseen
from tilec.scheduler import schedule
from tilec.spec.recipe import ScheduleOptions, VerifyOptions
from tilec.spec.resolve import resolve_device
from tilec.verify import cases, on_machine, references, sized_checks
from tilec.verify.cases import cases_of, nearest_case
from tilec.verify.native import verify_native
from tilec.verify.outcome import Outcome
from tilec.verify.reported_sizes import reported_symbols
from tilec.verify.stage import verify
from verify.builds import OPTIONS, generated, planned_for_sizes, wrong_from
from verify.here import in_this_process

RANGE = SymbolRange(0, 200, likely=(40,))
Built = tuple[Path, Path, Plan, Mapping[str, Any]]


@pytest.fixture(scope="module", params=["host", "a100"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp(request.param)
    model, plan = planned_for_sizes(folder, request.param, batch=RANGE)
    return folder, model, plan, generated(plan, folder, request.param).body


def run(built: Built, options: VerifyOptions = OPTIONS) -> Outcome:
    folder, model, plan, body = built
    with in_this_process():
        because = "no a100 here" if plan.device == "a100" else None
        return verify(folder, plan, body, model, options, because=because)


@pytest.mark.slow_cases("a100")
@pytest.mark.feature("B08")
def test_every_sample_and_every_variant_runs(built: Built) -> None:
    _, _, plan, _ = built
    outcome = run(built)
    report = outcome.report
    assert outcome.failure is None
    assert report["verdict"] == "pass"
    sizes = [sample["sizes"]["batch"] for sample in report["samples"]]
    assert sizes[0] == 40
    assert {0, 1, 40, 200} <= set(sizes)
    assert all(set(sample["outputs"]) == {"y"} for sample in report["samples"])
    assert report["samples"][sizes.index(0)]["outputs"] == {"y": "exact"}
    assert report["outputs"]["y"]["verdict"] in ("exact", "within rounding")
    assert report["groups"] == {"total": len(plan.groups), "verified": len(plan.groups)}
    for group in plan.groups:
        variants = report["variants"][group.name]
        assert [each["kernel"] for each in variants] == [each.kernel for each in group.variants]
        assert sorted(n for each in variants for n in each["samples"]) == list(range(len(sizes)))
        assert all(each["samples"] for each in variants)
    assert report["programs"]["followed"] == report["programs"]["total"] > 0
    assert [draw["sizes"]["batch"] for draw in outcome.run["draws"]] == sizes


def test_the_report_is_the_same_again(built: Built) -> None:
    assert run(built).report == run(built).report


def test_named_sizes_take_the_place_of_samples(built: Built) -> None:
    outcome = run(built, replace_options(sizes=({"batch": 17}, {})))
    assert [sample["sizes"] for sample in outcome.report["samples"]] == [{"batch": 17}, {"batch": 40}]
    assert outcome.failure is None
    for given, message in (({"bath": 3}, "Did you mean 'batch'"), ({"batch": 201}, "batch=201 is none of 0..200")):
        with pytest.raises(UsageError, match=message):
            run(built, replace_options(sizes=(given,)))


def test_a_file_of_inputs_has_its_sizes(built: Built, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.ones((7, 16), np.float32))
    outcome = run(built, replace_options(inputs=str(tmp_path / "in.npz")))
    assert outcome.failure is None
    assert [sample["sizes"] for sample in outcome.report["samples"]] == [{"batch": 7}]
    np.savez(tmp_path / "in.npz", x=np.ones((300, 16), np.float32))
    with pytest.raises(UsageError, match=r"in.npz: batch=300 is none of 0..200"):
        run(built, replace_options(inputs=str(tmp_path / "in.npz")))


def replace_options(**options: Any) -> VerifyOptions:
    return VerifyOptions.model_validate({**OPTIONS.model_dump(), **options})


@pytest.mark.slow_cases("False-host", "True-host")
@pytest.mark.feature("B08")
@pytest.mark.parametrize("device", ["host", "a100"])
@pytest.mark.parametrize("per_group", [False, True])
def test_what_is_wrong_at_some_sizes_only_is_found_there(tmp_path: Path, device: str, per_group: bool) -> None:
    model, plan = planned_for_sizes(tmp_path, device, batch=RANGE)
    body = generated(wrong_from(plan, "y", "batch", 150), tmp_path, device).body
    outcome = run((tmp_path, model, plan, body), replace_options(per_group=per_group))
    assert outcome.report["verdict"] == "mismatch"
    assert outcome.report["outputs"]["y"]["verdict"] == "mismatch"
    wrong = {s["sizes"]["batch"] for s in outcome.report["samples"] if s["outputs"]["y"] == "mismatch"}
    assert wrong == {s["sizes"]["batch"] for s in outcome.report["samples"] if s["sizes"]["batch"] >= 150} != set()
    diverging = outcome.report["diverging"]
    assert (diverging["group"], diverging["sizes"]["batch"] >= 150) == ("y", True)
    assert f" at batch={diverging['sizes']['batch']}: " in str(outcome.failure)


def test_beyond_the_budget_each_kernel_runs_where_it_has_least_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, plan = planned_for_sizes(tmp_path, "a100", batch=RANGE)
    body = generated(plan, tmp_path, "a100").body
    monkeypatch.setattr(on_machine, "BUDGET", 10)
    monkeypatch.setattr(on_machine, "work", lambda group, program, sizes: sizes["batch"])
    outcome = run((tmp_path, model, plan, body))
    assert outcome.failure is None
    assert outcome.report["groups"]["verified"] >= 1
    ran = [each for variants in outcome.report["variants"].values() for each in variants if each["samples"]]
    assert ran
    assert all(sample["sizes"]["batch"] > 0 for sample in outcome.report["samples"])


def test_a_program_that_is_not_legal_at_a_size_is_a_mismatch(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    check = check_program

    def wrong(program: Any, shapes: Any, sizes: Any) -> tuple[str, ...]:
        return ("a read leaves its window",) if sizes.get("batch", 0) else check(program, shapes, sizes)

    monkeypatch.setattr(sized_checks, "check_program", wrong)
    outcome = run(built)
    assert outcome.report["verdict"] == "mismatch"
    assert "is not legal at batch=" in str(outcome.failure)
    assert "a read leaves its window" in str(outcome.failure)
    assert outcome.report["diverging"]["sizes"]["batch"] > 0


def test_a_program_that_leaves_out_a_load_is_found(tmp_path: Path) -> None:
    model, plan = planned_for_sizes(tmp_path, "a100", batch=RANGE)
    body = generated(plan, tmp_path, "a100").body
    written = next(iter(body["programs"].values()))
    data = json.loads((tmp_path / written["file"]).read_text())

    def without_loads(statements: list[Any]) -> list[Any]:
        inner = [{**s, "body": without_loads(s["body"])} if "body" in s else s for s in statements]
        return [s for s in inner if s["do"] != "load"]

    data["body"] = without_loads(data["body"])
    (tmp_path / written["file"]).write_text(pretty(data))
    outcome = run((tmp_path, model, plan, body), replace_options(on="machine"))
    assert outcome.report["verdict"] == "mismatch"
    assert "is wrong on the tile machine at batch=" in str(outcome.failure)
    assert outcome.report["diverging"]["sizes"]


def test_sizes_that_nothing_fulfils_are_not_verified(built: Built) -> None:
    folder, model, plan, body = built
    impossible = replace(plan, constraints=(Constraint(parse_expr("batch >= 300")),))
    outcome = run((folder, model, impossible, body))
    assert outcome.report["verdict"] == "unverified"
    assert "no sizes were found" in outcome.report["because"]


def indexed(folder: Path, index: str = "i") -> tuple[Path, Plan]:
    """Elements of x[b, n] that an input names."""
    ports = [value("x", "b", "n"), helper.make_tensor_value_info(index, onnx.TensorProto.INT64, ["k"])]
    node = helper.make_node("Gather", ["x", index], ["y"], axis=1)
    model = save(folder / "model.onnx", [node], ports, [value("y", "b", "k")])
    return model, schedule(import_model(model).graph, resolve_device("avx2"), ScheduleOptions())


def test_no_sample_has_nothing_that_an_index_could_name(tmp_path: Path) -> None:
    model, plan = indexed(tmp_path)
    sizes = [case.sizes for case in cases_of(plan, OPTIONS, model)]
    assert min(each["b"] for each in sizes) == min(each["k"] for each in sizes) == 0
    assert min(each["n"] for each in sizes) == 1


def test_a_loop_has_steps_whatever_expression_their_number_is(tmp_path: Path) -> None:
    """Steps of two columns each of x: at one column there are none."""
    weights = {"w": np.ones((1, 3, 4)), "r": np.ones((1, 3, 3)), "k": np.ones((4, 2, 2))}
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["c"], strides=[2], name="conv"),
        helper.make_node("Transpose", ["c"], ["s"], perm=[2, 0, 1]),
        helper.make_node("RNN", ["s", "w", "r"], ["", "y"], hidden_size=3),
    ]
    tensors = [onnx.numpy_helper.from_array(np.asarray(v, np.float32), n) for n, v in weights.items()]
    model = save(tmp_path / "model.onnx", nodes, [value("x", "n", 2, "t")], [value("y", 1, "n", 3)], tensors)
    plan = schedule(import_model(model).graph, resolve_device("avx2"), ScheduleOptions())
    anything = replace(plan, symbol_ranges={})
    assert any(call.loop for call in plan.calls)
    assert all(case.sizes["t"] >= 2 and case.sizes["n"] for case in cases_of(anything, OPTIONS, model))


def test_samples_fit_into_a_budget_of_memory_and_operations(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, model, plan, body = built
    assert max(case.sizes["batch"] for case in cases_of(plan, OPTIONS, model)) == 200
    most = 100 * 16 * 4 * cases.SAMPLES
    monkeypatch.setattr(cases, "MEMORY", most)  # x[batch, 16] and y[batch, 8]
    drawn = [case.sizes["batch"] for case in cases_of(plan, OPTIONS, model)]
    assert 40 in drawn
    assert max(drawn) * 24 * 4 * cases.SAMPLES <= most
    monkeypatch.setattr(cases, "MEMORY", 0)
    assert [case.sizes["batch"] for case in cases_of(plan, OPTIONS, model)] == [1]  # the least work
    monkeypatch.undo()
    assert run((folder, model, plan, body)).report["sampled_within"] == sized_checks.WITHIN


def test_inputs_that_the_compiled_model_refuses_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, plan = indexed(tmp_path)
    plan = replace(plan, constraints=())  # which ask for an element where there are indices
    body = generated(plan, tmp_path, "avx2").body
    monkeypatch.setattr(cases, "_drawable", lambda plan: plan)
    zeros = {"y": np.zeros((3, 2), np.float32)}
    monkeypatch.setattr(references.Reference, "attempted", lambda _self, _feeds: zeros)
    with in_this_process():
        outcome = verify_native(tmp_path, plan, body, model, replace_options(sizes=({"n": 0, "b": 3, "k": 2},)), unseen)
    assert outcome.report["verdict"] == "unverified"
    assert "index 0" in outcome.report["because"]
    assert "n=0" in outcome.report["because"]


def test_symbols_left_out_have_the_sizes_of_the_plan(built: Built) -> None:
    _, model, plan, _ = built
    assert complete_sizes(plan, {}) == {"batch": 40}
    sampled = cases_of(plan, OPTIONS, model)
    assert all(not case.plan.symbols for case in sampled)
    assert sampled[0].place == " at batch=40"
    assert sampled[2].feeds["x"].shape == (sampled[2].sizes["batch"], 16)
    static = replace(plan, symbols=(), symbol_ranges={})
    with pytest.raises(UsageError, match="Its sizes are fixed"):
        cases_of(static, replace_options(sizes=({"batch": 3},)), model)


def chosen_elements(folder: Path, device: str, *behind: onnx.NodeProto) -> tuple[Path, Plan]:
    """y = exp(a) of the elements a of relu(x) that are not 0, or what nodes `behind` make of them: NonZero runs on
    onnxruntime."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("NonZero", ["a"], ["at"]),
        helper.make_node("Transpose", ["at"], ["rows"], perm=[1, 0]),
        helper.make_node("GatherND", ["a", "rows"], ["g"]),
        *(behind or (helper.make_node("Exp", ["g"], ["y"]),)),
    ]
    model = save(folder / "model.onnx", nodes, [value("x", "batch", 8)], [value("y", "k")])
    imported = import_model(model, fallback="allow")
    for name, pieces in imported.files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"".join(pieces))
    graph = restricted(imported.graph, {"batch": SymbolRange(0, 40)})
    plan = schedule(graph, resolve_device(device), ScheduleOptions())
    digests = {name: digest_file(folder / name) for name in imported.files}
    return model, replace(plan, files={**plan.files, **digests})


@pytest.mark.feature("B01", "B08")
@pytest.mark.parametrize("device", ["host", "a100"])
def test_sizes_that_depend_on_data_are_those_that_calls_report(tmp_path: Path, device: str) -> None:
    model, plan = chosen_elements(tmp_path, device)
    (reported,) = reported_symbols(plan)
    outcome = run((tmp_path, model, plan, generated(plan, tmp_path, device).body))
    assert outcome.failure is None
    counts = {sample["sizes"]["batch"]: sample["sizes"][reported] for sample in outcome.report["samples"]}
    assert counts[0] == 0
    assert all(0 < count <= 8 * batch for batch, count in counts.items() if batch)


@pytest.mark.feature("B01", "B08")
def test_samples_that_onnxruntime_cannot_run_are_left_out(tmp_path: Path) -> None:
    """Pairs of elements: their number must be even."""
    pairs = helper.make_node("Constant", [], ["pairs"], value_ints=[-1, 2])
    model, plan = chosen_elements(
        tmp_path,
        "host",
        pairs,
        helper.make_node("Reshape", ["g", "pairs"], ["two"]),
        helper.make_node("ReduceMax", ["two"], ["y"], keepdims=0),
    )
    (reported,) = reported_symbols(plan)
    with in_this_process():
        sampled = cases_of(plan, OPTIONS, model)
        assert sampled
        assert all(case.sizes[reported] % 2 == 0 for case in sampled)
        reasons = []
        for batch in range(1, 9):
            try:
                (case,) = cases_of(plan, replace_options(sizes=({"batch": batch},)), model)
                assert case.sizes[reported] % 2 == 0
            except TilecError as error:
                reasons.append(error.message)
        assert 0 < len(reasons) < 8
        assert all("onnxruntime cannot run the model" in reason for reason in reasons)


def test_a_model_is_timed_near_the_sizes_that_it_is_made_for(built: Built) -> None:
    _, model, plan, _ = built
    named = OPTIONS.model_copy(update={"sizes": tuple({"batch": size} for size in (0, 1, 200, 37))})
    assert nearest_case(plan, cases_of(plan, named, model)).sizes == {"batch": 37}
    assert nearest_case(plan, cases_of(plan, OPTIONS, model)).sizes == {"batch": 40}
    if plan.device == "host":
        assert run(built, named).run["latency_sizes"] == {"batch": 37}
