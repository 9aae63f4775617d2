"""`make gpu-zoo ARGS="[verify] [WORD...]"`: the zoo's models as kernels of GPUs, those whose names hold every word.

Prints a table in Markdown, one line a model and device: groups, kernels, the predicted time, the registers of the
kernel with the most, kernels that spill with their bytes and the share of the predicted time that they take, that of
kernels of fewer than 128 threads, and what is wrong.  `verify` runs the kernels in the emulator, those with much work
in part.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.gpu_zoo.compiled import compiled
from tests.gpu_zoo.figures import COLUMNS, row
from tilec import zoo

DEVICES = ("a100", "h100", "mi250", "rtx3090")


def main(words: list[str]) -> int:
    """Returns the number of models that do not compile, spill, or do not verify."""
    verify, words = "verify" in words, [word for word in words if word != "verify"]
    print(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}", flush=True)
    failed = 0
    for model in zoo.names():
        for device in DEVICES:
            if not all(word in f"{model} {device}" for word in words):
                continue
            with tempfile.TemporaryDirectory(prefix="tilec-gpu-zoo-") as folder:
                begin = time.monotonic()
                result = compiled(model, device, Path(folder), verify)
                failed += not result.right
                print(row(model, device, result, time.monotonic() - begin), flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
