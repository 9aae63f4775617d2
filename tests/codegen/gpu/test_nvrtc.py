"""NVRTC: what its words say of kernels; machine code and PTX where it is installed."""

import pytest

from tilec.codegen.gpu import nvrtc
from tilec.codegen.gpu.build_model import HEADER
from tilec.codegen.gpu.compiled import KernelUse
from tilec.codegen.gpu.nvrtc import compile_kernels, compiler_library, obstacle
from tilec.errors import TilecError
from tilec.extras import install

LOG = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'first' for 'sm_80'
ptxas info    : Function properties for first
    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 8 bytes cumulative stack size, 376 bytes cmem[0]
ptxas info    : Compiling entry function 'second' for 'sm_80'
ptxas info    : Function properties for second
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 27 registers, used 0 barriers, 368 bytes cmem[0]
"""

needs_nvrtc = pytest.mark.skipif(compiler_library() is None, reason="no NVRTC")


def test_registers_and_spilled_bytes_are_read_from_the_words_of_the_assembler():
    assert nvrtc._uses(LOG) == {"first": KernelUse(64, 16), "second": KernelUse(27)}


def test_without_the_library_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setattr(nvrtc, "compiler_library", lambda: None)
    missing = obstacle("sm_80")
    assert f"{missing.reason}: {missing.fix}" == (
        f"kernels are text only: there is no NVRTC to compile them: {install('cuda')}"
    )


@needs_nvrtc
def test_a_text_becomes_machine_code_and_ptx():
    text = f'#include "{HEADER}"\nT_KERNEL void twice(float* x) {{ STG(x + tid_, 2.0f * LDG(x + tid_)); }}\n'
    from importlib.resources import files

    headers = {HEADER: files("tilec.codegen.gpu").joinpath(HEADER).read_text(encoding="utf-8")}
    made = compile_kernels(compiler_library(), text, headers, "sm_80")
    assert made.binary.startswith(b"\x7fELF")
    assert b".target sm_80" in made.portable
    assert made.uses["twice"].registers > 0
    with pytest.raises(TilecError, match="nothing_known"):
        compile_kernels(compiler_library(), text.replace("2.0f", "nothing_known"), headers, "sm_80")
    assert obstacle("sm_10").reason.startswith("kernels are text only: this NVRTC does not compile for sm_10")
