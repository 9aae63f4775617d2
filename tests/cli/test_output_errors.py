"""What cannot be written, and interruptions: message, exit code, nothing half-written."""

import errno
import os
import resource
import shlex
import signal
import subprocess
import sys

import pytest

from cli import models

TILEC = [sys.executable, "-m", "tilec"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture
def model(tmp_path):
    return models.mlp(tmp_path / "model.onnx")


def test_output_folder_is_a_file(cli, listing, model, tmp_path):
    (tmp_path / "build").write_text("mine")
    before = listing()
    ran = cli("import", "model.onnx", "-o", "build/inner")
    assert ran.code == 1
    assert "build/inner" in ran.err
    assert "Choose another folder" in " ".join(ran.err.split()) or "choose another folder" in ran.err
    assert listing() == before


def test_output_folder_that_nobody_may_write(cli, listing, model):
    before = listing()
    ran = cli("import", "model.onnx", "-o", "/proc/tilec")
    assert ran.code == 1
    assert "error: /proc" in ran.err
    assert listing() == before


def limit_files() -> None:
    """No file may grow beyond 1 KiB: the error of a full disk, at a chosen size."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))


def test_full_disk(listing, model, tmp_path):
    before = listing()
    ran = subprocess.run(
        [*TILEC, "import", "model.onnx", "-o", "a/b/build"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        preexec_fn=limit_files,
    )
    assert ran.returncode == 1
    assert ran.stderr.startswith("error: a/b/build: cannot write ")
    assert "Free some space" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert listing() == before


def test_full_standard_output(model, tmp_path):
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            [*TILEC, "import", "model.onnx", "-o", "-"],
            cwd=tmp_path,
            env=ENVIRONMENT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert ran.returncode == 1
    assert "error: cannot write to standard output: No space left on device" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert "Exception" not in ran.stderr


def test_closed_standard_output_ends_quietly(model, tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    ran = subprocess.run(
        [*TILEC, "device", "show", "a100"], env=ENVIRONMENT, stdout=writer, stderr=subprocess.PIPE, text=True
    )
    os.close(writer)
    assert ran.returncode == 1
    assert ran.stderr == ""


def test_ctrl_c_while_a_file_is_written(cli, listing, model, monkeypatch):
    def interrupt(_descriptor: int) -> None:
        raise KeyboardInterrupt

    before = listing()
    monkeypatch.setattr("tilec.artifact.store.os.fsync", interrupt)
    ran = cli("import", "model.onnx", "-o", "build")
    assert ran.code == 130
    assert ran.err.splitlines()[-1] == "error: interrupted"
    assert listing() == before


def test_ctrl_c_while_text_is_executed(model, tmp_path):
    """As `dataclass` does it; Python marks such an interrupt, and `python -m` ends by the signal if nothing unmarks."""
    (tmp_path / "late.py").write_text(
        "from tilec.artifact import store\n"
        "from tilec.cli import main\n"
        "store.os.fsync = lambda _descriptor: exec('raise KeyboardInterrupt')\n"
        "main()\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "late", "import", "model.onnx", "-o", "build"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stderr.splitlines()[-1]) == (130, "error: interrupted")


LATE = """
import atexit, os, signal, sys
sys.argv = ["tilec", "--version"]
from tilec.cli import main
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
main()
"""
EARLY = """
import sys
class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == "tilec.cli.app":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from tilec.cli import main
main()
"""


@pytest.mark.parametrize(("program", "code", "said"), [(LATE, 0, ""), (EARLY, 130, "error: interrupted\n")])
def test_ctrl_c_while_python_ends_or_loads_the_commands(program, code, said):
    ran = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (code, said)


def test_an_interrupted_stage_keeps_the_artifact_before_it(cli, listing, model, monkeypatch):
    assert cli("import", "model.onnx", "-o", "build").code == 0
    before = listing()
    models.mlp(model, batch=5)
    changed = listing()
    monkeypatch.setattr("tilec.artifact.store.os.fsync", lambda _descriptor: os.kill(os.getpid(), signal.SIGINT))
    assert cli("import", "model.onnx", "-o", "build").code == 130
    assert listing() == changed
    assert changed["build/1-graph.json"] == before["build/1-graph.json"]


@pytest.mark.slow_cases("2-130")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_a_command_that_waits(model, tmp_path, number, code):
    recipe = tmp_path / "recipe.yaml"
    os.mkfifo(recipe)
    running = subprocess.Popen(
        [*TILEC, "import", "model.onnx", "--recipe", "recipe.yaml", "-o", "build"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        text=True,
    )
    with recipe.open("w"):  # opens when the command has begun to read it
        running.send_signal(number)
        _, err = running.communicate(timeout=30)
    assert running.returncode == code
    assert "Traceback" not in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx", "recipe.yaml"]


def test_full_disk_in_a_later_stage_leaves_what_is_complete(model, tmp_path, cli):
    assert cli("compile", "model.onnx", "--device", "host", "--to", "schedule", "-o", "build").code == 0
    before = {path.name for path in (tmp_path / "build").iterdir()}
    ran = subprocess.run(
        [*TILEC, "compile", "model.onnx", "--device", "host", "-o", "build"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        preexec_fn=limit_files,
    )
    assert ran.returncode == 1
    assert "schedule: unchanged, skipped" in ran.stderr
    assert "error: " in ran.stderr
    assert "cannot write " in ran.stderr
    assert "Traceback" not in ran.stderr
    left = {path.name for path in (tmp_path / "build").rglob("*")} - before
    assert not [name for name in left if name.endswith((".tmp", ".a")) or name.startswith(("3-", "4-", "run"))]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG, errno.EMFILE])
def test_no_room_for_temporary_files_is_no_bug(cli, model, monkeypatch, number):
    def full(*_arguments, **_options):
        raise OSError(number, os.strerror(number))

    monkeypatch.setenv("TMPDIR", "/somewhere")
    monkeypatch.setattr("tilec.cli.import_.run_stage", full)
    ran = cli("import", model)
    assert (ran.code, ran.err) == (
        1,
        f"error: cannot write a temporary file: {os.strerror(number)}\n"
        "  Temporary files are in /somewhere: free some space, or let TMPDIR name another folder.\n",
    )


@pytest.mark.parametrize(
    ("words", "streams", "code", "said"),
    [
        ("--help", ">/dev/full", 1, "error: cannot write to standard output: No space left on device\n"),
        ("--version", ">&-", 1, "error: cannot write to standard output: Bad file descriptor\n"),
        ("import model.onnx -q -o -", ">&- <&-", 1, "error: cannot write to standard output: Bad file descriptor\n"),
        ("import model.onnx -q -o build", ">&- <&-", 0, ""),
        ("import model.onnx -o build 2>&-", ">&-", 0, ""),
    ],
)
def test_streams_that_are_closed_or_full_before_it_begins(model, tmp_path, words, streams, code, said):
    command = f"{shlex.join(TILEC)} {words} {streams}"
    ran = subprocess.run(command, shell=True, cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    assert ran.returncode == code
    assert ran.stderr.startswith(said)
    assert "Traceback" not in ran.stderr
    assert "Exception" not in ran.stderr
    assert (tmp_path / "build").exists() == (not code)


@pytest.mark.parametrize("name", ["a\nb.onnx", "a\\b.onnx"])
def test_a_model_whose_name_no_artifact_can_hold(cli, listing, model, tmp_path, name):
    (tmp_path / "model.onnx").rename(tmp_path / name)
    before = listing()
    ran = cli("import", name)
    assert ran.code == 2
    assert ran.err.splitlines()[-1] == "  Rename the file."
    assert listing() == before
