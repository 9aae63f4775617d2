"""The manners of the command line: help, streams, exit codes, what an unexpected error looks like."""

import json
import os
import subprocess
import sys

import pytest

from cli import models
from tilec import __version__
from tilec.cli.console import Console

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

VERBS = ["import", "schedule", "codegen", "verify", "compile", "run", "bench", "diff", "explain", "inspect", "bounds"]
VERBS += ["report", "lint", "schema", "doctor", "device list", "device show", "device probe", "zoo list", "zoo export"]
VERBS += ["cache list", "cache why", "cache clear"]


def test_help_lists_the_verbs_and_the_exit_codes(cli):
    ran = cli("--help")
    assert ran.code == 0
    for verb in VERBS:
        assert f"\n  {verb.split()[0]} " in ran.out
    for code in ("0 done", "2 usage", "4 verification", "5 unsupported", "6 device", "130 interrupted"):
        assert code in " ".join(ran.out.split())


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_begins_with_examples_and_documents_exit_codes(cli, verb):
    ran = cli(*verb.split(), "--help")
    assert ran.code == 0
    assert f"tilec {verb}" in ran.out.split("Options:")[0].split("\n", 1)[1]
    assert "Exit codes: 0 done" in ran.out
    for option in ("--quiet", "--verbose", "--debug"):
        assert option in ran.out


def test_help_needs_no_heavy_library():
    heavy = ("numpy", "onnx", "onnxruntime", "tvm", "tvm_ffi", "pydantic", "rich")
    program = (
        "import sys; sys.argv = ['tilec', '--help']\n"
        "from tilec.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"sys.exit(','.join(name for name in {heavy!r} if name in sys.modules) or 0)"
    )
    ran = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_version(cli):
    assert cli("--version").out == f"tilec {__version__}\n"


def test_module_runs():
    ran = subprocess.run([sys.executable, "-m", "tilec", "--version"], env=ENVIRONMENT, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, f"tilec {__version__}\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["frobnicate"], "No such command 'frobnicate'"),
        (["improt"], "import"),
        (["import"], "MODEL"),
        (["zoo", "list", "--jsno"], "--json"),
        (["zoo", "export", "resnet-50", "--batch", "two"], "--batch"),
        (["compile", "m.onnx", "--threads", "0"], "--threads"),
    ],
)
def test_usage_errors_exit_with_2_and_say_how_to_get_help(cli, arguments, said):
    ran = cli(*arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert said in ran.err
    assert "help" in ran.err


def test_data_goes_to_stdout_and_everything_else_to_stderr(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx")
    ran = cli("import", "model.onnx", "--json")
    assert json.loads(ran.out)["placement"] == {"compiled": 4, "fallback": [], "total": 4}
    assert ran.err.splitlines()[0].startswith("import: done in ")
    assert ran.err.splitlines()[1] == "placement: 4 of 4 nodes compiled"


def test_quiet_prints_errors_and_data_only(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx")
    ran = cli("import", "model.onnx", "--json", "--quiet")
    assert ran.err == ""
    assert json.loads(ran.out)
    assert cli("import", "none.onnx", "-q").err.startswith("error: none.onnx: no such file")


def broken(what: str) -> None:
    raise RuntimeError(f"a screw of {what} is loose")


def test_an_unexpected_error_is_one_line_and_a_hint(cli, monkeypatch):
    monkeypatch.setattr("tilec.spec.schema.schema", broken)
    ran = cli("schema", "device")
    assert ran.code == 1
    assert "Traceback" not in ran.err
    assert ran.err.splitlines()[0] == "error: RuntimeError: a screw of device is loose"
    assert "--debug" in ran.err.splitlines()[1]


def test_debug_shows_the_traceback(cli):
    ran = cli("zoo", "export", "resnet-51", "--debug")
    assert ran.code == 2
    assert "Traceback" in ran.err
    assert "UsageError" in ran.err
    assert "error: no model 'resnet-51' in the zoo" in ran.err


@pytest.mark.parametrize(("variables", "colored"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_color_only_on_a_terminal_that_wants_it(monkeypatch, capsys, variables, colored):
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    Console(progress=False).error("wrong")
    assert ("\x1b[" in capsys.readouterr().err) == colored


def test_no_color_off_a_terminal(capsys):
    Console().error("wrong")
    assert capsys.readouterr().err == "error: wrong\n"


def test_progress_on_a_terminal_shows_what_is_done(monkeypatch, capfd):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with Console(progress=True).stage("codegen") as advance:
        advance(1, 4)
    err = capfd.readouterr().err
    assert "codegen: done in " in err
    assert "25%" in err
    with Console(progress=True).stage("schedule") as advance:
        advance(4, 4, "partition_groups")
        advance(1, 5, "local_search")
    err = capfd.readouterr().err
    assert "schedule: local_search" in err
    assert "20%" in err


def test_schema_is_json(cli):
    for what in ("device", "recipe"):
        assert json.loads(cli("schema", what).out)["$schema"].startswith("https://json-schema.org/")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("inspect", "gone.onnx"), {"exit_code": 2, "place": "gone.onnx"}),
        (("device", "show", "a10"), {"exit_code": 2, "fix": "Did you mean 'a100'?"}),
    ],
)
def test_with_json_an_error_is_an_object_on_the_last_line_of_stderr(cli, words, expected):
    ran, plain = cli(*words, "--json"), cli(*words)
    error = json.loads(ran.err.splitlines()[-1])["error"]
    assert set(error) == {"exit_code", "fix", "message", "place"}
    assert ran.out == ""
    assert ran.code == plain.code == error["exit_code"]
    assert error["message"] in plain.err
    assert expected.items() <= error.items() or expected["exit_code"] == error["exit_code"]
