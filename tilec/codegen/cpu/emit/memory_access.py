"""Loads and stores: elements in memory to values in registers and back (f16, bf16 and bool change their type)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tvm import tirx
from tvm.tirx.script.builder import ir as I  # noqa: N812

from tilec.codegen.cpu.emit.kernel_function import Buffer
from tilec.codegen.cpu.emit.vector_ops import (
    COMPUTED,
    STORED,
    PrimExpr,
    bind,
    cast,
    constant,
    int64,
    is_nan,
    ramp,
    reinterpret,
)
from tilec.codegen.cpu.kernel_ir import Array
from tilec.codegen.cpu.passes.nontemporal_stores import stream

STRIDED = 8
"""Largest stride that is loaded as contiguous vectors and shuffled, instead of element by element."""


@dataclass(frozen=True, slots=True)
class Memories:
    """The kernel's memories and the TIR buffers behind them; a register has one for each of its pieces.

    `streamed` gives the lanes of whole vectors in operands that are stored past the caches, `symbols` are sizes that
    the kernel takes as arguments.
    """

    table: Mapping[str, Array]
    buffers: Mapping[str, Buffer]
    pieces: Mapping[tuple[str, int, int], Buffer]
    streamed: Mapping[str, int]
    symbols: tuple[str, ...] = ()

    @property
    def ttypes(self) -> dict[str, str]:
        """Memory -> tType."""
        return {name: memory.ttype for name, memory in self.table.items()}

    def is_register(self, name: str) -> bool:
        """Whether a memory consists of pieces at constant offsets."""
        return self.table[name].kind == "local"

    def get(self, name: str, offset: PrimExpr, stride: int | PrimExpr, lanes: int) -> PrimExpr:
        """Elements at offset, offset + stride, ... as they lie in memory."""
        if self.is_register(name):
            return tirx.BufferLoad(self.pieces[name, int(offset.value), lanes], [int64(0)])
        if lanes >= 4 and isinstance(stride, int) and (2 <= stride <= STRIDED or stride == -1):
            return self._spread(name, offset, stride, lanes)
        return tirx.BufferLoad(self.buffers[name], [ramp(offset, stride, lanes)])

    def _spread(self, name: str, offset: PrimExpr, stride: int, lanes: int) -> PrimExpr:
        """Every `stride`-th element out of as many contiguous vectors; nothing before the first is read, nor after
        the last."""
        reach = abs(stride) * (lanes - 1)
        lowest = offset if stride > 0 else tirx.Sub(offset, int64(reach))
        starts = [min(n * lanes, reach + 1 - lanes) for n in range(abs(stride))]
        vectors = [
            tirx.BufferLoad(self.buffers[name], [ramp(tirx.Add(lowest, int64(start)) if start else lowest, 1, lanes)])
            for start in starts
        ]
        order = range(0, reach + 1, abs(stride)) if stride > 0 else range(reach, -1, stride)
        last = len(starts) - 1
        picked = [min(at // lanes, last) for at in order]
        lane = [n * lanes + at - starts[n] for n, at in zip(picked, order, strict=True)]
        return tirx.Shuffle(vectors, [tirx.IntImm("int32", i) for i in lane])

    def gather(self, name: str, index: PrimExpr) -> PrimExpr:
        """Elements at a vector of offsets."""
        return tirx.BufferLoad(self.buffers[name], [index])

    def put(
        self, name: str, offset: PrimExpr, stride: int | PrimExpr, value: PrimExpr, lanes: int, *, past: bool = False
    ) -> None:
        """Store elements of the type that memory has, `past` the caches if told."""
        if self.is_register(name):
            I.buffer_store(self.pieces[name, int(offset.value), lanes], value, [int64(0)])
        elif past:
            stream(self.buffers[name], offset, value, lanes)
        else:
            I.buffer_store(self.buffers[name], value, [ramp(offset, stride, lanes)])

    def read(self, name: str, offset: PrimExpr, stride: int | PrimExpr, lanes: int) -> PrimExpr:
        """Elements as values of their computed type."""
        return widen(self.get(name, offset, stride, lanes), self.table[name].ttype, lanes)

    def write(
        self, name: str, offset: PrimExpr, stride: int | PrimExpr, value: PrimExpr, lanes: int, *, past: bool = False
    ) -> None:
        """Store values of the computed type, as in `put`."""
        self.put(name, offset, stride, narrow(value, self.table[name].ttype, lanes), lanes, past=past)


def widen(value: PrimExpr, ttype: str, lanes: int) -> PrimExpr:
    """From the type in memory to the computed type."""
    if ttype == "f16":
        return cast(value, "float32", lanes)
    if ttype == "bf16":
        wide = cast(value, "uint32", lanes)
        return reinterpret(tirx.shift_left(wide, constant(16, "uint32", lanes)), "float32", lanes)
    if ttype == "bool":
        return tirx.NE(value, constant(0, "uint8", lanes))
    return value


def narrow(value: PrimExpr, ttype: str, lanes: int) -> PrimExpr:
    """From the computed type to the type in memory, rounding to nearest even."""
    if ttype == "f16":
        return cast(value, "float16", lanes)
    if ttype == "bf16":
        value = bind(value)
        bits = bind(reinterpret(value, "uint32", lanes))
        last = tirx.bitwise_and(tirx.shift_right(bits, _u32(16, lanes)), _u32(1, lanes))
        rounded = bits + (last + _u32(0x7FFF, lanes))
        quiet = tirx.bitwise_or(bits, _u32(0x00400000, lanes))
        kept = tirx.Select(is_nan(value), quiet, rounded)
        return cast(tirx.shift_right(kept, _u32(16, lanes)), "uint16", lanes)
    if ttype == "bool":
        return tirx.Select(value, constant(1, "uint8", lanes), constant(0, "uint8", lanes))
    return value


def _u32(value: int, lanes: int) -> PrimExpr:
    return constant(value, "uint32", lanes)


def element(ttype: str) -> str:
    """The element type that values of a tType have in registers."""
    return COMPUTED[ttype]


def stored(ttype: str) -> str:
    """The element type that a tType has in memory."""
    return STORED[ttype]
