"""`python -m tests.on_gpu.restore NAME PLANS WORK [CPUS]`: a case from its plan: model, weights, kernels.

Where the plan is not that of this tilec, or there is none, the whole model is compiled. `NAME.json` in WORK tells what
came of it. `operands.npz` has the weights of a case whose reference is PyTorch, `expected.npz` what onnxruntime
computes for others.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tests.on_gpu.case import Case, feeds_of
from tests.on_gpu.cases import case_named
from tests.on_gpu.prepare import PLAN, compiled

SEED = 5


def main(name: str, plans: Path, work: Path) -> int:
    """Returns 0 when the case can run."""
    begin, case, folder = time.monotonic(), case_named(name), work / name
    folder.mkdir(parents=True, exist_ok=True)
    how, error = _restored(case, plans / name, folder)
    told: dict[str, Any] = {"how": how, "error": error}
    if not error:
        try:
            if case.reference is None:
                _expect(folder)
            else:
                np.savez(folder / "operands.npz", **case.operands())
        except Exception as wrong:
            told["no_reference"] = f"{type(wrong).__name__}: {wrong}"[:200]
    told["seconds"] = round(time.monotonic() - begin, 1)
    (work / f"{name}.json.new").write_text(json.dumps(told), encoding="utf-8")
    (work / f"{name}.json.new").rename(work / f"{name}.json")
    return int(bool(error))


def _restored(case: Case, plans: Path, folder: Path) -> tuple[str, str]:
    """(how, error)."""
    if (plans / PLAN).exists():
        error = compiled(case, folder, "--to", "import")
        shutil.copy(plans / PLAN, folder / "build" / PLAN)
        error = error or compiled(case, folder, "--from", "codegen", "--to", "codegen")
        if not error:
            return _compared(plans, folder), ""
        shutil.rmtree(folder / "build")
        print(f"{case.name}: {error}", file=sys.stderr)
    return "compiled anew", compiled(case, folder, "--to", "codegen")


def _compared(plans: Path, folder: Path) -> str:
    """Whether the text of the kernels is that of the plan when it was made."""
    before, now = (
        json.loads((place / "3-kernels.json").read_text(encoding="utf-8"))["runtime"]["gpu"]["text"]["sha256"]
        for place in (plans, folder / "build")
    )
    return "restored" if before == now else "restored with other kernels"


def _expect(folder: Path) -> None:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = len(os.sched_getaffinity(0)), 3
    session = onnxruntime.InferenceSession(folder / "model.onnx", options, ["CPUExecutionProvider"])
    feeds = feeds_of(onnx.load(folder / "model.onnx", load_external_data=False), SEED)
    names = [port.name for port in session.get_outputs()]
    np.savez(folder / "expected.npz", **dict(zip(names, session.run(names, feeds), strict=True)))


if __name__ == "__main__":
    if len(sys.argv) > 4:
        os.sched_setaffinity(0, map(int, sys.argv[4].split(",")))
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))
