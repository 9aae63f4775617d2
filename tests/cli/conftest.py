"""Running the command line in this process, in a folder of its own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli import models
from tests.warm import warm_processes  # noqa: F401
from tilec.cli import app
from tilec.spec.probe import probed_text


@dataclass
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs `tilec ARGUMENTS` in `tmp_path`; returns exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("TILEC_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TILEC_PROGRESS", "0")

    def run(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["tilec", *map(str, arguments)])
        capfd.readouterr()
        code = 0
        try:
            app.run()
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else 1
        out, err = capfd.readouterr()
        return Ran(code, out, err)

    return run


@pytest.fixture
def listing(tmp_path: Path) -> Callable[[], dict[str, bytes | None]]:
    """What lies in `tmp_path`: every file with its bytes, every folder."""

    def look() -> dict[str, bytes | None]:
        return {
            str(path.relative_to(tmp_path)): path.read_bytes() if path.is_file() else None
            for path in sorted(tmp_path.rglob("*"))
        }

    return look


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """A folder with a model that was compiled for this machine, once for all tests; never changed."""
    folder = tmp_path_factory.mktemp("compiled")
    models.mlp(folder / "model.onnx")
    probed_text()  # the first use of `host` measures it, and may have something to say
    command = [sys.executable, "-m", "tilec", "compile", "model.onnx", "--device", "host"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return folder, ran


@pytest.fixture
def build(compiled, tmp_path):
    """A copy of it in `tmp_path`: model.onnx and model.tilec."""
    shutil.copytree(compiled[0], tmp_path, symlinks=True, dirs_exist_ok=True)
    return tmp_path / "model.tilec"
