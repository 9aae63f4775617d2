"""The decisions about code that a plan leaves to the CPU back end: made once, and written into the plan.

`lowered_kernel` makes the kernel tree of a program as it is decided, and by the rules of its passes where nothing is;
`decide` makes the tree of a group of which nothing is decided and reads off what the rules chose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from tilec.codegen.cpu.decisions import UNDECIDED, Decisions
from tilec.codegen.cpu.kernel_ir import KernelIR, Tile, tiles
from tilec.codegen.cpu.passes.assign_storage import assign_storage
from tilec.codegen.cpu.passes.block_tiles import block_tiles, full_tiles, iterators_of
from tilec.codegen.cpu.passes.prefetch_next_task import prefetch_next_task
from tilec.codegen.cpu.passes.prefetch_operands import prefetch_operands
from tilec.codegen.cpu.target import CpuTarget
from tilec.codegen.kernels import size_of
from tilec.errors import UnsupportedError
from tilec.ir.expr import accesses
from tilec.ir.plan import Group, Plan, PrefetchKind, Variant
from tilec.ir.program import Program
from tilec.spec.device import DeviceSpec


@dataclass(frozen=True, slots=True)
class LoweredKernel:
    """The tree of a kernel, the memories that it reads and those that it fetches ahead, and the results that it stores
    past the caches."""

    tree: KernelIR
    read: frozenset[str]
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
    return LoweredKernel(tree, read, prefetch, streamed)


def _kind(by_reader: int, in_all: int) -> PrefetchKind:
    """How a memory is fetched of which so many tiles fetch something."""
    return "task" if not by_reader else "step" if by_reader == in_all else "both"


def _read(tree: KernelIR) -> frozenset[str]:
    """Memories that a kernel reads."""
    body = [tile for nest in tree.nests for tile in tiles(nest.body)]
    combined = {tile.target.tensor for tile in body if tile.combine != "none"}
    return frozenset(combined) | {access.tensor for tile in body for access in accesses(tile.value)}


def decided_variant(device: DeviceSpec, plan: Plan, groups: Sequence[Group], program: Program) -> Variant:
    """The variant of groups that share a kernel with what the rules choose for its program, in the names of the first.

    A variant that is decided already, and one for which there is no code, stays as it is.
    """
    variant = groups[0].variants[0]
    if variant.vectors:
        return variant
    try:
        kernel = lowered_kernel(program, CpuTarget.of(device), UNDECIDED, large_results(device, plan, groups, program))
    except UnsupportedError:
        return variant
    tensors = {parameter.name: parameter.tensor for parameter in program.parameters}
    full = full_tiles(tile for nest in kernel.tree.nests for tile in tiles(nest.body))
    vectors = {node.name: _vector(full[node.name]) if node.name in full else "" for node in groups[0].nodes}
    unroll = {node: _unroll(full[node]) for node in vectors if node in full}
    chains = {node: tile.blocking.chains for node, tile in full.items() if node in vectors and tile.blocking}
    return replace(
        variant,
        vectors=vectors,
        unroll={node: widths for node, widths in unroll.items() if widths},
        accumulators={node: count for node, count in chains.items() if count > 1},
        prefetch={tensors[name]: kind for name, kind in kernel.prefetch.items()},
        streamed=tuple(sorted(tensors[name] for name in kernel.streamed)),
    )


def large_results(device: DeviceSpec, plan: Plan, groups: Sequence[Group], program: Program) -> frozenset[str]:
    """Parameters of the program of some groups whose results nobody finds in a cache when they are read, in every
    group: those that take more than a part of the last cache. Outputs of the model are not among them, for they begin
    at no known multiple of a vector."""
    last = next((level for level in device.levels[1:] if level.managed == "implicit"), None)
    if last is None:
        return frozenset()
    least = int(last.capacity * last.units * CpuTarget.of(device).costs.streamed_share)
    outside = {port.tensor for port in plan.outputs}
    places = [
        {n for n, tensor in enumerate(group.outputs) if tensor not in outside and size_of(plan, tensor) >= least}
        for group in groups
    ]
    tensors = {groups[0].outputs[n] for n in set.intersection(*places)}
    return frozenset(parameter.name for parameter in program.parameters if parameter.tensor in tensors)


def _vector(tile: Tile) -> str:
    """The iterator that vectors of a tile run along: the last one of their dimension."""
    assert tile.blocking is not None
    return next((iterators_of(dim)[-1] for dim in tile.dims if dim.name == tile.blocking.vector), "")


def _unroll(tile: Tile) -> dict[str, int]:
    """Points of every iterator that one body of a tile covers, where they are several."""
    assert tile.blocking is not None
    widths = {iterators_of(dim)[-1]: tile.blocking.runs[dim.name][0].width for dim in tile.dims}
    return {iterator: width for iterator, width in widths.items() if width > 1}


def _fetched(tree: KernelIR) -> Counter[str]:
    """How many tiles fetch each memory ahead."""
    return Counter(ahead.memory for nest in tree.nests for tile in tiles(nest.body) for ahead in tile.ahead)
