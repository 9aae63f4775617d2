"""The example makefile runs the four stages in order, and nothing the second time."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "recipes" / "Makefile.example"

STUB = """#!/bin/sh
echo "$@" >> log
case $1 in
  import|schedule) while [ "$1" != -o ]; do shift; done; mkdir -p "$(dirname "$2")"; touch "$2" ;;
  codegen) touch "$(dirname "$2")/3-kernels.json" ;;
  verify) touch "$2/4-report.json" ;;
esac
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(EXAMPLE, tmp_path / "Makefile")
    (tmp_path / "stub").write_text(STUB)
    (tmp_path / "stub").chmod(0o755)
    (tmp_path / "a.onnx").touch()
    (tmp_path / "b.onnx").touch()
    return tmp_path


def make(folder: Path, *settings: str) -> list[str]:
    """The stages that one run of make started."""
    (folder / "log").write_text("")
    subprocess.run(["make", "-s", "TILEC=./stub", *settings], cwd=folder, check=True)
    return [line.split()[0] for line in (folder / "log").read_text().splitlines()]


def test_stages_in_order_then_nothing(folder: Path) -> None:
    assert make(folder) == ["import", "schedule", "codegen", "verify"] * 2
    assert make(folder) == []


def test_an_edited_plan_runs_what_follows(folder: Path) -> None:
    make(folder)
    plan = folder / "a.tilec" / "2-plan.json"
    newest = max(path.stat().st_mtime_ns for path in folder.rglob("*"))
    os.utime(plan, ns=(newest + 10**9, newest + 10**9))
    (folder / "stub").write_text(STUB.replace("touch", "touch -d '+1 hour'"))
    assert make(folder) == ["codegen", "verify"]


def test_a_changed_device_or_recipe_runs_all(folder: Path) -> None:
    stages = ["import", "schedule", "codegen", "verify"] * 2
    (folder / "mine.yaml").write_text("name: mine\n")
    assert make(folder) == stages
    assert make(folder, "DEVICE=mine.yaml") == stages
    assert make(folder, "DEVICE=mine.yaml") == []
    assert make(folder, "DEVICE=mine.yaml", "RECIPE=none") == stages
    newest = max(path.stat().st_mtime_ns for path in folder.rglob("*"))
    os.utime(folder / "mine.yaml", ns=(newest + 10**9, newest + 10**9))
    assert make(folder, "DEVICE=mine.yaml", "RECIPE=none")[:1] == ["import"]
