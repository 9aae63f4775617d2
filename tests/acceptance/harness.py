"""Compiling models as a user does, in processes of their own, and what must hold afterwards."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

ERROR = 1e-4
"""Largest |a - b| / max|a| of an output."""


def tilec(*arguments: object, cwd: Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line; the test fails with its messages when it does."""
    command = [sys.executable, "-m", "tilec", *map(str, arguments)]
    ran = subprocess.run(command, cwd=cwd, env={**ENVIRONMENT, **(env or {})}, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran


def compile_and_check(model: Path, *flags: object) -> Path:
    """Compile for this machine: every node compiled, and both draws within `ERROR`. Returns the build folder."""
    build = model.with_suffix(".tilec")
    ran = tilec("compile", model.name, "--device", "host", "-o", build.name, *flags, cwd=model.parent)
    assert "verified on: host" in ran.stderr
    placement = json.loads((build / "2-plan.json").read_text())["placement"]
    assert placement["compiled"] == placement["total"] > 0
    draws = json.loads((build / "run.json").read_text())["draws"]
    assert [draw["mean"] for draw in draws] == [0.0, 3.0]
    for draw in draws:
        assert draw["errors"]
        for output, error in draw["errors"].items():
            assert isinstance(error, float), (output, error)
            assert error <= ERROR, (output, error)
    return build


def artifacts(build: Path) -> dict[str, bytes]:
    """What the promise of equal bytes covers: artifacts and the text of kernels."""
    files = [*sorted(build.glob("[1-4]-*.json")), *sorted(build.glob("programs/*"))]
    return {str(path.relative_to(build)): path.read_bytes() for path in files}
