"""Import, schedule and the tile machine without what only POSIX has, without links and without TVM; the processors that
code is generated for; how paths are written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from tests.safety import seeds
from tilec.artifact.filenames import is_inside

FOREIGN = """
import os, signal, sys

for name in ("fcntl", "resource", "termios", "pwd", "grp", "tvm", "tvm_ffi", "tvm_ffi_orcjit"):
    sys.modules[name] = None
for name in (
    "fork", "forkpty", "register_at_fork", "sched_getaffinity", "sched_setaffinity", "getuid", "geteuid", "getgid",
    "getegid", "nice", "sysconf", "sysconf_names", "mkfifo", "setsid", "killpg", "getpgid", "wait4",
):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGKILL", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGPIPE", "SIGCHLD", "alarm", "setitimer"):
    if hasattr(signal, name):
        delattr(signal, name)

def forbidden(*arguments, **options):
    raise OSError(1314, "a required privilege is not held by the client")

os.symlink = os.link = forbidden
"""
"""What is missing on Windows, and the leave to make links; some of it is missing on macOS too."""

COMMAND = """
from tilec.cli.app import run
run()
"""

COMMANDS = """
from tilec.cli.app import run
for words in (line.split() for line in sys.argv[1:]):
    sys.argv[1:] = words
    try:
        run()
    except SystemExit as end:
        assert not end.code, words
"""

MACHINE = """
import json
from pathlib import Path
import numpy as np
from tilec.artifact import read_artifact
from tilec.ir.codec import plan_from_json
from tilec.ir.verify.program import check_program
from tilec.lower.lowering import lower
from tilec.machine import execute

plan = plan_from_json(read_artifact(Path("out/2-plan.json"), "plan").body)
shapes = {name: tensor.shape for name, tensor in plan.tensors.items()}
for group in plan.groups:
    program = lower(group, group.variants[0], plan)
    assert not check_program(program, shapes)
    inputs = {p.name: np.ones([e.value for e in p.shape], np.float32) for p in program.parameters}
    for name in program.outputs:
        inputs.pop(name)
    result = execute(program, inputs)
    assert all(np.isfinite(array).all() for array in result.outputs.values())
print(len(plan.groups))
"""


def child(folder: Path, code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUTF8": "0"}
    command = [sys.executable, "-c", FOREIGN + code, *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "model.onnx").write_bytes(_bound())
    return tmp_path


def _bound() -> bytes:
    model = seeds.mlp()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 4
    return model.SerializeToString()


@pytest.mark.slow_cases("neon")
@pytest.mark.parametrize("device", ["neon", "a100"])
def test_import_schedule_and_machine(folder: Path, device: str) -> None:
    commands = "import models/model.onnx -o out", f"schedule out --device {device}", "inspect out --json"
    ran = child(folder, COMMANDS + MACHINE, *commands)
    assert ran.returncode == 0, ran.stderr
    assert not (folder / "out" / "model.onnx").is_symlink()
    assert int(ran.stdout.splitlines()[-1]) >= 1


def test_code_for_a_cpu_needs_tvm_and_says_so(folder: Path) -> None:
    ran = child(folder, COMMAND, "compile", "models/model.onnx", "--device", "avx2", "-o", "out")
    assert ran.returncode == 6, ran.stderr
    assert "Install apache-tvm" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_the_same_bytes_as_with_everything(folder: Path) -> None:
    """What the system offers decides nothing."""
    ran = child(folder, COMMAND, "compile", "models/model.onnx", "--device", "neon", "--to", "schedule", "-o", "one")
    assert ran.returncode == 0, ran.stderr
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "tilec", "compile", "models/model.onnx", "--device", "neon", "--to", "schedule"]
    subprocess.run([*command, "-o", "two"], cwd=folder, env=environment, check=True, capture_output=True)
    for file in ("1-graph.json", "2-plan.json"):
        assert (folder / "one" / file).read_bytes() == (folder / "two" / file).read_bytes()
        assert b"\r" not in (folder / "one" / file).read_bytes()


def test_programs_for_a_gpu_are_written_and_run_without_tvm(folder: Path) -> None:
    ran = child(folder, COMMAND, "compile", "models/model.onnx", "--device", "a100", "--to", "codegen", "-o", "out")
    assert ran.returncode == 0, ran.stderr
    body = json.loads((folder / "out" / "3-kernels.json").read_text(encoding="utf-8"))
    for program in body["programs"].values():
        assert is_inside(program["file"])
        assert (folder / "out" / PurePosixPath(program["file"])).is_file()


@pytest.mark.parametrize("name", ["model.onnx", "a/b.bin", "weights-1.safetensors", "Ünïcode.onnx", "two words.bin"])
def test_names_that_every_system_reads_alike(name: str) -> None:
    assert is_inside(name)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "a/../../x", "/x", "//x", "\\x", "a\\b", "C:", "C:x", "c:/x", "a//b", "./a", "a/", "a\n"],
)
def test_names_that_lead_elsewhere(name: str) -> None:
    assert not is_inside(name)
