"""The passes over a kernel, in the order in which they run; nothing else makes or changes kernel IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from tilec.codegen.cpu.decisions import UNDECIDED, Decisions
from tilec.codegen.cpu.emit.expand_pow import expand_pow
from tilec.codegen.cpu.kernel_ir import KernelIR, Step, Tile, calls, tiles
from tilec.codegen.cpu.open_sizes import OpenSizes
from tilec.codegen.cpu.passes.assign_storage import assign_storage
from tilec.codegen.cpu.passes.block_tiles import block_tiles
from tilec.codegen.cpu.passes.flatten_statements import fuse
from tilec.codegen.cpu.passes.outline_reductions import outline_reductions
from tilec.codegen.cpu.passes.prefetch_next_task import prefetch_next_task
from tilec.codegen.cpu.passes.prefetch_operands import prefetch_operands
from tilec.codegen.cpu.passes.promote_registers import promote_registers
from tilec.codegen.cpu.passes.scratch_allocation import allocate_scratch
from tilec.codegen.cpu.passes.share_functions import share_functions
from tilec.codegen.cpu.passes.specialize_guards import specialize_guards, specialize_open_guards
from tilec.codegen.cpu.rewrite_tiles import rewrite_tiles
from tilec.codegen.cpu.target import CpuTarget
from tilec.codegen.cpu.verify_kernel import check_kernel
from tilec.errors import TilecError
from tilec.ir.expr import accesses
from tilec.ir.known_ranges import Ranges
from tilec.ir.program import Program
from tilec.ir.sizes import SymbolRange


@dataclass(frozen=True, slots=True)
class KernelContext:
    """Facts beside the kernel that passes read: its tile program, the processor, results too `large` for the caches,
    the decisions of the plan, and the ranges of the program's symbols where the kernel runs."""

    program: Program
    target: CpuTarget
    large: frozenset[str] = frozenset()
    decisions: Decisions = UNDECIDED
    symbol_ranges: Mapping[str, SymbolRange] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def sizes(self) -> OpenSizes:
        """The sizes that the kernel takes as arguments."""
        return OpenSizes.of(self.program.symbols, self.symbol_ranges)


@dataclass(frozen=True, slots=True)
class KernelPass:
    """A pass: the field's name, its rule in a sentence, and the kernel that it makes of another one."""

    name: str
    rule: str
    run: Callable[[KernelIR, KernelContext], KernelIR]


Observe = Callable[[str, KernelIR], None]
"""Called after every pass with its name and the kernel."""


def _assign_storage(_kernel: KernelIR, context: KernelContext) -> KernelIR:
    return assign_storage(context.program, context.target, context.sizes)


def _expand_pow(kernel: KernelIR, _context: KernelContext) -> KernelIR:
    ttypes = {array.name: array.ttype for array in kernel.memories}

    def expanded(tile: Tile, _ranges: Ranges) -> tuple[Step, ...]:
        return (replace(tile, value=expand_pow(tile.value, ttypes)),)

    return rewrite_tiles(kernel, expanded)


def _specialize_guards(kernel: KernelIR, context: KernelContext) -> KernelIR:
    if not kernel.symbols:
        return rewrite_tiles(kernel, specialize_guards)
    return rewrite_tiles(kernel, specialize_open_guards, context.sizes.known)


def _fuse_dimensions(kernel: KernelIR, context: KernelContext) -> KernelIR:
    local = frozenset(array.name for array in kernel.memories if array.kind == "local")

    def fused(tile: Tile, _ranges: Ranges) -> tuple[Step, ...]:
        return (fuse(tile, local, context.target.lanes(tile.ttype)),)

    return rewrite_tiles(kernel, fused)


def _promote_registers(kernel: KernelIR, context: KernelContext) -> KernelIR:
    return promote_registers(kernel, context.target, context.decisions.nodes, context.sizes)


def _allocate_scratch(kernel: KernelIR, _context: KernelContext) -> KernelIR:
    return allocate_scratch(kernel)


def _block_tiles(kernel: KernelIR, context: KernelContext) -> KernelIR:
    return block_tiles(kernel, context.target, context.decisions.nodes, context.sizes)


def _prefetch_operands(kernel: KernelIR, context: KernelContext) -> KernelIR:
    return prefetch_operands(kernel, context.target.costs, context.decisions.fetched("step"), context.sizes)


