"""Elements that are copied, as C++."""

from __future__ import annotations

from tilec.codegen.gpu.kernel_ir import Copy
from tilec.codegen.gpu.print.c_text import literal
from tilec.codegen.gpu.print.kernel_state import KernelState
from tilec.codegen.gpu.print.scalar_text import loaded, stored
from tilec.ir.expr import Scalar
from tilec.ir.program import Buffer
from tilec.ir.types import HALVES


def constant_element(value: Scalar, ttype: str) -> str:
    """A constant as an element of a buffer."""
    computed = "f32" if ttype in HALVES else ttype
    return stored(literal(value, computed), ttype)


def loaded_element(state: KernelState, copy: Copy, address: str, present: str) -> str:
    """An element of the lower buffer as one of the upper buffer, or what stands for it where it is not `present`."""
    text = converted(f"{state.memory('LD', copy.lower)}({address})", copy.lower, copy.upper)
    return f"{present} ? {text} : {constant_element(copy.fill or 0, copy.upper.ttype)}" if present else text


def store_element(state: KernelState, copy: Copy, address: str, text: str) -> None:
    """Store an element of the upper buffer in the lower one."""
    text = converted(text, copy.upper, copy.lower)
    state.lines.add(f"{state.memory('ST', copy.lower)}({address}, {text});")


def converted(text: str, source: Buffer, target: Buffer) -> str:
    """An element of a buffer as one of another."""
    return text if source.ttype == target.ttype else stored(loaded(text, source.ttype), target.ttype)
