"""Verifier of the kernel IR of GPUs: rules that hold behind all passes, whichever they are.

Steps: blocks have whole units, and no more threads or shared memory than there are; all threads reach a barrier, a
group of copies and a copy into shared memory; units beyond the iterations of a nest do nothing of their own; loads are
of the window that their array has; vectors and asynchronous copies are of sizes that there are.
Lanes: along different axes they are different bits of a lane's number; an array is held as the tiles that make it have
their points, and as those that read it can read it.
Points and elements: see `verify_points`; places: see `verify_places`; shared memory: see `verify_shared_memory`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilec.codegen.gpu.copy_windows import WIDEST
from tilec.codegen.gpu.kernel_ir import (
    Barrier,
    Commit,
    Copy,
    Declare,
    Fence,
    Fill,
    For,
    If,
    KernelIR,
    Let,
    Step,
    Tile,
    Units,
    Wait,
    tiles,
)
from tilec.codegen.gpu.kernel_text import step_text
from tilec.codegen.gpu.lane_reads import misplaced, readable, reads_of, result_map
from tilec.codegen.gpu.lanes import LaneMap
from tilec.codegen.gpu.passes.choose_launch import MOST_THREADS
from tilec.codegen.gpu.passes.vectorize_copies import ASYNCHRONOUS
from tilec.codegen.gpu.verify_places import check_places
from tilec.codegen.gpu.verify_points import check_points
from tilec.codegen.gpu.verify_shared_memory import check_shared_memory
from tilec.ir.expr import Expr, constant_value, variables
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.program import Buffer
from tilec.ir.types import TTYPES


def check_kernel(kernel: KernelIR, ranges: KnownRanges) -> tuple[str, ...]:
    """The rules that a kernel breaks, empty for a legal one; `ranges` are those of its symbols."""
    bound = frozenset((*kernel.symbols, *(loop.variable for loop in kernel.nest)))
    problems = [*_launch(kernel), *check_places(kernel), *_steps(kernel, kernel.body, bound, None), *_lanes(kernel)]
    return tuple(problems or [*check_points(kernel, ranges)] or check_shared_memory(kernel))


def _launch(kernel: KernelIR) -> Iterator[str]:
    launch, capacity = kernel.launched, kernel.levels[1].capacity
    if launch.threads % launch.lanes or not 0 < launch.threads <= MOST_THREADS:
        yield f"{launch.threads} threads are no block of units of {launch.lanes}"
    shared = constant_value(launch.shared_bytes)
    if shared is not None and capacity is not None and shared > capacity:
        yield f"{shared} bytes of shared memory of {capacity}"


def _steps(kernel: KernelIR, body: Sequence[Step], bound: frozenset[str], around: Units | None) -> Iterator[str]:
    """The rules of steps inside the innermost nest `around`, with the variables that are `bound`."""
    for step in body:
        for name in sorted(_used(step) - bound):
            yield f"{step_text(kernel, step)}: {name} is not bound"
        yield from (f"{step_text(kernel, step)}: {problem}" for problem in _alone(kernel, step, around))
        match step:
            case Units(nest, inside):
                yield from _steps(kernel, inside, bound | {loop.variable for loop in nest}, step)
            case For(variable, _, inside) | Let(variable, _, inside):
                yield from _steps(kernel, inside, bound | {variable}, around)
            case If(_, _, inside):
                yield from _steps(kernel, inside, bound, around)
            case Tile():
                yield from _steps(kernel, step.meanwhile, bound, around)


def _used(step: Step) -> set[str]:
    """The variables that a step names, without the loops of its own."""
    exprs: tuple[Expr, ...] = ()
    match step:
        case Declare(buffer, copy):
            exprs = (*buffer.lo, *buffer.hi, copy)
        case Copy():
            exprs = (*step.lo, *step.hi)
        case For(_, extent):
            exprs = (extent,)
        case If(_, end):
            exprs = (end,)
        case Let(_, value):
            exprs = (value,)
        case Tile(_, box):
            exprs = tuple(end for _, lo, hi in box for end in (lo, hi))
    return {name for each in exprs for name in variables(each)}


def _alone(kernel: KernelIR, step: Step, around: Units | None) -> Iterator[str]:
    """The rules of a step by itself."""
    private = isinstance(step, Tile) or (isinstance(step, Copy | Fill) and kernel.is_private(_array(step)))
    if isinstance(step, Barrier | Fence | Commit | Wait) or (isinstance(step, Copy | Fill) and not private):
        if around is not None and around.take != "together":
            yield "not all threads reach it"
    elif private and isinstance(step, Tile | Copy | Fill):
        active = around.active(kernel.launched.units) if around is not None else None
        if step.active != active:
            yield "units without an iteration act"
    if isinstance(step, Copy):
        yield from _copy(kernel, step)
    if isinstance(step, Units) and step.take != "turns" and (step.count or 0) > kernel.launched.units:
        yield f"{step.count} iterations for {kernel.launched.units} units"


def _array(step: Copy | Fill) -> Buffer:
    return step.upper if isinstance(step, Copy) else step.buffer


def _copy(kernel: KernelIR, copy: Copy) -> Iterator[str]:
    if copy.up and (copy.lo, copy.hi) != (copy.upper.lo, copy.upper.hi):
        yield "it loads another window than its array has"
    size = TTYPES[copy.lower.ttype].bits // 8 * copy.vector
    if copy.vector > 1 and size > WIDEST:
        yield f"no thread copies {size} bytes at once"
    if copy.arrival == "later" and (size not in ASYNCHRONOUS or kernel.is_private(copy.upper) or not copy.up):
        yield "no copy of this kind arrives later"


def _lanes(kernel: KernelIR) -> Iterator[str]:
    lanes = kernel.launched.lanes
    for name, held in kernel.held.items():
        if not _is_bijection(held, lanes):
            yield f"{name}: its axes share bits of the number of a lane"
    for tile in tiles(kernel.body):
        text = step_text(kernel, tile)
        if not _is_bijection(tile.lanes, lanes):
            yield f"{text}: its axes share bits of the number of a lane"
        if kernel.is_private(tile.target) and result_map(tile) != kernel.held[tile.target.name]:
            yield f"{text}: {tile.target.name} is held otherwise"
        wrong = misplaced(tile, kernel.held)
        if wrong is not None:
            yield f"{text}: {wrong} is held otherwise than the unit has it"
        for _, buffer in tile.operands:
            held = kernel.held.get(buffer.name, ())
            if kernel.is_private(buffer) and not all(
                readable(tile, buffer, held, access, guarded) for access, guarded in reads_of(tile, buffer.name)
            ):
                yield f"{text}: its lanes cannot read {buffer.name}"


def _is_bijection(axes: LaneMap, lanes: int) -> bool:
    """Whether lanes along different axes are different digits of the number of a lane."""
    end = 1
    for each in sorted(axes, key=lambda each: each.step):
        if each.step % end or each.count < 1 or each.vector < 1:
            return False
        end = each.step * each.count
    return lanes % end == 0
