"""The run for a lent card without one: cases are told, restored from their plans and checked in the emulator."""

import json
import sys
import time

import numpy as np
import onnx
import pytest

from tests.emulator.kernels import needs_compiler
from tests.on_gpu import cases as listed
from tests.on_gpu import prepare, restore, run, supervise
from tests.on_gpu.anchors import _in_turns
from tests.on_gpu.card import Card, LostDeviceError
from tests.on_gpu.case import Case, feeds_of
from tests.on_gpu.cases import cases
from tests.on_gpu.correct import is_wrong
from tests.on_gpu.counters import counted
from tests.on_gpu.supervise import run_step
from tests.on_gpu.tables import classes
from tilec.errors import UnavailableError

SMALL = Case(
    "small-f32",
    "GEMM",
    "f32",
    "(T[16, 32] x) => (T[16, 24] y) { p = MatMul(x, w) y = Softmax(p) }",
    {"w": (32, 24)},
)


def test_every_case_has_a_name_of_its_own_and_kernels_a_reference():
    every = cases()
    assert len({case.name for case in every}) == len(every)
    assert all(case.zoo or case.reference for case in every)
    assert [case.name for case in cases(["gemv", "f32"])] == ["gemv-1x2048x5632-f32"]


def test_models_are_the_same_bytes_whenever_they_are_built():
    (case,) = cases(["w4-1x"])
    model = case.model()
    onnx.checker.check_model(model)
    assert model.SerializeToString(deterministic=True) == case.model().SerializeToString(deterministic=True)
    assert {each.name for each in model.graph.initializer} == {"w", "s"}
    (x,) = feeds_of(model, 0).values()
    assert (x.dtype, x.shape) == (np.float16, (1, 4096))


def test_the_reference_of_a_case_of_few_bits_has_its_weights_as_they_are_rounded():
    case = Case("c", "few bits", "f16", "", {"w": (256, 8)}, form="i4[128]*f16")
    before, after = (each["w"].astype(np.float32) for each in (case.constants(), case.operands()))
    largest = np.abs(before.reshape(2, 128, 8)).max(1).repeat(128, 0)
    assert np.abs(before - after).max() > 0
    assert (np.abs(before - after) <= 0.51 * largest / 7).all()


def test_one_of_every_family_is_timed_before_a_second():
    kernels = [case for case in cases() if not case.zoo]
    families = {case.family for case in kernels}
    assert {case.family for case in _in_turns(kernels)[: len(families)]} == families


def test_the_list_has_steps_and_cases(capsys):
    assert run.main(["nowhere", "softmax", "--list"]) == 0
    told = capsys.readouterr().out.split("\n")
    steps = [f"step {step}" for step in (*run.STEPS, run.PEERS)]
    assert told[: len(steps)] == steps
    assert "softmax-12288x512-f32" in told


@needs_compiler
def test_a_case_is_restored_from_its_plan_and_checked_in_the_emulator(tmp_path, monkeypatch):
    monkeypatch.setattr(listed, "anchors", lambda: [SMALL])
    plans, work, out = tmp_path / "plans", tmp_path / "work", tmp_path / "out"
    assert prepare.main([str(plans), "small"]) == 0
    assert restore.main("small-f32", plans, work) == 0
    told = json.loads((work / "small-f32.json").read_text())
    assert (told["how"], told["error"]) == ("restored", "")
    common = [str(plans), "small", "--out", str(out), "--work", str(work), "--emulator"]
    for step in run.STEPS:
        assert run.main([*common, "--child", step]) == 0
    (result,) = json.loads((out / "correct.json").read_text()).values()
    assert (result["reference"], result["right"], result["repeats"]) == ("onnxruntime", True, True)


@pytest.mark.parametrize("told", [{"error": "x"}, {"error": "", "right": False}, {"error": "", "repeats": False}])
def test_what_is_wrong(told):
    assert is_wrong(told)
    assert not is_wrong({"error": "", "right": True, "repeats": True})


def test_a_step_goes_on_behind_a_case_that_hangs(tmp_path, monkeypatch):
    monkeypatch.setattr(supervise, "PATIENCE", 0.5)
    card = Card(tmp_path / "out", tmp_path / "work", [], time.monotonic() + 60)
    hang = "import sys, time, pathlib; once = pathlib.Path(sys.argv[1]); first = not once.exists()"
    hang += "; once.touch(); first and (once.with_name('doing').write_text('stuck'), time.sleep(60))"
    run_step(card, "step", [sys.executable, "-c", hang, str(card.work / "once")])
    assert card.found("step") == {"stuck": {"error": "it hangs"}}


def test_an_error_of_the_device_ends_the_process_of_its_step(tmp_path):
    card = Card(tmp_path, tmp_path / "work", [], 0.0)
    card.failed("step", "a", ValueError("odd"))
    with pytest.raises(LostDeviceError):
        card.failed("step", "b", UnavailableError("the GPU's driver refuses"))
    assert list(json.loads((tmp_path / "step.json").read_text())) == ["a", "b"]


def test_what_nsight_compute_prints_is_kept_by_kernel():
    text = """==PROF== Connected
"ID","Kernel Name","gpu__time_duration.sum","sm__warps_active.avg.pct_of_peak_sustained_active","other"
"","","ns","%",""
"0","tilec_a","1,200","24.5","7"
"1","tilec_b","0","3",""
"""
    assert dict(counted(text)) == {
        "tilec_a": {
            "gpu__time_duration.sum": "1,200 ns",
            "sm__warps_active.avg.pct_of_peak_sustained_active": "24.5 %",
        },
        "tilec_b": {"sm__warps_active.avg.pct_of_peak_sustained_active": "3 %"},
    }
    assert dict(counted("==ERROR== none")) == {}


def test_classes_are_geometric_means_of_their_kernels():
    def told(family, warm, peer):
        times = {"warm": {"us": warm}, "cold": {"us": 2 * warm}}
        return {"family": family, "predicted_us": 4.0, **times, "peer": {"warm": {"us": peer}, "cold": {"us": peer}}}

    _, _, norm, every = classes({"a": told("norm", 2.0, 8.0), "b": told("norm", 8.0, 8.0)})
    assert norm[1:] == (2, "1.00", "2.00", "2.00", "2.00", "1.00")
    assert every[0] == "all"
