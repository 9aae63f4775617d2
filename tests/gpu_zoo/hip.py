"""hipcc: the kernels of a model for an AMD GPU, and what they use."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_KERNEL = re.compile(r"^  - ", re.MULTILINE)
_FIELD = re.compile(r"^    \.(name|vgpr_count|private_segment_fixed_size): +(\w+)$", re.MULTILINE)


def with_registers(kernels: Sequence[Mapping[str, Any]], processor: str, build: Path) -> list[Mapping[str, Any]]:
    """The kernels with the registers of a thread and the bytes that it keeps in memory for want of more; as they are
    where there is no hipcc. Raises CalledProcessError with what hipcc says."""
    compiler = shutil.which("hipcc")
    if compiler is None:
        return list(kernels)
    command = [compiler, "--genco", f"--offload-arch={processor}", "-O3", "--save-temps", "kernels.hip"]
    amd = {**os.environ, "HIP_PLATFORM": "amd"}
    subprocess.run(command, cwd=build, env=amd, capture_output=True, text=True, check=True)
    used = {use["name"]: use for use in uses(next(build.glob(f"*{processor}.s")).read_text(encoding="utf-8"))}
    return [
        {
            **kernel,
            "registers": int(used[kernel["symbol"]]["vgpr_count"]),
            "spilled_bytes": int(used[kernel["symbol"]]["private_segment_fixed_size"]),
        }
        for kernel in kernels
    ]


def uses(assembly: str) -> list[dict[str, str]]:
    """The numbers that the metadata of an assembly file tells of each kernel."""
    _, *entries = _KERNEL.split(assembly[assembly.index("amdhsa.kernels:") : assembly.index("amdhsa.target:")])
    return [dict(_FIELD.findall(entry)) for entry in entries]
