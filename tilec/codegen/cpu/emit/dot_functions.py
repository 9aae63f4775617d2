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
    if instruction is None or lanes > max(instruction.intrinsics):
        one_of_integers = lanes == 1 and function.accumulator != "f32"
        declared, body = _one_word(function) if one_of_integers else _expanded(function, lanes)
    else:
        declared, body = _instruction(function, instruction, lanes)
    head = f"define {total} @{_symbol(name, unit, lanes)}({total} %total, {word} %x, {word} %w) alwaysinline {{"
    return (*declared, "\n  ".join([head, *body]) + "\n}")


def _instruction(function: Dot, instruction: DotInstruction, lanes: int) -> tuple[tuple[str, ...], list[str]]:
    """The instruction of the fewest words; what it has more of them are zeros, and are left out of the result."""
    width = min(each for each in instruction.intrinsics if each >= lanes)
    accumulator = _LLVM[function.accumulator]
    total, name = _vector(accumulator, width), instruction.intrinsics[width]
    operand = _vector(instruction.operand, width * function.count)
    body: list[str] = []
    for source, element in (("x", "i32"), ("w", "i32"), ("total", accumulator)):
        body += _filled_up(source, element, lanes, width)
    body += [f"%{n}.of = bitcast {_vector('i32', width)} %{n}.wide to {operand}" for n in ("x", "w")]
    kinds = [total, operand, operand] if instruction.adds else [operand, operand]
    names = ["%total.wide", "%x.of", "%w.of"][-len(kinds) :]
    called = ", ".join(f"{kind} {value}" for kind, value in zip(kinds, names, strict=True))
    body.append(f"%new = call {total} @{name}({called})")
    if not instruction.adds:
        body.append(f"%sum = add {total} %total.wide, %new")
    body += _cut("%new" if instruction.adds else "%sum", accumulator, lanes, width)
    return (f"declare {total} @{name}({', '.join(kinds)})",), [*body, f"ret {_vector(accumulator, lanes)} %result"]


def _filled_up(name: str, element: str, lanes: int, width: int) -> list[str]:
    """A vector with zeros behind it, as `%NAME.wide`."""
    wide, narrow = _vector(element, width), _vector(element, lanes)
    if lanes == 1:
        return [f"%{name}.wide = insertelement {wide} zeroinitializer, {narrow} %{name}, i64 0"]
    places = ", ".join(f"i32 {min(place, lanes)}" for place in range(width))
    zeros = f"{narrow} zeroinitializer"
    return [f"%{name}.wide = shufflevector {narrow} %{name}, {zeros}, <{width} x i32> <{places}>"]


def _cut(value: str, element: str, lanes: int, width: int) -> list[str]:
    """The first elements of a vector, as `%result`."""
    wide = _vector(element, width)
    if lanes == 1:
        return [f"%result = extractelement {wide} {value}, i64 0"]
    places = ", ".join(f"i32 {place}" for place in range(lanes))
    return [f"%result = shufflevector {wide} {value}, {wide} poison, <{lanes} x i32> <{places}>"]


def _one_word(function: Dot) -> tuple[tuple[str, ...], list[str]]:
    """The elements of one word as a vector of integers.

    LLVM 22 would join shifts of single words to vectors of different shifts, of which lanes came out wrong (seen: one
    product of 51 of an attention between 17 tokens).
    """
    word = _vector("i32", function.count)
    body: list[str] = []
    for name, ttype in zip(("x", "w"), function.inputs, strict=True):
        parts = _vector(f"i{TTYPES[ttype].bits}", function.count)
        extend = "zext" if TTYPES[ttype].kind == "uint" else "sext"
        body += [
            f"%{name}.of = bitcast i32 %{name} to {parts}",
            f"%{name}.wide = {extend} {parts} %{name}.of to {word}",
        ]
    reduce = f"llvm.vector.reduce.add.v{function.count}i32"
    body += [f"%products = mul {word} %x.wide, %w.wide", f"%new = call i32 @{reduce}({word} %products)"]
    return (f"declare i32 @{reduce}({word})",), [*body, "%sum = add i32 %total, %new", "ret i32 %sum"]


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
