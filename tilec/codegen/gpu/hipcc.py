"""AMD's compiler: kernels as a code object, without a GPU (L24)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tilec.codegen.backend import Obstacle
from tilec.codegen.gpu.compiled import Compiled, KernelUse
from tilec.errors import TilecError

_KERNEL = re.compile(r"^  - ", re.MULTILINE)
_FIELD = re.compile(r"^    \.(name|vgpr_count|private_segment_fixed_size): +(\w+)$", re.MULTILINE)


def obstacle(processor: str) -> Obstacle | None:
    """Why kernels for a processor are not compiled here."""
    if shutil.which("hipcc") is None:
        return Obstacle("kernels are text only: there is no hipcc to compile them", "apt-get install hipcc")
    if not processor.startswith("gfx"):
        fix = "Name one of AMD's, such as gfx90a, as codegen.processor."
        return Obstacle(f"kernels are text only: hipcc does not compile for {processor}", fix)
    return None


def compile_kernels(text: str, headers: Mapping[str, str], processor: str) -> Compiled:
    """Compile the text of kernels for a processor (`gfx90a`). Raises TilecError with the compiler's words."""
    with tempfile.TemporaryDirectory(prefix="tilec-hipcc-") as folder:
        for name, source in {"kernels.hip": text, **headers}.items():
            (Path(folder) / name).write_text(source, encoding="utf-8")
        command = ["hipcc", "--genco", f"--offload-arch={processor}", "-O3", "--save-temps", "-o", "kernels.co"]
        amd = {**os.environ, "HIP_PLATFORM": "amd"}
        done = subprocess.run(
            [*command, "kernels.hip"], cwd=folder, env=amd, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise TilecError(
                f"hipcc refuses the kernels: {done.stderr[:2000]}", hint="This is a bug of tilec; report it."
            )
        assembly = next(Path(folder).glob(f"*{processor}.s")).read_text(encoding="utf-8")
        return Compiled((Path(folder) / "kernels.co").read_bytes(), None, uses(assembly))


def uses(assembly: str) -> dict[str, KernelUse]:
    """What kernels use, from the metadata of an assembly file."""
    _, *entries = _KERNEL.split(assembly[assembly.index("amdhsa.kernels:") : assembly.index("amdhsa.target:")])
    facts = [dict(_FIELD.findall(entry)) for entry in entries]
    return {each["name"]: KernelUse(int(each["vgpr_count"]), int(each["private_segment_fixed_size"])) for each in facts}
