"""`python -m tests.predicted_plans CHECKOUT [WORD...]`: predicted times of the zoo's plans beside another checkout's.

A WORD is a part of a model's name, or a device (default: six). Both plan each model with nothing cached; the times of
both plans are counted by this checkout's cost model. Prints a line for each as the plans are made, in Markdown, and the
geometric mean. The exit code is 1 where a plan is more than 1 % slower than the other's, or all are in the mean.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tilec import zoo
from tilec.artifact import read_artifact
from tilec.ir.codec import plan_from_json
from tilec.pipeline.job import FILES
from tilec.scheduler.schedule import recounted_plan
from tilec.spec.resolve import resolve_device

DEVICES = ("avx2", "zen5-avx512", "neon", "a100", "mi250", "ipu-mk2")
HERE = Path(__file__).parents[2]
WORSE = 1.01


def milliseconds(checkout: Path, model: Path, device: str, folder: Path) -> float:
    """The predicted time of the plan that a checkout makes of a model for a device."""
    with tempfile.TemporaryDirectory() as cache:
        build = folder / f"{model.stem}-{device}"
        command = [sys.executable, "-P", "-m", "tilec", "compile", str(model), "--device", device, "-o", str(build)]
        variables = {**os.environ, "PYTHONPATH": str(checkout), "XDG_CACHE_HOME": cache}
        subprocess.run([*command, "--to", "schedule"], env=variables, cwd=folder, capture_output=True, check=True)
    plan = plan_from_json(read_artifact(build / FILES["plan"], "plan").body, model.stem)
    counted = recounted_plan(plan, resolve_device(device))
    return sum(group.cost.picoseconds for group in counted.groups) / 1e9


def main(words: Sequence[str]) -> int:
    """Compare; see the module."""
    other, *rest = words
    devices = [device for device in DEVICES if device in rest] or DEVICES
    parts = [word for word in rest if word not in DEVICES]
    ratios = []
    print("| model | device | other, ms | this, ms | other / this |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in zoo.names():
            if parts and not any(part in name for part in parts):
                continue
            model = Path(folder) / f"{name}.onnx"
            zoo.export(name, model)
            for device in devices:
                times = []
                for place, checkout in (("other", Path(other).absolute()), ("this", HERE)):
                    (Path(folder) / place).mkdir(exist_ok=True)
                    times.append(milliseconds(checkout, model, device, Path(folder) / place))
                ratios.append(times[0] / times[1])
                print(f"| {name} | {device} | {times[0]:.4g} | {times[1]:.4g} | {ratios[-1]:.4f} |", flush=True)
            model.unlink()
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"geometric mean {mean:.4f}, least {min(ratios):.4f}, {len(ratios)} plans")
    return int(mean < 1 or min(ratios) * WORSE < 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
