"""Masks of signs never pass through the instruction that LLVM 22 gives wrong registers."""

import pytest
from tvm import tirx
from tvm.tirx.script.builder import ir as I  # noqa: N812

from tilec.codegen.cpu.compile.compile_tir import compile_function, llvm_target
from tilec.codegen.cpu.compile.sign_masks import may_be_wrong
from tilec.codegen.cpu.emit.kernel_function import Operand, kernel_function
from tilec.spec.device import Target

AVX512 = Target(backend="cpu", triple="x86_64-linux-gnu", processor="skylake-avx512")
AVX2 = Target(backend="cpu", triple="x86_64-linux-gnu", processor="haswell")


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("c5 fd 50 e8", True),  # vmovmskpd ebp, ymm0
        ("c5 78 50 c0", True),  # vmovmskps r8d, xmm0
        ("c4 c1 7d 50 c7", True),  # vmovmskpd eax, ymm15
        ("c5 fd d7 c0", True),  # vpmovmskb eax, ymm0
        ("c5 fd 50 00", False),  # no register
        ("c5 f5 d7 c0", False),  # a second operand
        ("c5 fd 58 c1", False),  # vaddpd ymm0, ymm0, ymm1
        ("62 f2 fe 28 39 c8", False),  # vpmovq2m k1, ymm0
    ],
)
def test_instructions_that_move_signs(code: str, found: bool) -> None:
    assert may_be_wrong(b"\x90" + bytes.fromhex(code), llvm_target(AVX512)) == found


def test_processors_without_short_masks_move_signs_rightly() -> None:
    code = bytes.fromhex("c5 fd 50 e8")
    assert not may_be_wrong(code, llvm_target(AVX2))
    assert not may_be_wrong(code, llvm_target(AVX512.model_copy(update={"features": ("-avx512vl",)})))
    assert not may_be_wrong(code, llvm_target(Target(backend="cpu", triple="aarch64-linux-gnu")))


def test_kernels_that_may_be_wrong_are_compiled_again(monkeypatch) -> None:
    def body(buffers, scratch, task):
        """The numbers of a short vector that are not negative, 7 for the others."""
        at = tirx.Ramp(task * 4, tirx.IntImm("int64", 1), 4)
        zeros, sevens = (tirx.Broadcast(tirx.IntImm("int64", n), 4) for n in (0, 7))
        x = buffers["x"][at]
        I.buffer_store(buffers["y"], tirx.Select(tirx.LT(x, zeros), sevens, x), [at])

    function = kernel_function("positive", [Operand("x", "int64", 64), Operand("y", "int64", 64)], body)
    plain = compile_function(function, AVX512)
    careful = compile_function(function, AVX512.model_copy(update={"features": ("-avx512vl",)}))
    assert plain != careful
    monkeypatch.setattr("tilec.codegen.cpu.compile.compile_tir.may_be_wrong", lambda *_: True)
    assert compile_function(function, AVX512) == careful
