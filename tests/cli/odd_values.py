"""Every option of every verb with odd values: a sweep over the command line as it describes itself.

`python -m cli.odd_values FOLDER [VERB...]` (with `tests` on PYTHONPATH) tries all of it in a folder with `model.onnx`
and `model.tilec`, and prints the calls that end in other words than those of an explained error.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from shutil import rmtree
from typing import Any

import typer.main

from tilec.cli import app

PLAN = "model.tilec"
SUBJECTS: dict[str, tuple[str, ...]] = {
    "import": ("model.onnx", "-o", "out.json"),
    "schedule": (f"{PLAN}/1-graph.json", "-o", "out.json"),
    "codegen": (PLAN,),
    "verify": (PLAN,),
    "compile": ("model.onnx", "-o", "out.tilec"),
    "run": (PLAN,),
    "bench": (PLAN, "--rounds", "1"),
    "capture": (PLAN, "-o", "out"),
    "diff": (PLAN, PLAN),
    "explain": (PLAN,),
    "inspect": (PLAN,),
    "bounds": (PLAN,),
    "report": (PLAN, "-o", "out.html"),
    "lint": (PLAN,),
    "schema": ("device",),
    "doctor": (),
    "device list": (),
    "device show": ("a100",),
    "zoo list": (),
    "zoo export": ("nerf-mlp", "--seq", "8", "-o", "out.onnx"),
    "cache list": (),
    "cache why": ("model.onnx",),
}
"""A call of each verb that is right; `device probe` measures for a minute and `cache clear` takes no values."""

VALUES = ("nosuch", "", "-1", "0", "9" * 25, "a=b", "a=0", "=", ",", ".", "model.onnx/x", "nan", "x[y=z]", "1e3", "ä\n")
ENDLESS = ("--repeat", "--rounds")
"""Options whose large values are right, and take for ever."""

CODES = {0, 1, 2, 3, 4, 5, 6, 7}
HEAVY = ("verify", "compile", "codegen", "schedule", "bench", "capture", "zoo export")
"""Verbs whose right calls take seconds: their switches are tested elsewhere."""


def commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """The verbs by name."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield before + name, command


def calls(values: Sequence[str] = VALUES) -> Iterator[tuple[str, ...]]:
    """Every verb with each of its options, and each of the values of those that take one."""
    root = typer.main.get_command(app.app)
    for verb, command in commands(root):
        right = (*verb.split(), *SUBJECTS.get(verb, ()))
        for option in command.params if verb in SUBJECTS else ():
            name = next((each for each in option.opts if each.startswith("--")), None)
            if name is None:
                wrong = [*verb.split(), *SUBJECTS[verb][1:]]
                yield from ((*wrong, value) for value in values)
            elif not getattr(option, "is_flag", False):
                yield from ((*right, name, value) for value in values if len(value) < 20 or name not in ENDLESS)
            elif verb not in HEAVY and name != "--help":
                yield (*right, name)


def called(arguments: Sequence[str]) -> str:
    """What is wrong with how a call ends; empty where nothing is."""
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["tilec", *arguments]
    code: object = 0
    try:
        with redirect_stdout(out), redirect_stderr(err):
            app.run()
    except SystemExit as end:
        code = end.code or 0
    except BaseException as error:
        return f"raises {error!r}"
    said = err.getvalue()
    if code not in CODES:
        return f"exit code {code!r}: {said[-300:]}"
    if "This is a bug in tilec" in said or "Traceback" in said:
        return f"{said[-600:]}"
    if code == 2 and "error: " not in said.lower() and '"error"' not in said:
        return f"exit code 2 without an error: {said[-300:]}"
    return ""


def main(folder: str, verbs: Sequence[str]) -> None:
    """Print what is wrong, call by call."""
    os.chdir(folder)
    before = set(Path().iterdir())
    for arguments in calls():
        if verbs and arguments[0] not in verbs:
            continue
        if wrong := called(arguments):
            print(f"{' '.join(map(repr, arguments))}\n  {wrong}", flush=True)
        for made in set(Path().iterdir()) - before:
            rmtree(made) if made.is_dir() else made.unlink()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