def _prefetch_next_task(kernel: KernelIR, context: KernelContext) -> KernelIR:
    fetched = context.decisions.fetched("task")
    results = context.large & memories_read(kernel) if fetched is None else fetched
    return prefetch_next_task(kernel, context.target.costs, results, fetched, context.sizes)


def _nontemporal_stores(kernel: KernelIR, context: KernelContext) -> KernelIR:
    operands = frozenset(array.name for array in kernel.memories if array.kind == "operand")
    streamed = context.decisions.streamed
    streamed = context.large - memories_read(kernel) if streamed is None else streamed
    return replace(kernel, nontemporal=streamed & operands)


def _outline_reductions(kernel: KernelIR, _context: KernelContext) -> KernelIR:
    return outline_reductions(kernel)


def _share_functions(kernel: KernelIR, _context: KernelContext) -> KernelIR:
    return share_functions(kernel)


def memories_read(kernel: KernelIR) -> frozenset[str]:
    """Arrays that a kernel reads."""
    reads: dict[str, frozenset[str]] = {}
    arrays = {part.name: part.arrays for part in kernel.parts}

    def read(body: Sequence[Step]) -> frozenset[str]:
        inside = list(tiles(tuple(body)))
        found = {tile.target.tensor for tile in inside if tile.combine != "none"}
        found |= {access.tensor for tile in inside for access in accesses(tile.value)}
        for call in calls(body):
            given = zip(arrays[call.part], call.arrays, strict=True)
            found |= {name for own, (name, _) in given if own in reads[call.part]}
        return frozenset(found)

    for part in kernel.parts:  # those that others call come first
        reads[part.name] = read(part.body)
    return frozenset().union(*(read(nest.body) for nest in kernel.nests))


KERNEL_PASSES = (
    KernelPass(
        "assign_storage",
        "Every buffer gets an array or is a view of another one; loops are cut where the sizes inside them change.",
        _assign_storage,
    ),
    KernelPass("expand_pow", "Powers by small constants become products, quotients and square roots.", _expand_pow),
    KernelPass(
        "specialize_guards",
        "A condition on indices that holds at all points of a tile, or at none, is decided once for the tile.",
        _specialize_guards,
    ),
    KernelPass(
        "fuse_dimensions",
        "Neighbouring dimensions of a tile that every offset passes through without a gap become one.",
        _fuse_dimensions,
    ),
    KernelPass(
        "promote_registers",
        "Local arrays that all tiles touch in the same pieces at constant offsets become registers, others scratch.",
        _promote_registers,
    ),
    KernelPass(
        "allocate_scratch",
        "Arrays in scratch get places, open sizes last; those of one type that are never in use at once share one.",
        _allocate_scratch,
    ),
    KernelPass(
        "block_tiles",
        "Tiles are cut into vectors and unrolled bodies: the full tile of a node as planned, others by their size.",
        _block_tiles,
    ),
    KernelPass(
        "prefetch_operands",
        "A reduction fetches the part of its operands that the loop around it comes to next.",
        _prefetch_operands,
    ),
    KernelPass(
        "prefetch_next_task",
        "The longest reduction of a task fetches what its other tiles wait for in the next task.",
        _prefetch_next_task,
    ),
    KernelPass(
        "nontemporal_stores",
        "Results too large for the caches that the kernel does not read are stored past them.",
        _nontemporal_stores,
    ),
    KernelPass(
        "outline_reductions",
        "Loops that reduce become functions of their own where a task does anything else.",
        _outline_reductions,
    ),
    KernelPass(
        "share_functions",
        "Functions that differ in the names of arrays and in constant offsets alone are one.",
        _share_functions,
    ),
)


def lower_kernel(context: KernelContext, observe: Observe | None = None) -> KernelIR:
    """The kernel of a tile program after all passes.

    Raises UnsupportedError for units without code, TilecError for a pass that breaks a rule of the kernel IR.
    """
    kernel = KernelIR(context.program.name, (), (), 0)
    for step in KERNEL_PASSES:
        kernel = step.run(kernel, context)
        if observe is not None:
            observe(step.name, kernel)
    problems = check_kernel(kernel)
    if problems:
        raise TilecError(f"a pass broke kernel {kernel.name}: {problems[0]}", hint="This is a bug of tilec; report it.")
    return kernel
