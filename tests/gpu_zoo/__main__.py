"""`make gpu-zoo ARGS="[verify] [WORD...]"`: the zoo's models as kernels of GPUs, those that every word is part of the
name, the device or the type of.

Prints a table in Markdown, one line a model, type and device: groups, kernels, the predicted time, the registers of the
kernel with the most, kernels that keep registers in memory with their bytes and the share of the predicted time that
they take, that of kernels of fewer than 128 threads, what is wrong, and the seconds of stages.  `verify` runs the
kernels in the emulator, those with much work in part, and tells the share of the time in kernels whose sectors and
wavefronts are near those needed, and whose sectors are near those planned.
"""

from __future__ import annotations

import sys
import tempfile
from itertools import product
from pathlib import Path

from tests.gpu_zoo.compiled import compiled
from tests.gpu_zoo.figures import COLUMNS, row
from tests.gpu_zoo.forms import TYPES
from tilec import zoo

DEVICES = ("a100", "h100", "mi250", "rtx3090")


def main(words: list[str]) -> int:
    """Returns the number of models that do not compile, spill, or do not verify."""
    verify, words = "verify" in words, [word for word in words if word != "verify"]
    print(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}", flush=True)
    failed = 0
    for model, ttype, device in product(zoo.names(), TYPES, DEVICES):
        if not all(word in model or word in (device, ttype) for word in words):
            continue
        with tempfile.TemporaryDirectory(prefix="tilec-gpu-zoo-") as folder:
            result = compiled(model, ttype, device, Path(folder), verify)
            failed += not result.right
            print(row(model, ttype, device, result), flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
