"""The CI example in a repository of its own: plans of a branch against those of main, lint, verification, clean."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from onnx import helper
from ruamel.yaml import YAML

from cli import models

CI = Path(__file__).parents[2] / "recipes" / "ci"
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("TILEC_", "GIT_"))} | {
    "PYTHONPATH": os.pathsep.join(sys.path),
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}
SLIM = "schedule: {bounds: false}\n"

pytestmark = pytest.mark.skipif(not shutil.which("make") or not shutil.which("git"), reason="needs make and git")


def product(path: Path, rows: int, apart: bool = False) -> None:
    """A product and a Relu; `apart`, the product's result is an output too, which moves more."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="product"),
        helper.make_node("Relu", ["h"], ["y"], name="relu"),
    ]
    outputs = [models.value("y", rows, 32)] + [models.value("h", rows, 32)] * apart
    models.save(path, nodes, [models.value("x", rows, 16)], outputs, [models.weight("w", 16, 32)])


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=n", "-c", "user.email=e@x"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, env=ENVIRONMENT, check=True, capture_output=True)


def commit(folder: Path, message: str) -> None:
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", message)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """On branch `change` of a repository whose main has the model `net`."""
    git(tmp_path, "init", "-q", "-b", "main")
    shutil.copytree(CI, tmp_path / "ci")
    (tmp_path / ".gitignore").write_text("out/\n")
    (tmp_path / "slim.yaml").write_text(SLIM)
    product(tmp_path / "models" / "net.onnx", 64)
    commit(tmp_path, "main")
    git(tmp_path, "checkout", "-q", "-b", "change")
    return tmp_path


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    tilec = f"TILEC={shlex.quote(sys.executable)} -m tilec"
    command = ["make", "-f", "ci/Makefile", "-s", tilec, "RECIPE=slim.yaml", "BASE=main", *arguments]
    return subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)


@pytest.mark.slow
def test_a_branch_is_compared_with_main(repository: Path) -> None:
    product(repository / "models" / "net.onnx", 64, apart=True)
    product(repository / "models" / "other.onnx", 8)
    commit(repository, "more outputs, another model")
    ran = make(repository, "diff")
    assert ran.returncode != 0
    assert "traffic@l3 grew by" in ran.stderr
    text = (repository / "out" / "plan.md").read_text()
    assert text == ran.stdout
    assert "### net\n\n**" in text
    assert "| traffic |" in text
    assert "### other\n\nA new model.\n" in text
    assert make(repository, "clean").returncode == 0
    assert not (repository / "out").exists()


@pytest.mark.slow
def test_no_change_a_change_of_the_recipe_and_wider_limits(repository: Path) -> None:
    ran = make(repository, "diff")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("### net\n\n**no changes: net on zen5-avx512")
    (repository / "slim.yaml").write_text(SLIM.replace("{", "{fusion: none, "))
    ran = make(repository, "diff")
    assert ran.returncode != 0
    for metric in ("time (picoseconds)", "traffic@l3", "groups"):  # main is planned with the recipe that it has
        assert f"{metric} grew by" in ran.stderr
    assert make(repository, "diff", "LIMITS=time=+500% traffic@all=+500% groups=+500%").returncode == 0


@pytest.mark.slow
def test_lint(repository: Path) -> None:
    assert make(repository, "lint").returncode == 0
    assert json.loads((repository / "out" / "lint.sarif").read_text())["version"] == "2.1.0"
    (repository / "slim.yaml").write_text("schedule: {fuson: full}\n")
    assert make(repository, "lint").returncode != 0


@pytest.mark.slow
def test_verify(repository: Path) -> None:
    ran = make(repository, "verify")
    assert ran.returncode == 0, ran.stderr
    suite = ElementTree.parse(repository / "out" / "junit" / "net.xml").find("testsuite")
    assert suite is not None
    assert (suite.get("failures"), suite.get("errors")) == ("0", "0")


def test_the_workflow_uses_targets_that_exist() -> None:
    workflow = YAML(typ="safe").load((CI / "workflow.yml").read_text())
    steps = workflow["jobs"]["plans"]["steps"]
    used = {step["run"].split()[3] for step in steps if step.get("run", "").startswith("make")}
    assert used == {"lint", "diff", "verify"}
    rules = (CI / "Makefile").read_text()
    assert all(f"\n{target}:" in rules for target in used)
    assert any("plan.md" in step.get("run", "") and step.get("if", "").startswith("always()") for step in steps)
