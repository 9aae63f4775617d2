"""`python -m quantised [WORD...]`: compile and verify the quantised models whose names contain every word.

Prints a table in Markdown: one line a model with its nodes, those that are compiled, the verdicts and the seconds.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from quantised.compile import compiled
from quantised.forms import FORMS, MODELS, quantised

COLUMNS = ("model", "form", "exit code", "nodes", "compiled", "verdicts", "seconds")


def main(words: list[str]) -> int:
    """Returns the number of models that do not compile or verify."""
    print(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}", flush=True)
    failed = 0
    for model in MODELS:
        for form in FORMS:
            if not all(word in f"{model} {form.name}" for word in words):
                continue
            with tempfile.TemporaryDirectory(prefix="tilec-quantised-") as folder:
                path = quantised(model, form, Path(folder) / "model.onnx")
                begin = time.monotonic()
                result = compiled(path)
                seconds = time.monotonic() - begin
            failed += result.code != 0
            verdicts = result.error or ", ".join(dict.fromkeys(result.verdicts))
            numbers = f"{result.code} | {result.total} | {result.native} | {verdicts} | {seconds:.0f}"
            print(f"| {model} | {form.name} | {numbers} |", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
