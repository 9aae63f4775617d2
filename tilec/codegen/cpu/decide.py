"""The kernel tree of a program as it is decided, and by the rules of its passes where nothing is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass

from tilec.codegen.cpu.decisions import Decisions, PrefetchKind
from tilec.codegen.cpu.kernel_ir import KernelIR, tiles
from tilec.codegen.cpu.passes.assign_storage import assign_storage
from tilec.codegen.cpu.passes.block_tiles import block_tiles
from tilec.codegen.cpu.passes.prefetch_next_task import prefetch_next_task
from tilec.codegen.cpu.passes.prefetch_operands import prefetch_operands
from tilec.codegen.cpu.target import CpuTarget
from tilec.ir.expr import accesses
from tilec.ir.program import Program


@dataclass(frozen=True, slots=True)
class LoweredKernel:
    """The tree of a kernel, the memories that it fetches ahead, and the results that it stores past the caches."""

    tree: KernelIR
    prefetch: Mapping[str, PrefetchKind]
    streamed: frozenset[str]


def lowered_kernel(
    program: Program, target: CpuTarget, decisions: Decisions, large: Set[str] = frozenset()
) -> LoweredKernel:
    """The kernel of a program. Where streamed stores are not decided, results that are `large` go past the caches,
    unless the kernel reads them; then it fetches their lines before it writes them."""
    tree = block_tiles(assign_storage(program, target, decisions.nodes), target, decisions.nodes)
    step = task = None
    if decisions.prefetch is not None:
        kinds = decisions.prefetch.items()
        step, task = ({t for t, kind in kinds if kind in (of, "both")} for of in ("step", "task"))
    read = _read(tree)
    streamed = frozenset(large - read) if decisions.streamed is None else decisions.streamed
    tree = prefetch_operands(tree, target.costs, step)
    by_reader = _fetched(tree)
    tree = prefetch_next_task(tree, target.costs, large & read if task is None else task, task)
    in_all = _fetched(tree)
    prefetch = {memory: _kind(by_reader[memory], count) for memory, count in sorted(in_all.items())}
    return LoweredKernel(tree, prefetch, streamed)


def _kind(by_reader: int, in_all: int) -> PrefetchKind:
    """How a memory is fetched of which so many tiles fetch something."""
    return "task" if not by_reader else "step" if by_reader == in_all else "both"


def _read(tree: KernelIR) -> set[str]:
    """Memories that a kernel reads."""
    body = [tile for nest in tree.nests for tile in tiles(nest.body)]
    combined = {tile.target.tensor for tile in body if tile.combine != "none"}
    return combined | {access.tensor for tile in body for access in accesses(tile.value)}


def _fetched(tree: KernelIR) -> Counter[str]:
    """How many tiles fetch each memory ahead."""
    return Counter(ahead.memory for nest in tree.nests for tile in tiles(nest.body) for ahead in tile.ahead)
