"""TIR and LLVM text to object files with TVM's LLVM alone: no system compiler, no linker."""

import platform
import tempfile
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import tvm
from tvm.tirx import transform
from tvm.tirx.compilation_pipeline import register_tir_pipeline

from tilec.abi import job_layout
from tilec.codegen.cpu.compile.sign_masks import JOINED_FOR, may_be_wrong
from tilec.codegen.cpu.emit.kernel_function import PrimFunc
from tilec.errors import UnsupportedError
from tilec.spec.device import Target

PIPELINE = "tilec"

PASSES = (
    transform.StmtSimplify(),
    transform.FlattenBuffer(),
    transform.BF16ComputeLegalize(),
    transform.NarrowDataType(32),
    transform.VectorizeLoop(True),
    transform.UnrollLoop(),
    transform.StmtSimplify(),
    transform.CommonSubexprElim(),
    transform.BF16StorageLegalize(),
    transform.LowerIntrin(),
)
"""TVM's lowering without the packed calling convention, so that functions stay plain C, and without the pass
that turns large local buffers into calls of TVM's runtime."""

PRINTED = "tilec.printed"
"""Attribute of functions that need none of these passes. Kernels printed from tile programs must not meet them:
TVM's simplifier takes floats for real numbers, so that `(x + c) - c` becomes x and rounding tricks are lost."""

_PAUSE = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}
"""Architecture -> how to tell the core that a thread spins."""

_FUTEX = {"x86_64": 202, "aarch64": 98}
"""Architecture -> number of the Linux system call."""


def _pipeline() -> tuple[Any, Any, Any]:
    lower = tvm.ir.transform.Sequential(list(PASSES))
    return lower, _nothing, _nothing


def _printed() -> tuple[Any, Any, Any]:
    return _nothing(), _nothing, _nothing


def _nothing() -> Any:
    return tvm.ir.transform.Sequential([])


register_tir_pipeline(PIPELINE, _pipeline)
register_tir_pipeline(PRINTED, _printed)


def versions() -> str:
    """The tools that decide the bytes of an object file."""
    llvm = tvm.get_global_func("target.llvm_version_major")()
    passes = ",".join(str(each.info.name) for each in PASSES)
    return f"tvm {tvm.__version__}, llvm {llvm}, abi {job_layout.ABI}, passes {passes}, sign masks apart"


def target_triple(target: Target) -> str:
    """The LLVM triple of a device's target, this machine's when it names none."""
    return target.triple or f"{platform.machine()}-linux-gnu"


def llvm_target(target: Target) -> Any:
    """TVM's description of the processor that a device spec names."""
    parts: dict[str, Any] = {"kind": "llvm", "mtriple": target_triple(target)}
    if target.processor:
        parts["mcpu"] = target.processor
    if target.features:
        parts["mattr"] = list(target.features)
    return tvm.target.Target(parts)


def compile_function(function: PrimFunc, target: Target) -> bytes:
    """The object file of one TIR function with a global symbol; see `sign_masks` for why it may be compiled twice."""
    module = tvm.IRModule({tvm.ir.GlobalVar(str(function.attrs["global_symbol"])): function})
    pipeline = PRINTED if PRINTED in function.attrs else PIPELINE
    described = llvm_target(target)
    code = _object(tvm.tirx.build(module, target=described, pipeline=pipeline))
    if not may_be_wrong(code, described):
        return code
    careful = target.model_copy(update={"features": (*target.features, f"-{JOINED_FOR}")})
    return _object(tvm.tirx.build(module, target=llvm_target(careful), pipeline=pipeline))


def compile_llvm(text: str) -> bytes:
    """The object file of a module of LLVM text."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "module.ll"
        file.write_text(text)
        return _object(tvm.runtime.load_module(str(file)))


def threads_text(target: Target) -> str:
    """LLVM text of the functions by which threads share a run, for the target's architecture.

    Raises UnsupportedError for an architecture or operating system that has no futex here.
    """
    triple = target_triple(target)
    architecture = triple.split("-")[0]
    if architecture not in _PAUSE or "linux" not in triple:
        raise UnsupportedError(
            f"no threads for {triple}", hint=f"Linux on {' and '.join(sorted(_PAUSE))} is supported."
        )
    declaration, pause = _PAUSE[architecture]
    offsets = {name: value for name, value in vars(job_layout).items() if isinstance(value, int)}
    text = resources.files("tilec.codegen.cpu").joinpath("threads.ll").read_text(encoding="utf-8")
    return Template(text).substitute(
        offsets, TRIPLE=triple, FUTEX=_FUTEX[architecture], PAUSE=pause, PAUSE_DECLARATION=declaration
    )


def numbers_text(target: Target) -> str:
    """LLVM text of the entry of the function that computes the numbers of a model with symbols."""
    text = resources.files("tilec.codegen.cpu").joinpath("numbers.ll").read_text(encoding="utf-8")
    return Template(text).substitute(TRIPLE=target_triple(target), NUMBERS_ENTRY=job_layout.NUMBERS_ENTRY)


def _object(module: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "module.o"
        module.write_to_file(str(file))
        return file.read_bytes()
