"""Kernels with open sizes, compiled once and called at many sizes on arrays that lie between guard elements."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import tvm_ffi_orcjit

from tests.codegen.cpu.running import AVX512, HOST, verified
from tilec.codegen.cpu.compile.compile_tir import compile_function, compile_llvm, target_triple
from tilec.codegen.cpu.decisions import UNDECIDED, Decisions
from tilec.codegen.cpu.emit.emit_kernel import Kernel, emit
from tilec.codegen.cpu.target import CpuTarget
from tilec.ir.evaluate import integer
from tilec.ir.expr import as_expr
from tilec.ir.program import Program
from tilec.ir.sizes import SymbolRange
from tilec.ir.types import numpy_dtype

Array = np.ndarray
GUARD = 64
"""Elements before and behind every array that a kernel must leave alone."""


@dataclass(frozen=True)
class Compiled:
    """A loaded kernel of a program."""

    program: Program
    kernel: Kernel
    address: int
    module: object

    def tasks(self, sizes: Mapping[str, int]) -> int:
        """How many tasks there are at some sizes."""
        return integer(as_expr(self.kernel.tasks), sizes)

    def __call__(self, arrays: Mapping[str, Array], sizes: Mapping[str, int], ranges: int = 1) -> dict[str, Array]:
        """The outputs for arrays of these sizes, tasks handed out in so many ranges."""
        blocks = {p.name: self._block(p.name, arrays, sizes) for p in self.program.parameters}
        room = integer(as_expr(self.kernel.scratch_bytes), sizes)
        scratch = np.zeros(room + 128, np.uint8)
        start = -scratch.ctypes.data % 64
        scratch[start + room :] = 77
        pointers = [block[GUARD:].ctypes.data for block in blocks.values()]
        count = self.tasks(sizes)
        assert count >= 0
        function = ctypes.CFUNCTYPE(
            None, *[ctypes.c_void_p] * (len(pointers) + 1), *[ctypes.c_int64] * (2 + len(self.kernel.symbols))
        )(self.address)
        ends = sorted({count * n // ranges for n in range(ranges + 1)})
        for first, last in pairwise(ends):
            function(*pointers, scratch.ctypes.data + start, first, last, *(sizes[s] for s in self.kernel.symbols))
        assert (scratch[start + room :] == 77).all(), "scratch overrun"
        made = {}
        for p in self.program.parameters:
            shape = tuple(integer(as_expr(n), sizes) for n in p.shape)
            block = blocks[p.name]
            inside = block[GUARD : block.size - GUARD].reshape(shape)
            if p.name in self.program.outputs:
                fresh = self._block(p.name, {}, sizes)
                assert block[:GUARD].tobytes() == fresh[:GUARD].tobytes(), f"{p.name} underrun"
                assert block[block.size - GUARD :].tobytes() == fresh[fresh.size - GUARD :].tobytes(), (
                    f"{p.name} overrun"
                )
                made[p.name] = inside
            else:
                assert inside.tobytes() == arrays[p.name].tobytes(), f"{p.name} changed"
        return made

    def _block(self, name: str, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> Array:
        (parameter,) = (p for p in self.program.parameters if p.name == name)
        count = int(np.prod([integer(as_expr(n), sizes) for n in parameter.shape], dtype=np.int64))
        dtype = numpy_dtype(parameter.ttype)
        block = np.frombuffer(b"\x5a" * ((count + 2 * GUARD) * dtype.itemsize), dtype).copy()
        if name in arrays:
            block[GUARD : GUARD + count] = np.ascontiguousarray(arrays[name]).reshape(-1)
        return block


def compiled(
    program: Program,
    ranges: Mapping[str, SymbolRange],
    target: CpuTarget = AVX512,
    decisions: Decisions = UNDECIDED,
) -> Compiled:
    """The kernel of a program, verified after every pass."""
    kernel = emit(program, target, observe=verified, decisions=decisions, symbol_ranges=ranges)
    return load(program, kernel)


def load(program: Program, kernel: Kernel) -> Compiled:
    """A kernel as machine code in this process."""
    symbol = str(kernel.function.attrs["global_symbol"])
    objects = [compile_function(function, HOST) for function in (kernel.function, *kernel.parts.values())]
    objects.append(compile_llvm(_ADDRESS.format(triple=target_triple(HOST), symbol=symbol)))
    module = tvm_ffi_orcjit.default_session().load_module(objects)
    return Compiled(program, kernel, int(module.get_function("address")()), module)


_ADDRESS = """
target triple = "{triple}"
declare void @{symbol}()
define i32 @__tvm_ffi_address(ptr %self, ptr %args, i32 %count, ptr %result) {{
  store i32 1, ptr %result
  %value.p = getelementptr i8, ptr %result, i64 8
  %value = ptrtoint ptr @{symbol} to i64
  store i64 %value, ptr %value.p
  ret i32 0
}}
"""
"""The address of a kernel, as a function of tvm_ffi."""
