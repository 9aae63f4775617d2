"""Verifying GPU kernels in the emulator: verdicts, races by name, sectors, and what is refused."""

import pytest

from tests.emulator.kernels import emulator_cache, needs_compiler
from tests.emulator.printed import with_kernels
from tilec.cli.summary import verified_line, verify_details
from tilec.errors import UnavailableError, UsageError
from tilec.spec.recipe import VerifyOptions
from tilec.verify import on_emulator, on_machine
from tilec.verify.on_emulator import kernel_text
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


def run(case, change=lambda text: text, options=OPTIONS, body=None):
    folder, model, plan, own = case
    body = with_kernels(folder, body or own, change)
    return verify(folder, plan, body, model, options, because=NO_GPU)


@needs_compiler
def test_kernels_are_compared_with_the_model_and_counted(case):
    outcome = run(case)
    report = outcome.report
    assert outcome.failure is None
    assert (report["verdict"], report["verified_on"], report["groups"]) == (
        "pass",
        "emulator",
        {"total": 2, "verified": 2},
    )
    assert verified_line(report) == "verified on: emulator (a100 kernels written for sm_80, not run on a GPU)"
    kernels = report["kernels"]
    assert len(kernels) == 2
    first = kernels[next(name for name in kernels if "relu" in name)]
    operands = 4 * (4 * 16 + 16 * 32 + 32)  # bytes of x, w1, b1
    assert first["sectors"]["read"]["counted"] == first["sectors"]["read"]["ideal"] == operands // 32
    assert first["sectors"]["write"] == {"counted": 16, "ideal": 16, "planned": 16}
    assert first["wavefronts"]["counted"] >= first["wavefronts"]["ideal"] > 0
    assert "needless_barriers" not in first
    line = next(line for line in verify_details(report, {}) if "relu" in line)
    read, shared = first["sectors"]["read"], first["wavefronts"]
    assert line.endswith(
        f"{operands // 32} sectors read ({read['planned']} planned, {operands // 32} at least), "
        f"16 written (16 planned, 16 at least), {shared['counted']} wavefronts ({shared['ideal']} at least)"
    )


@needs_compiler
def test_a_dropped_barrier_is_a_mismatch_with_kernel_buffer_and_lines(case):
    outcome = run(case, lambda text: text.replace("t_barrier();", "", 1))
    assert outcome.report["verdict"] == "mismatch"
    said = str(outcome.failure)
    assert "is wrong on the emulator" in said
    assert "race on s_p0: the shared read in line" in said
    assert "and the shared write in line" in said
    assert said.endswith("at kernels.cu: kernel_0")


@needs_compiler
def test_wrong_numbers_and_needless_barriers_are_told(case):
    folder, _, plan, _ = case
    wrong = generated(doubled(plan, "h2"), folder, "a100").body
    outcome = run(case, body=wrong)
    assert outcome.report["verdict"] == "mismatch"
    assert "group h2 (first, bias and 1 more) is wrong on the emulator" in str(outcome.failure)
    generated(plan, folder, "a100")
    more = run(case, lambda text: text.replace("const int tid = tid_;", "const int tid = tid_; t_barrier();"))
    assert more.failure is None
    assert all(len(kernel["needless_barriers"]) == 1 for kernel in more.report["kernels"].values())


@needs_compiler
def test_beyond_the_budget_every_kernel_is_judged_by_a_part(case, monkeypatch):
    monkeypatch.setattr(on_machine, "BUDGET", 300)
    monkeypatch.setattr(on_emulator, "PART", 1)
    outcome = run(case)
    assert outcome.failure is None
    assert outcome.report["groups"]["verified"] >= 1
    assert "outputs" not in outcome.report


def test_the_user_chooses_and_nothing_says_that_a_gpu_ran(case, monkeypatch):
    on_tiles = run(case, options=VerifyOptions(on="machine"))
    assert verified_line(on_tiles.report) == f"verified on: tile machine ({NO_GPU})"
    with pytest.raises(UnavailableError, match=NO_GPU):
        run(case, options=VerifyOptions(on="host"))
    folder, model, plan, body = case
    with pytest.raises(UsageError, match="no kernels of a GPU"):
        without = {key: value for key, value in body.items() if key != "runtime"}
        verify(folder, plan, without, model, VerifyOptions(on="emulator"), because=NO_GPU)
    monkeypatch.setattr("tilec.emulator.compiler", lambda: None)
    monkeypatch.setattr(on_emulator, "compiler", lambda: None)
    assert run(case).report["verified_on"] == "tile machine"
    with pytest.raises(UnavailableError, match="no C"):
        run(case, options=VerifyOptions(on="emulator"))


def test_the_text_of_one_kernel_keeps_its_lines():
    text = '#include "tile.h"\nT_KERNEL void a(int n) {\n}\nT_KERNEL void ab(int n) {\n}\n'
    assert kernel_text(text, "ab").splitlines() == [
        '#include "tile.h"', "", "", 'T_KERNEL void ab(int n) {', "}",
    ]  # fmt: skip
    assert kernel_text(text, "a").splitlines()[3:] == ["", ""]
