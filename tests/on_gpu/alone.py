"""`python -m tests.on_gpu.alone NAME WORK`: run a restored case once, for a profiler to look at."""

from __future__ import annotations

import sys
from pathlib import Path

import onnx

from tests.on_gpu.case import feeds_of
from tests.on_gpu.opened import opened
from tests.on_gpu.restore import SEED
from tilec.runtime.gpu.cuda import CudaDriver

if __name__ == "__main__":
    place = Path(sys.argv[2]) / sys.argv[1]
    device = opened(place / "build", CudaDriver(), feeds_of(onnx.load(place / "model.onnx"), SEED))
    device.step_by_step()
