"""What the next task reads, fetched while this one computes.

A task that passes over an operand several times waits in the first pass for what comes from afar and leaves the memory
idle in all others.  So reductions fetch, little by little, what the next task reads of the operands that its loops
move: a thread takes tasks in order.  Behind the last task there is nothing to fetch, and a fetch never faults.
(Twelve convolutions of 3x3 over 512 x 7 x 7 with AVX2, whose tasks pass 14 times over 295 KB of weights: 20.4 ms
instead of 21.8.)
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from math import prod

from tvm import tirx
from tvm.tirx.script.builder import ir as I  # noqa: N812

from tilec.codegen.cpu.indices import Indices
from tilec.codegen.cpu.memory import Memories, stored
from tilec.codegen.cpu.streams import whole
from tilec.codegen.cpu.tree import Ahead, Choose, Range, Step, Tile, Tree
from tilec.codegen.cpu.vectors import PrimExpr, int64
from tilec.ir.algebra import linear_form
from tilec.ir.expr import Access, Binary, Const, Expr, Var, accesses, bound

LEAST = 4096
"""Elements that the next task must read for a fetch to be worth it."""

MOST = 4
"""Lines that are fetched at once."""

LINE = 64
"""Bytes of a line of the caches."""

_READ, _NEAR, _DATA = 0, 2, 1
"""Arguments of LLVM's `prefetch`: for reading, into a core's second cache, data."""

Loops = tuple[tuple[str, int, int], ...]
"""Variable, first value and rounds of loops around a tile, outermost first."""


def fetching(tree: Tree) -> Tree:
    """The tree, its reductions with what they fetch."""
    operands = frozenset(memory.name for memory in tree.memories if memory.kind == "operand")
    nests = (replace(nest, body=_steps(nest.body, nest.spread, operands, ())) for nest in tree.nests)
    return replace(tree, nests=tuple(nests))


def _steps(
    steps: Sequence[Step], spread: Sequence[tuple[str, int]], operands: Set[str], loops: Loops
) -> tuple[Step, ...]:
    made: list[Step] = []
    for step in steps:
        match step:
            case Range(variable, lo, hi, body):
                first, end = bound(lo), bound(hi)
                if first is not None and end is not None:
                    step = replace(step, body=_steps(body, spread, operands, (*loops, (variable, first, end - first))))
            case Choose(_, yes, no):
                yes, no = (_steps(body, spread, operands, loops) for body in (yes, no))
                step = replace(step, yes=yes, no=no)
            case Tile() if step.reduce:
                read = dict.fromkeys(access for access in accesses(step.value) if access.tensor in operands)
                found = [_ahead(access, step, spread, loops) for access in read]
                step = replace(step, ahead=tuple(each for each in found if each is not None))
        made.append(step)
    return tuple(made)


def _ahead(access: Access, tile: Tile, spread: Sequence[tuple[str, int]], loops: Loops) -> Ahead | None:
    """What comes behind all that an access reads until its task loop moves on, if the tasks of that loop read without
    gaps and more than once."""
    form, constant = linear_form(access.index[0])
    strides = {atom.name: stride for atom, stride in form.items() if isinstance(atom, Var)}
    moving = [place for place, (name, extent) in enumerate(spread) if extent > 1 and name in strides]
    if not moving or len(strides) < len(form) or min(strides.values()) < 0:
        return None
    loops = (*((name, 0, extent) for name, extent in spread[moving[-1] + 1 :]), *loops)
    sizes = {dim.name: dim.size for dim in tile.dims} | {name: rounds for name, _, rounds in loops}
    known = {name: size for name, size in sizes.items() if size is not None}
    if len(known) < len(sizes):
        return None
    span = 1 + sum(strides.get(name, 0) * (size - 1) for name, size in known.items())
    read = prod(size for name, size in known.items() if name in strides)
    passes = prod(rounds for name, _, rounds in loops if name not in strides)
    step = strides[spread[moving[-1]][0]]
    if passes == 1 or step < LEAST or not step <= span <= read:
        return None
    first: Expr = Const(constant + span + sum(strides.get(name, 0) * low for name, low, _ in loops))
    for name in (name for name, _ in spread if name in strides):
        first = Binary("+", first, Binary("*", Var(name), Const(strides[name])))
    return Ahead(access.tensor, first, step, loops)


def fetch(ahead: Ahead, rounds: Sequence[tuple[PrimExpr, int]], memories: Memories, indices: Indices) -> None:
    """Print the fetch of a part of what lies ahead, another one in every round of the loops.

    `rounds` are the loops of the tile itself, outermost first: which round it is, and how many there are.
    """
    around = [(tirx.Sub(indices.variables[name], int64(low)), count) for name, low, count in ahead.loops]
    number = int64(0)
    for each, count in (*around, *rounds):
        number = tirx.Add(tirx.Mul(number, int64(count)), each)
    part = -(-ahead.elements // prod(count for _, count in (*around, *rounds)))
    line = whole(stored(memories.ttypes[ahead.memory]), LINE)
    if part > MOST * line:
        return
    first = tirx.Add(indices.get(ahead.first), tirx.Mul(number, int64(part)))
    hints = [tirx.IntImm("int32", value) for value in (_READ, _NEAR, _DATA)]
    for offset in range(0, part, line):
        address = tirx.address_of(memories.buffers[ahead.memory][tirx.Add(first, int64(offset))])
        I.evaluate(tirx.call_llvm_intrin("void", "llvm.prefetch", address, *hints))
