"""Stores that pass the caches by: for tensors so large that whoever reads them does not find them there (W22).

An ordinary store first reads the line that it writes, and drives out what is of use.  LLVM knows stores that do
neither, whole aligned vectors, as `!nontemporal`; TIR has no word for them, so that functions of LLVM text that are
inlined stand for them.  They are weakly ordered: the locked instruction that counts a task as done drains them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tvm import tirx
from tvm.ir import StringImm
from tvm.runtime import DataType
from tvm.tirx.script.builder import ir as I  # noqa: N812

from tilec.codegen.cpu.emit.kernel_function import Buffer
from tilec.codegen.cpu.emit.vector_ops import PrimExpr

_LLVM = {
    "float64": "double",
    "float32": "float",
    "float16": "half",
    **{f"{sign}int{bits}": f"i{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
"""TIR's name of an element in memory -> LLVM's."""

_TEXT = """
define void @{name}(ptr %address, <{lanes} x {element}> %value) alwaysinline {{
  store <{lanes} x {element}> %value, ptr %address, align {bytes}, !nontemporal !0
  ret void
}}
"""


@contextmanager
def nontemporal_stores(elements: Iterable[str], vector_bytes: int) -> Iterator[None]:
    """Around the body of a function that streams vectors of elements of these types."""
    definitions = [_definition(element, vector_bytes) for element in sorted(set(elements))]
    if not definitions:
        yield
        return
    text = "".join([*definitions, "!0 = !{i32 1}\n"])
    with I.attr(tirx.IntImm("int32", 0), "pragma_import_llvm", StringImm(text)):
        yield


def whole(element: str, vector_bytes: int) -> int:
    """Lanes of a whole vector of elements as they lie in memory."""
    return vector_bytes * 8 // int(DataType(element).bits)


def stream(buffer: Buffer, offset: PrimExpr, value: PrimExpr, lanes: int) -> None:
    """Store a vector at an offset that is a multiple of `lanes` in a buffer that begins at a multiple of a vector."""
    address = tirx.address_of(buffer[offset])
    I.evaluate(tirx.call_extern("void", _name(str(buffer.dtype), lanes), address, value))


def _name(element: str, lanes: int) -> str:
    return f"tilec_stream_{element}x{lanes}"


def _definition(element: str, vector_bytes: int) -> str:
    lanes = whole(element, vector_bytes)
    return _TEXT.format(name=_name(element, lanes), lanes=lanes, element=_LLVM[element], bytes=vector_bytes)
