"""Verification of places: aligned, apart while buffers live together, within the capacity of their address space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilec.ir.address_spaces import AddressSpace, address_spaces, place_alignment, place_bytes
from tilec.ir.concurrency import iterations_per_unit
from tilec.ir.evaluate import integer
from tilec.ir.expr import Const, variables
from tilec.ir.lifetimes import spans, statements
from tilec.ir.program import Allocate, Program
from tilec.ir.program_text import statement_text


@dataclass(frozen=True, slots=True)
class _Bytes:
    """Bytes `[begin, end)` of a buffer, in use from position `born` of the program to position `dies`."""

    begin: int
    end: int
    born: int
    dies: int
    name: str


def check_places(program: Program, symbols: Mapping[str, int]) -> list[str]:
    """Problems with the places of a program with a valid structure; those whose size or offset depends on a symbol
    without a value are not followed."""
    spaces = address_spaces(program.levels)
    problems: list[str] = []
    used: dict[AddressSpace, list[_Bytes]] = {}
    levels = {level.name: level for level in program.levels}
    often = iterations_per_unit(program.body, program.levels) if spaces else {}
    alive = spans(program.body)
    for statement in statements(program.body):
        if not isinstance(statement, Allocate):
            continue
        buffer, space = statement.buffer, spaces.get(statement.buffer.level)
        if space is None:
            if buffer.offset is not None:
                problems.append(f"{statement_text(statement)}: {buffer.level} has no addresses")
            continue
        if buffer.offset is None:
            if buffer.name in alive:
                problems.append(f"{statement_text(statement)}: has no place")
            continue
        size = place_bytes(buffer, space, levels[buffer.level], often.get(buffer.name, Const(1)))
        if not all(variables(expr) <= symbols.keys() for expr in (size, buffer.offset)):
            continue
        begin, length = int(integer(buffer.offset, symbols)), int(integer(size, symbols))
        if begin < 0 or begin % (unit := place_alignment(buffer, space)):
            problems.append(f"{statement_text(statement)}: is not aligned to {unit} bytes")
        if buffer.name in alive:
            used.setdefault(space, []).append(_Bytes(begin, begin + length, *alive[buffer.name], buffer.name))
    for space, there in used.items():
        problems += _overlaps(space, there)
        problems += _overflow(space, there)
    return problems


def _overlaps(space: AddressSpace, used: list[_Bytes]) -> list[str]:
    """Buffers that live together and have bytes in common."""
    problems: list[str] = []
    ordered = sorted((b for b in used if b.begin < b.end), key=lambda b: (b.begin, b.end))
    for number, one in enumerate(ordered):
        for other in ordered[number + 1 :]:
            if other.begin >= one.end:
                break
            if one.born <= other.dies and other.born <= one.dies:
                problems.append(f"{one.name} and {other.name} live together and overlap in {space.name}")
    return problems


def _overflow(space: AddressSpace, used: list[_Bytes]) -> list[str]:
    end = max(b.end for b in used)
    if space.capacity is None or end <= space.capacity:
        return []
    kind = "pool" if space.pooled else "level"
    return [f"{kind} {space.name}: places end at byte {end}, its capacity is {space.capacity}"]
