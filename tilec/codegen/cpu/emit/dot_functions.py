"""Sums of products of the elements of words: instructions of the processor, or what they stand for (L21).

TIR has neither these instructions nor all the types that they take: functions of LLVM text, one for each number of
lanes, stand for them and are inlined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tvm import tirx
from tvm.ir import StringImm
from tvm.tirx.script.builder import ir as I  # noqa: N812

from tilec.codegen.cpu.dot_instructions import INSTRUCTIONS, DotInstruction
from tilec.codegen.cpu.emit.vector_ops import COMPUTED, PrimExpr, vector_type
from tilec.ir.dots import DOTS, Dot
from tilec.ir.types import TTYPES

_LLVM = {"i32": "i32", "f32": "float"}


@contextmanager
def dot_functions(used: Iterable[tuple[str, str]], architecture: str, vector_bytes: int) -> Iterator[None]:
    """Around the body of a function that calls these dot functions with these units."""
    pairs = sorted(set(used))
    if not pairs:
        yield
        return
    widths = [1 << power for power in range((vector_bytes // 4).bit_length())]
    lines = [line for pair in pairs for lanes in widths for line in _definition(*pair, lanes, architecture)]
    with I.attr(tirx.IntImm("int32", 0), "pragma_import_llvm", StringImm("\n".join([*dict.fromkeys(lines), ""]))):
        yield


def dot(name: str, unit: str, lanes: int, total: PrimExpr, x: PrimExpr, w: PrimExpr) -> PrimExpr:
    """`total` and the products of the elements of two words, in every lane, by a unit; by shifts without one."""
    kind = vector_type(COMPUTED[DOTS[name].accumulator], lanes)
    return tirx.call_pure_extern(kind, _symbol(name, unit, lanes), total, x, w)


def _symbol(name: str, unit: str, lanes: int) -> str:
    return f"tilec_{name if unit else f'{name}_shifted'}x{lanes}"


def _vector(element: str, lanes: int) -> str:
    return element if lanes == 1 else f"<{lanes} x {element}>"


def _definition(name: str, unit: str, lanes: int, architecture: str) -> tuple[str, ...]:
    """LLVM text of a function of so many words, as one line for each definition."""
    function = DOTS[name]
    word, total = _vector("i32", lanes), _vector(_LLVM[function.accumulator], lanes)
    instruction = INSTRUCTIONS.get((architecture, name)) if unit else None
    if instruction is None or lanes not in instruction.intrinsics:
        declared, body = _expanded(function, lanes)
    else:
        declared, body = _instruction(function, instruction, lanes)
    head = f"define {total} @{_symbol(name, unit, lanes)}({total} %total, {word} %x, {word} %w) alwaysinline {{"
    return (*declared, "\n  ".join([head, *body]) + "\n}")


def _instruction(function: Dot, instruction: DotInstruction, lanes: int) -> tuple[tuple[str, ...], list[str]]:
    total, name = _vector(_LLVM[function.accumulator], lanes), instruction.intrinsics[lanes]
    operand = _vector(instruction.operand, lanes * function.count)
    body = [f"%{n}.of = bitcast {_vector('i32', lanes)} %{n} to {operand}" for n in ("x", "w")]
    kinds = [total, operand, operand] if instruction.adds else [operand, operand]
    names = ["%total", "%x.of", "%w.of"][-len(kinds) :]
    called = ", ".join(f"{kind} {value}" for kind, value in zip(kinds, names, strict=True))
    body.append(f"%new = call {total} @{name}({called})")
    result = "%new"
    if not instruction.adds:
        body.append(f"%sum = add {total} %total, %new")
        result = "%sum"
    return (f"declare {total} @{name}({', '.join(kinds)})",), [*body, f"ret {total} {result}"]


def _expanded(function: Dot, lanes: int) -> tuple[tuple[str, ...], list[str]]:
    """Every element by shifts, products and sums of their own."""
    word, total = _vector("i32", lanes), _vector(_LLVM[function.accumulator], lanes)
    real = function.accumulator == "f32"
    suffix = "f32" if lanes == 1 else f"v{lanes}f32"
    body, result = [], "%total"
    for number in range(function.count):
        for name, ttype in zip(("x", "w"), function.inputs, strict=True):
            body += _element(name, number, ttype, lanes)
        if real:
            args = f"{total} %x{number}, {total} %w{number}, {total} {result}"
            body.append(f"%sum{number} = call {total} @llvm.fma.{suffix}({args})")
        else:
            body += [f"%p{number} = mul {word} %x{number}, %w{number}"]
            body += [f"%sum{number} = add {word} {result}, %p{number}"]
        result = f"%sum{number}"
    declared = (f"declare {total} @llvm.fma.{suffix}({total}, {total}, {total})",) if real else ()
    return declared, [*body, f"ret {total} {result}"]


def _element(name: str, number: int, ttype: str, lanes: int) -> list[str]:
    """The element of a word at a position, as an i32 or f32."""
    word, bits = _vector("i32", lanes), TTYPES[ttype].bits
    top, at = f"%{name}{number}.top", f"%{name}{number}"
    shifted = f"{top} = shl {word} %{name}, {_splat(32 - bits * (number + 1), lanes)}"
    if TTYPES[ttype].kind == "float":  # a bf16 is the upper half of an f32
        cut = f"{at}.bits = and {word} {top}, {_splat(-65536, lanes)}"
        return [shifted, cut, f"{at} = bitcast {word} {at}.bits to {_vector('float', lanes)}"]
    shift = "lshr" if TTYPES[ttype].kind == "uint" else "ashr"
    return [shifted, f"{at} = {shift} {word} {top}, {_splat(32 - bits, lanes)}"]


def _splat(value: int, lanes: int) -> str:
    return str(value) if lanes == 1 else f"splat (i32 {value})"
