"""Verifying GPU kernels in the emulator: verdicts, races by name, sectors, launches, and what is refused."""

import json
import shutil

import pytest

from tests.emulator.kernels import emulator_cache, needs_compiler
from tilec.cli.summary import verified_line, verify_details
from tilec.emulator.build import kernel_text
from tilec.errors import UnavailableError, UsageError
from tilec.spec.recipe import VerifyOptions
from tilec.verify import on_emulator, on_machine
from tilec.verify.stage import verify
from verify.builds import OPTIONS, doubled, generated, planned

NO_GPU = "no GPU here"


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    folder = tmp_path_factory.mktemp("emulated")
    model, plan = planned(folder, "a100")
    return folder, model, plan, generated(plan, folder, "a100").body


@pytest.fixture(autouse=True, scope="module")
def _cache():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_emulator, "emulator_cache", emulator_cache)
        yield


def run(case, options=OPTIONS):
    folder, model, plan, body = case
    return verify(folder, plan, body, model, options, because=NO_GPU)


def changed(case, folder, change, body=lambda body: None):
    """The case in another folder, with faults in the text of its kernels or in their data."""
    shutil.copytree(case[0], folder, dirs_exist_ok=True)
    text = folder / "kernels.cu"
    text.write_text(change(text.read_text()))
    data = json.loads(json.dumps(case[3]))
    body(data["runtime"]["gpu"])
    return folder, folder / case[1].name, case[2], data


@needs_compiler
def test_kernels_are_compared_with_the_model_and_counted(case):
    report = run(case).report
    assert (report["verdict"], report["verified_on"]) == ("pass", "emulator")
    assert report["groups"] == {"total": 2, "verified": 2}
    made = "compiled" if "binary" in case[3]["runtime"]["gpu"] else "written"
    assert verified_line(report) == f"verified on: emulator (a100 kernels {made} for sm_80, not run on a GPU)"
    first = next(kernel for name, kernel in report["kernels"].items() if "relu" in name)
    read, shared = first["sectors"]["read"], first["wavefronts"]
    assert read["planned"] <= read["ideal"] <= read["counted"] <= 2 * read["planned"]
    assert shared["counted"] >= shared["ideal"] > 0
    line = next(line for line in verify_details(report, {}) if "relu" in line)
    assert f": {read['counted']} sectors read ({read['planned']} planned, {read['ideal']} at least), " in line
    assert f"{shared['counted']} wavefronts ({shared['ideal']} at least)" in line


@needs_compiler
def test_a_dropped_barrier_is_a_mismatch_with_kernel_buffer_and_lines(case, tmp_path):
    outcome = run(changed(case, tmp_path, lambda text: text.replace("t_barrier();", "", 1)))
    assert outcome.report["verdict"] == "mismatch"
    said = str(outcome.failure)
    assert "is wrong on the emulator: race on " in said
    assert "the shared write in line" in said
    assert "at kernels.cu: tilec_matmul" in said


@needs_compiler
def test_needless_barriers_are_told(case, tmp_path):
    tid = "const int tid = tid_;"
    outcome = run(changed(case, tmp_path, lambda text: text.replace(tid, f"{tid} t_barrier();")))
    assert outcome.failure is None
    plain = run(case).report["kernels"]
    for name, kernel in outcome.report["kernels"].items():
        assert len(kernel["needless_barriers"]) == 1 + len(plain[name].get("needless_barriers", ()))


@needs_compiler
def test_wrong_numbers_and_wrong_launches_are_told(case, tmp_path):
    folder, model, plan, _ = case
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    body = generated(doubled(plan, "h2"), tmp_path, "a100").body
    outcome = run((tmp_path, model, plan, body))
    assert outcome.report["verdict"] == "mismatch"
    assert "group h2 (first, bias and 1 more) is wrong on the emulator" in str(outcome.failure)

    def other_place(gpu):
        argument = next(a for launch in gpu["launches"] for a in launch["arguments"] if a["space"] == "constant")
        argument["offset"] += 4

    outcome = run(changed(case, tmp_path / "moved", lambda text: text, other_place))
    assert outcome.report["verdict"] == "mismatch"
    assert "launches" in str(outcome.failure)


@needs_compiler
def test_beyond_the_budget_every_kernel_is_judged_by_a_part(case, monkeypatch):
    monkeypatch.setattr(on_machine, "BUDGET", 300)
    monkeypatch.setattr(on_emulator, "PART", 1)
    monkeypatch.setattr(on_emulator, "FEWEST", 2)
    outcome = run(case)
    assert outcome.failure is None
    assert outcome.report["groups"]["verified"] >= 1
    assert "outputs" not in outcome.report
    assert any(kernel.get("blocks", [0])[0] == 2 for kernel in outcome.report["kernels"].values())


def test_the_user_chooses_and_nothing_says_that_a_gpu_ran(case, monkeypatch):
    on_tiles = run(case, VerifyOptions(on="machine"))
    assert verified_line(on_tiles.report) == f"verified on: tile machine ({NO_GPU})"
    with pytest.raises(UnavailableError, match=NO_GPU):
        run(case, VerifyOptions(on="host"))
    folder, model, plan, body = case
    plain = {name: value for name, value in body.items() if name != "runtime"}
    with pytest.raises(UsageError, match="no kernels of a GPU"):
        verify(folder, plan, plain, model, VerifyOptions(on="emulator"), because=NO_GPU)
    monkeypatch.setattr("tilec.emulator.compiler", lambda: None)
    monkeypatch.setattr(on_emulator, "compiler", lambda: None)
    assert run(case).report["verified_on"] == "tile machine"
    with pytest.raises(UnavailableError, match="no C"):
        run(case, VerifyOptions(on="emulator"))


def test_the_text_of_one_kernel_keeps_its_lines():
    text = '#include "tile.h"\nT_KERNEL void a(int n) {\n}\nT_KERNEL void ab(int n) {\n}\n'
    assert kernel_text(text, "ab").splitlines() == ['#include "tile.h"', "", "", "T_KERNEL void ab(int n) {", "}"]
    assert kernel_text(text, "a").splitlines()[3:] == ["", ""]
