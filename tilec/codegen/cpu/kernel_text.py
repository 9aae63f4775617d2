"""Kernel IR as text for people: arrays, functions, then one task of every nest; offsets are in elements.

array    A.0: f32[384] in scratch at byte 0
parallel for m_l2 in 4:
  for k_l2 in 0:8:
    C.1[%m*64 + %n] += A[%m*8 + %k]*B[%n + 64*%k] for %m in 32, %n in 64 over %k in 8
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tilec.codegen.cpu.extents import Extent
from tilec.codegen.cpu.kernel_ir import Array, CallFunction, Dim, For, If, KernelIR, Prefetch, Step, Tile
from tilec.ir.expr import Reduce, as_expr
from tilec.ir.text import text_of

_SIGNS = {"none": "=", "sum": "+=", "prod": "*=", "max": "max=", "min": "min="}


def kernel_text(kernel: KernelIR) -> str:
    """The whole kernel."""
    sizes = f"({', '.join(kernel.symbols)})" if kernel.symbols else ""
    need = f"{_extent(kernel.tasks)} tasks, {_extent(kernel.scratch_bytes)} bytes of scratch"
    lines = [
        f"kernel   {kernel.name}{sizes}: {need}",
        *(array_text(array, array.name in kernel.nontemporal) for array in kernel.memories),
    ]
    for part in kernel.parts:
        lines += [f"function {part.name}({', '.join((*part.variables, *part.arrays))}):", *_lines(part.body, "  ")]
    for nest in kernel.nests:
        spread = ", ".join(f"{name} in {_extent(extent)}" for name, extent in nest.spread)
        stripes = f" in stripes of {nest.stripe}" if nest.stripe > 1 else ""
        lines += [f"parallel for {spread}{stripes}:" if spread else "task:", *_lines(nest.body, "  ")]
    return "\n".join(lines) + "\n"


def array_text(array: Array, nontemporal: bool = False) -> str:
    """An array on one line: type, elements, and where it lies."""
    place = {"operand": "an operand", "scratch": "in scratch", "local": "local"}[array.kind]
    if array.offset is not None:
        place += f" at byte {_extent(array.offset)}"
    if array.pieces:
        place = "in registers " + " ".join(f"{offset}:+{lanes}" for offset, lanes in array.pieces)
    place += ", nontemporal" if nontemporal else ""
    return f"array    {array.name}: {array.ttype}[{_extent(array.elements)}] {place}"


def _extent(extent: Extent) -> str:
    return text_of(as_expr(extent))


def _lines(steps: Sequence[Step], indent: str) -> Iterator[str]:
    for step in steps:
        match step:
            case For(variable, lo, hi, body):
                yield f"{indent}for {variable} in {text_of(lo)}:{text_of(hi)}:"
                yield from _lines(body, indent + "  ")
            case If(condition, yes, no):
                yield f"{indent}if {text_of(condition)}:"
                yield from _lines(yes, indent + "  ")
                if no:
                    yield f"{indent}else:"
                    yield from _lines(no, indent + "  ")
            case CallFunction(part, variables, arrays):
                places = (f"{name} from {start}" if start else name for name, start in arrays)
                yield f"{indent}{part}({', '.join((*variables, *places))})"
            case Tile():
                yield indent + tile_text(step)
                yield from (f"{indent}  {prefetch_text(ahead)}" for ahead in step.ahead)


def tile_text(tile: Tile) -> str:
    """A tile on one line: what is stored, for which dimensions, over which it is reduced."""
    value = tile.value if tile.reducer is None else Reduce(tile.reducer, tuple(d.name for d in tile.reduce), tile.value)
    spatial, reduce = _dims(tile.spatial), _dims(tile.reduce)
    text = f"{text_of(tile.target)} {_SIGNS[tile.combine]} {text_of(value)}"
    text += (f" for {spatial}" if spatial else "") + (f" over {reduce}" if reduce else "")
    return text + (f" on {tile.unit}" if tile.unit else "")


def prefetch_text(ahead: Prefetch) -> str:
    """A prefetch on one line: runs of elements, and the loops during which they are fetched."""
    runs = f"{ahead.memory}[{text_of(ahead.first)}:+{ahead.run}]"
    if ahead.count > 1:
        runs += f" and {ahead.count - 1} more, {ahead.pitch} apart"
    loops = ", ".join(f"{name} in {first}:+{rounds}" for name, first, rounds in ahead.loops)
    return f"prefetch {runs}{' for writing' if ahead.written else ''}" + (f" during {loops}" if loops else "")


def _dims(dims: Iterable[Dim]) -> str:
    return ", ".join(f"{dim.name} in {text_of(dim.extent)}" for dim in dims)
