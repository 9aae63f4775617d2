"""`python -m tests.on_gpu.prepare FOLDER [WORD...]`: compile the cases that every word is part of; keep their plans.

The plans alone are carried to the card, a folder a case; `restored` makes the rest there, from the case.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import sys
import tempfile
from pathlib import Path
from unittest import mock

import onnx

from tests.on_gpu.case import Case
from tests.on_gpu.cases import cases
from tilec.cli import app

DEVICE = "h100"

PLAN = "2-plan.json"


def main(words: list[str]) -> int:
    """Returns the number of cases that do not compile."""
    target, failed = Path(words[0]), 0
    for case in cases(words[1:]):
        if (target / case.name / PLAN).exists():
            continue
        with tempfile.TemporaryDirectory(prefix="tilec-on-gpu-") as folder:
            error = compiled(case, Path(folder), "--to", "codegen")
            print(f"{case.name}: {error or 'compiled'}", flush=True)
            failed += bool(error)
            if not error:
                (target / case.name).mkdir(parents=True, exist_ok=True)
                for name in (PLAN, "3-kernels.json"):
                    shutil.copy(Path(folder) / "build" / name, target / case.name / name)
    return failed


def compiled(case: Case, folder: Path, *stages: str) -> str:
    """Run stages for a case in a folder of its own; returns the first error, empty for none."""
    model, recipe = folder / "model.onnx", folder / "recipe.yaml"
    if not model.exists():
        onnx.save(case.model(), model)
    recipe.write_text("kind: compile\n" + case.recipe, encoding="utf-8")
    options = ("--device", DEVICE, "--recipe", recipe, "--no-bounds", "-o", folder / "build", *stages)
    command = ["tilec", "compile", *map(str, (model, *options))]
    code: object = 0
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as errors:
        try:
            with mock.patch.object(sys, "argv", command):
                app.run()
        except SystemExit as end:
            code = end.code
    lines = errors.getvalue().splitlines()
    return next((e for e in lines if e.startswith("error:")), f"{lines[-1:]}") if code else ""


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
