"""hipcc, where it is installed: a code object, registers, errors; its words about registers anywhere."""

import shutil

import pytest

from tests.emulator.kernels import HEADER
from tilec.codegen.gpu import hipcc
from tilec.codegen.gpu.compiled import KernelUse
from tilec.errors import TilecError

pytestmark = pytest.mark.feature("L24")

ASSEMBLY = """
	.amdhsa_private_segment_fixed_size 192
	.amdgpu_metadata
---
amdhsa.kernels:
  - .agpr_count:     0
    .args:
      - .name:           x
        .size:           8
    .name:           first
    .private_segment_fixed_size: 192
    .vgpr_count:     80
    .vgpr_spill_count: 0
  - .agpr_count:     0
    .name:           second
    .private_segment_fixed_size: 0
    .vgpr_count:     23
amdhsa.target:   amdgcn-amd-amdhsa--gfx90a
amdhsa.version:
  - 1
  - 1
"""


def test_registers_and_bytes_in_memory_of_each_kernel() -> None:
    assert hipcc.uses(ASSEMBLY) == {"first": KernelUse(80, 192), "second": KernelUse(23)}


def test_without_a_compiler_kernels_are_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    found = hipcc.obstacle("gfx90a")
    assert found == ("kernels are text only: there is no hipcc to compile them", "apt-get install hipcc")
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert hipcc.obstacle("gfx90a") is None
    found = hipcc.obstacle("znver4")
    assert found is not None
    assert found.reason == "kernels are text only: hipcc does not compile for znver4"


@pytest.mark.skipif(shutil.which("hipcc") is None, reason="no hipcc")
def test_a_kernel_compiles_to_a_code_object() -> None:
    text = '#include "tile.h"\nT_KERNEL void twice(float* x) { STG(x + tid_, 2.0f * LDG(x + tid_)); }\n'
    made = hipcc.compile_kernels(text, {"tile.h": HEADER}, "gfx90a")
    assert made.binary
    assert made.portable is None
    assert made.uses["twice"].registers > 0
    with pytest.raises(TilecError, match="hipcc refuses the kernels: .*nothing_known"):
        hipcc.compile_kernels(text.replace("2.0f", "nothing_known"), {"tile.h": HEADER}, "gfx90a")
