"""With one device file, artifacts and kernel text are the same bytes however, wherever and how often they are made."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from acceptance.building import ENVIRONMENT, contents, stage, tilec
from acceptance.miniatures import miniature

NAME = "llama-layer-decode"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A folder with a model, and a build folder made by `compile` for this machine; never changed."""
    folder = tmp_path_factory.mktemp("made")
    miniature(NAME, "decomposed", folder)
    tilec("compile", "model.onnx", "--device", "host", "-o", "build", folder=folder)
    return folder


@pytest.fixture
def place(made, tmp_path) -> Path:
    """Another folder with the model and the device file."""
    shutil.copy(made / "model.onnx", tmp_path)
    shutil.copy(made / "build" / "device.yaml", tmp_path / "device.yaml")
    return tmp_path


@pytest.mark.slow
def test_four_stages_one_by_one_make_the_same_bytes(made, place):
    stage("import", "model.onnx", "-o", "g.json", folder=place)
    stage("schedule", "g.json", "--device", "device.yaml", "-o", "p.json", folder=place)
    stage("codegen", "p.json", "--device", "device.yaml", "-o", "out", folder=place)
    stage("verify", "out", folder=place)
    (place / "g.json").rename(place / "out" / "1-graph.json")
    assert contents(place / "out") == contents(made / "build")


ALONE = ("again", "an empty cache", "no AVX-512", "another hash seed", "C locale", "no compiler or linker")
"""What is changed about the process; all at once in every run, one after another in the slow tests."""


@pytest.mark.parametrize("environment", ["all", *(pytest.param(each, marks=pytest.mark.slow) for each in ALONE)])
def test_compile_makes_the_same_bytes(made, place, environment):
    each = {
        "again": {},
        "an empty cache": {"XDG_CACHE_HOME": str(place / "cache")},
        "no AVX-512": {"NPY_DISABLE_CPU_FEATURES": avx512()},
        "another hash seed": {"PYTHONHASHSEED": "123"},
        "no compiler or linker": {"PATH": str(place / "bin")},
        "C locale": {"LC_ALL": "C", "TZ": "Asia/Kathmandu", "PYTHONUTF8": "0"},
    }
    changed = {k: v for name in (ALONE if environment == "all" else [environment]) for k, v in each[name].items()}
    ran = tilec("compile", "model.onnx", "--device", "device.yaml", "-o", "out", folder=place, **changed)
    assert "skipped" not in ran.stderr
    assert contents(place / "out") == contents(made / "build")


def avx512() -> str:
    """The vector extensions beyond AVX2 that NumPy found and can leave out."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    found = [name for name in __cpu_dispatch__ if __cpu_features__[name]]
    return " ".join(name for name in found if "AVX512" in name or name == "X86_V4")


def test_a_fresh_build_is_skipped_stage_by_stage_and_says_so(made, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(made, folder, symlinks=True)
    before = contents(folder / "build")
    ran = tilec("compile", "model.onnx", "--device", "host", "-o", "build", folder=folder)
    said = ran.stderr.splitlines()[:4]
    assert said == [f"{stage}: unchanged, skipped" for stage in ("import", "schedule", "codegen", "verify")]
    assert contents(folder / "build") == before


@pytest.mark.slow
def test_make_builds_stage_by_stage_and_does_nothing_the_second_time(made, tmp_path):
    root = Path(__file__).parents[2]
    shutil.copy(root / "recipes" / "Makefile.example", tmp_path / "Makefile")
    miniature("nerf-mlp", "decomposed", tmp_path)
    device = made / "build" / "device.yaml"
    stage("compile", "model.onnx", "--device", device, "-o", "same", folder=tmp_path)
    command = ["make", f"TILEC={sys.executable} -m tilec", f"DEVICE={device}"]

    def make():
        return subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=True)

    def started(ran):
        return [line.split(" -m tilec ")[1].split()[0] for line in ran.stdout.splitlines() if " -m tilec " in line]

    assert started(make()) == ["import", "schedule", "codegen", "verify"]
    build = tmp_path / "model.tilec"
    before = {path: os.stat(path).st_mtime_ns for path in build.iterdir()}
    assert contents(build) == contents(tmp_path / "same")
    assert "Nothing to be done" in make().stdout
    assert {path: os.stat(path).st_mtime_ns for path in build.iterdir()} == before
    os.utime(build / "2-plan.json")
    assert started(make()) == ["codegen", "verify"]
