"""Text form of tile programs for people: one line a statement, windows in tensor coordinates."""

from __future__ import annotations

from collections.abc import Iterator

from tilec.ir.algebra import simplify
from tilec.ir.expr import Access, Binary, Const, Expr, Scalar, Var, rename_tensors
from tilec.ir.program import (
    Allocate,
    Barrier,
    Buffer,
    ComputeTile,
    Fill,
    LoadTiles,
    Loop,
    Program,
    Statement,
    StoreTiles,
    Wait,
)
from tilec.ir.scopes import scope_of
from tilec.ir.text import text_of

_SIGNS = {"sum": "+", "prod": "*"}


def interval_text(lo: Expr, hi: Expr) -> str:
    """`lo:+width` when the width is a number, `lo:hi` otherwise; a single point is its index."""
    width = simplify(Binary("-", hi, lo))
    if width == Const(1):
        return text_of(lo)
    if isinstance(lo, Const) or not isinstance(width, Const):
        return f"{text_of(lo)}:{text_of(hi)}"
    return f"{text_of(lo)}:+{text_of(width)}"


def window_text(buffer: Buffer) -> str:
    """The window of a buffer, `C[m_l2*32:+32, 0:64]`."""
    pairs = zip(buffer.lo, buffer.hi, strict=False)  # also for the verifier's complaints
    return f"{buffer.tensor}[{', '.join(interval_text(lo, hi) for lo, hi in pairs)}]"


def _value(value: Scalar) -> str:
    return text_of(Const(value))


def _shape(buffer: Buffer) -> str:
    return f"{buffer.ttype}[{', '.join(text_of(n) for n in buffer.shape)}]"


def _storage(buffer: Buffer) -> str:
    layout = f", layout {' '.join(map(str, buffer.layout))}" if buffer.layout else ""
    layout += f", pad {buffer.pad}" if buffer.pad else ""
    layout += f", swizzle {buffer.swizzle}" if buffer.swizzle else ""
    copies = f", {buffer.copies} copies" if buffer.copies != 1 else ""
    return layout + copies + (f", at byte {text_of(buffer.offset)}" if buffer.offset is not None else "")


def statement_text(statement: Statement) -> str:
    """A statement on one line; a loop without its body."""
    match statement:
        case Allocate(b):
            return f"allocate {b.name} {_shape(b)} at {b.level} = {window_text(b)}{_storage(b)}"
        case Fill(buffer, value):
            return f"fill     {buffer} with {_value(value)}"
        case LoadTiles(target, source, fill, stages):
            outside = f", {_value(fill)} outside" if fill is not None else ""
            return f"load     {target} from {source}{outside}{f', {stages} stages' if stages != 1 else ''}"
        case Wait(buffers):
            return f"wait     {', '.join(buffers)}"
        case ComputeTile(expr, box, target, operands, accumulate, unit):
            output = text_of(Access(target, tuple(Var(i) for i in expr.spatial)))
            body = text_of(rename_tensors(expr.body, dict(operands)))
            over = ", ".join(f"{i} in {interval_text(lo, hi)}" for i, lo, hi in box)
            sign = f"{_SIGNS.get(expr.reducer or '', expr.reducer)}=" if accumulate else "="
            return (
                f"compute  {output} {sign} {body}" + (f" for {over}" if over else "") + (f" on {unit}" if unit else "")
            )
        case StoreTiles(target, source, lo, hi, combine):
            pairs = ", ".join(interval_text(a, b) for a, b in zip(lo, hi, strict=False))
            part = f"[{pairs}]" if pairs else ""
            return f"store    {source}{part} to {target}{f' by {combine}' if combine != 'none' else ''}"
        case Barrier(scope):
            return f"barrier  {scope}"
        case Loop(variable, extent, _, kind, scope, stripe):
            stripes = f" in stripes of {stripe}" if stripe != 1 else ""
            spread = f" spread over {scope}" if kind == "spread" else ""
            return f"for {variable} in {text_of(extent)}{spread}{stripes}:"


def _lines(body: tuple[Statement, ...], indent: str) -> Iterator[str]:
    for statement in body:
        yield indent + statement_text(statement)
        if isinstance(statement, Loop):
            yield from _lines(statement.body, indent + "  ")


def program_text(program: Program) -> str:
    """The whole program: levels, parameters, statements, indented by loop."""
    head = [f"program {program.name}({', '.join(program.symbols)})"]
    for level in program.levels:
        size = "unbounded" if level.capacity is None else f"{level.capacity} bytes"
        units = f", {level.units} x {scope_of(level)}" if level.units != 1 or level.scope else ""
        pool = f", pool {level.pool.name} of {level.pool.capacity} bytes" if level.pool is not None else ""
        head.append(f"level    {level.name}: {size}, {level.managed}{units}{pool}")
    for parameter in program.parameters:
        role = "output" if parameter.name in program.outputs else "input "
        head.append(f"{role}   {parameter.name} {_shape(parameter)}{_storage(parameter)}")
    return "\n".join([*head, *_lines(program.body, "")]) + "\n"
