"""What a plan may not ask of the code of a kernel: what the kernel that was made of it does not have (codes of
`plan_errors`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from tilec.codegen.gpu.decisions import Decisions, reduced_in
from tilec.codegen.gpu.kernel_ir import Copy, For, KernelIR, Tile, steps, tiles
from tilec.codegen.gpu.passes.approximate_functions import FAST
from tilec.codegen.gpu.passes.block_tiles import HELD
from tilec.codegen.gpu.passes.choose_launch import wrong_threads
from tilec.codegen.gpu.passes.unroll_loops import AHEAD, streams
from tilec.codegen.gpu.passes.vectorize_copies import ASYNCHRONOUS
from tilec.ir.expr import constant_value
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.plan import Refusal, Variant
from tilec.ir.types import TTYPES


def check_decisions(kernel: KernelIR, variant: Variant, ranges: KnownRanges) -> tuple[Refusal, ...]:
    """What a kernel does not do as a variant says; empty for a legal one. `ranges` are those of symbols."""
    wanted, made, level = Decisions.of(variant), Decisions.in_kernel(kernel), kernel.levels[1].name
    if wanted is None:
        tables = {"unrolling": variant.unroll, "number of blocks": variant.resident, "arrival": variant.asynchronous}
        why = f"the plan does not say the threads of a block at {level}"
        unused = [what for what, table in ({**tables, "approximation": variant.fast}).items() if table]
        return tuple(Refusal(kernel.name, "unused", {"what": what, "level": level, "why": why}) for what in unused)
    found = list(_launch(kernel, wanted, made, ranges))
    found += [_late(kernel, tensor) for tensor in sorted(wanted.asynchronous - made.asynchronous)]
    found += [_fast(fn) for fn in sorted(wanted.fast - made.fast)]
    found += [_unroll(kernel, *each) for each in sorted(wanted.unroll - made.unroll)]
    return (*found, *_bodies(kernel))


def _launch(kernel: KernelIR, wanted: Decisions, made: Decisions, ranges: KnownRanges) -> Iterator[Refusal]:
    level, lanes = kernel.levels[1].name, kernel.launched.lanes
    if wanted.threads != made.threads:
        why = wrong_threads(kernel, wanted.threads, lanes, ranges)
        yield Refusal(level, "threads", {"size": wanted.threads, "why": why})
    elif wanted.resident != made.resident:
        why = f"a core has memory and units for {made.resident}"
        yield Refusal(level, "resident", {"size": wanted.resident, "why": why})


def _late(kernel: KernelIR, tensor: str) -> Refusal:
    level = kernel.levels[1].name
    loads = (step for step in steps(kernel.body) if isinstance(step, Copy) and step.up)
    load = next((each for each in loads if each.upper.tensor == tensor and not kernel.is_private(each.upper)), None)
    why = "missing elements of it are no zeros, or a pipeline counts the loads around it"
    if load is None:
        why = "no thread loads it there"
    elif load.upper.ttype != load.lower.ttype:
        why = f"it is converted to {load.upper.ttype} on its way"
    elif (size := TTYPES[load.lower.ttype].bits // 8 * load.vector) not in ASYNCHRONOUS:
        why = f"a thread copies {size} bytes of it at once, not {_either(ASYNCHRONOUS)}"
    return Refusal(tensor, "arrival", {"level": level, "why": why})


def _fast(fn: str) -> Refusal:
    why = "nothing computes it" if fn in FAST else f"only {', '.join(sorted(FAST))} have an approximation"
    return Refusal(fn, "fast", {"why": why})


def _unroll(kernel: KernelIR, node: str, iterator: str, points: int) -> Refusal:
    possible = {n for tile in tiles(kernel.body) if tile.expr.tensor == node for n in _possible(tile, iterator)}
    loops = (step for step in steps(kernel.body) if isinstance(step, For) and streams(kernel, step))
    moved = (each for loop in loops for each in reduced_in(loop))
    possible |= {AHEAD * turn for name, i, turn in moved if (name, i) == (node, iterator)}
    others = sorted(possible - {points})
    why = f"{_either(others)} can" if others else "no lane has several"
    return Refusal(node, "unroll", {"iterator": iterator, "size": points, "why": why})


def _possible(tile: Tile, iterator: str) -> Iterator[int]:
    """Points along an iterator that one body of a tile may cover."""
    axis = next(each for each in tile.axes if each.name == iterator)
    rounds = constant_value(axis.outer[1])
    if tile.matrix is None:
        yield from (axis.inner[1], *((rounds * axis.inner[1],) if rounds is not None else ()))
    elif iterator == tile.matrix.product.depth:
        count = -(-(rounds or 0) * axis.inner[1] // tile.matrix.unit.depth)
        yield from (n * tile.matrix.unit.depth for n in range(1, count + 1) if count % n == 0)


def _bodies(kernel: KernelIR) -> Iterator[Refusal]:
    """Tiles of which a lane computes more points at once than a compiler keeps in registers."""
    for tile in tiles(kernel.body):
        if prod(tile.together.values()) > HELD:
            axis = max(tile.axes, key=lambda axis: tile.together.get(axis.outer[0], 1))
            why = f"a lane computes {prod(tile.together.values())} points at once then, of {HELD} at most"
            points = tile.together.get(axis.outer[0], 1) * axis.inner[1]
            yield Refusal(tile.expr.tensor, "unroll", {"iterator": axis.name, "size": points, "why": why})


def _either(numbers: Sequence[int]) -> str:
    *some, last = map(str, numbers)
    return f"{', '.join(some)} or {last}" if some else last
