"""The frame of every CPU kernel: a C function that computes a range of tasks and knows nothing of threads.

    void <symbol>(T0* operand0, T1* operand1, ..., uint8_t* scratch, int64_t begin, int64_t end, int64_t size0, ...)

Sizes that are open at compile time are its last arguments.

A task is one iteration of the flattened outermost spread loops. The host function decides which thread
computes which range, so tasks of one kernel must not depend on each other.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script.builder import ir as I  # noqa: N812

Buffer: TypeAlias = Any
PrimExpr: TypeAlias = Any
PrimFunc: TypeAlias = Any


@dataclass(frozen=True)
class Operand:
    """A pointer parameter, seen by the kernel as a flat buffer of `elements` elements of TIR type `dtype`.

    Only the alignment of one element may be assumed. No other operand of the same launch may overlap it,
    unless both are only read.
    """

    name: str
    dtype: str
    elements: int


class Scratch:
    """Working memory of the calling thread: 64-byte aligned, uninitialised, not kept between calls."""

    def __init__(self, block: Buffer) -> None:
        self._block = block

    def buffer(self, offset: PrimExpr, elements: int, dtype: str) -> Buffer:
        """A flat buffer of `elements` elements that starts `offset` bytes into the block."""
        pointer = I.Bind(tirx.address_of(self._block[offset]))
        return I.decl_buffer((tirx.IntImm("int64", elements),), dtype, data=pointer)


Body: TypeAlias = Callable[[Mapping[str, Buffer], Scratch, PrimExpr], None]
SizedBody: TypeAlias = Callable[[Mapping[str, Buffer], Scratch, PrimExpr, Mapping[str, PrimExpr]], None]
PartBody: TypeAlias = Callable[[Mapping[str, Buffer], Sequence[PrimExpr]], None]


def kernel_function(symbol: str, operands: Sequence[Operand], body: Body, scratch_bytes: int = 0) -> PrimFunc:
    """The TIR function `symbol`, whose `body(buffers, scratch, task)` emits one task with the IR builder.

    `buffers` maps operand names to flat buffers, `task` is an int64 expression, `scratch_bytes` the size of
    the thread's block. `body` never opens a parallel loop.
    """
    return sized_kernel_function(symbol, operands, lambda *place: body(*place[:3]), scratch_bytes, ())


def sized_kernel_function(
    symbol: str, operands: Sequence[Operand], body: SizedBody, scratch_bytes: int, sizes: Sequence[str]
) -> PrimFunc:
    """The function of a kernel with open `sizes`, whose values `body(buffers, scratch, task, values)` gets by name."""
    block = Operand("scratch", "uint8", scratch_bytes)
    with _function(symbol, (*operands, block), ("begin", "end", *sizes)) as frame:
        begin, end, *values = frame.variables
        buffers = dict(frame.buffers)
        scratch = Scratch(buffers.pop(block.name))
        with I.serial(begin, end) as task:
            IRBuilder.name("task", task)
            body(buffers, scratch, task, dict(zip(sizes, values, strict=True)))
    return frame.builder.get()


def part_function(symbol: str, arrays: Sequence[Operand], variables: Sequence[str], body: PartBody) -> PrimFunc:
    """The TIR function that `body(buffers, values)` emits, of pointers to arrays and the values of variables."""
    with _function(symbol, arrays, variables) as frame:
        body(frame.buffers, frame.variables)
    return frame.builder.get()


@dataclass(frozen=True)
class _Frame:
    builder: Any
    buffers: Mapping[str, Buffer]
    variables: Sequence[PrimExpr]


@contextmanager
def _function(symbol: str, operands: Sequence[Operand], variables: Sequence[str]) -> Iterator[_Frame]:
    with IRBuilder() as builder, I.prim_func(s_tir=True):
        I.func_name(symbol)
        I.func_attr({"tirx.noalias": True, "global_symbol": symbol})
        pointers = [I.arg(operand.name, I.ptr(operand.dtype)) for operand in operands]
        values = [I.arg(name, I.int64()) for name in variables]
        buffers = {
            operand.name: I.decl_buffer((tirx.IntImm("int64", operand.elements),), operand.dtype, data=pointer)
            for operand, pointer in zip(operands, pointers, strict=True)
        }
        yield _Frame(builder, buffers, values)
