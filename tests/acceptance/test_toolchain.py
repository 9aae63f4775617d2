"""No compiler and no linker of the system is needed, and running needs no compiler at all."""

import subprocess
import sys

from cli.models import mlp

from acceptance.harness import ENVIRONMENT, compile_and_check, tilec


def test_compiles_and_verifies_with_nothing_on_path(tmp_path):
    mlp(tmp_path / "model.onnx")
    nothing = {"PATH": str(tmp_path), "CC": "/nowhere/cc", "CXX": "/nowhere/c++"}
    ran = tilec("compile", "model.onnx", "--device", "host", cwd=tmp_path, env=nothing)
    assert ran.stderr.splitlines()[-1] == "verified on: host"


def test_a_process_that_loads_and_runs_does_not_import_tvm_or_onnxruntime(tmp_path):
    build = compile_and_check(mlp(tmp_path / "model.onnx"))
    program = (
        "import sys, numpy as np, tilec\n"
        f"y = tilec.load({str(build)!r}).run({{'x': np.ones((4, 16), np.float32)}})['y']\n"
        "assert y.shape == (4, 8) and np.isfinite(y).all()\n"
        "print([name for name in ('tvm', 'onnx', 'onnxruntime', 'pydantic', 'typer') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout.strip()) == (0, "[]"), ran.stderr
