"""The decisions about code that a plan leaves to the CPU back end: made once, and written into the plan.

`decided_kernel` lowers a group of which nothing is decided and reads off what the rules of the passes chose.  Passes
that find a decision obey it, so that a group of a saved plan, lowered once more, is the same kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tilec.codegen.cpu.kernel_ir import KernelIR, Tile, tiles
from tilec.codegen.cpu.passes.block_tiles import full_tiles, iterators_of
from tilec.codegen.cpu.pipeline import KernelContext, Observe, lower_kernel
from tilec.codegen.cpu.target import CpuTarget
from tilec.ir.evaluate import integer
from tilec.ir.expr import as_expr
from tilec.ir.plan import Group, Plan, PrefetchKind, Variant
from tilec.ir.program import Program
from tilec.ir.sizes import SymbolRange, guarded_ranges, pivot_sizes
from tilec.ir.types import tensor_bytes
from tilec.spec.device import DeviceSpec


@dataclass(frozen=True, slots=True)
class LoweredKernel:
    """A kernel after all passes, the full tiles of its nodes, and who fetches which of its memories ahead."""

    kernel: KernelIR
    full: Mapping[str, Tile]
    prefetch: Mapping[str, PrefetchKind]


def lowered_kernel(context: KernelContext, observe: Observe | None = None) -> LoweredKernel:
    """The kernel of a program; `observe` is called after every pass. Raises what `lower_kernel` raises."""
    fetches: dict[str, Counter[str]] = {}
    full: dict[str, Tile] = {}

    def watch(step: str, kernel: KernelIR) -> None:
        if step == "block_tiles":
            full.update(full_tiles(_tiles(kernel)))
        fetches[step] = _fetches(kernel)
        if observe is not None:
            observe(step, kernel)

    kernel = lower_kernel(context, watch)
    by_reader, in_all = fetches["prefetch_operands"], fetches["prefetch_next_task"]
    prefetch = {memory: _kind(by_reader[memory], count) for memory, count in sorted(in_all.items())}
    return LoweredKernel(kernel, full, prefetch)


def _tiles(kernel: KernelIR) -> list[Tile]:
    return [tile for nest in kernel.nests for tile in tiles(nest.body)]


def _fetches(kernel: KernelIR) -> Counter[str]:
    """How many tiles fetch each memory ahead."""
    return Counter(ahead.memory for tile in _tiles(kernel) for ahead in tile.ahead)


def _kind(by_reader: int, in_all: int) -> PrefetchKind:
    """How a memory is fetched of which so many tiles fetch something."""
    return "task" if not by_reader else "step" if by_reader == in_all else "both"


def decided_variant(device: DeviceSpec, plan: Plan, groups: Sequence[Group], program: Program) -> Variant:
    """The variant of groups that share a kernel with what the rules choose for its program, in the names of the first.

    A variant that is decided already stays as it is. Of symbols the rules take the sizes that are usual where the
    variant runs, for all of which the decisions hold. Raises UnsupportedError where there is no code for it.
    """
    return decided_kernel(device, plan, groups, program)[0]


def decided_kernel(
    device: DeviceSpec, plan: Plan, groups: Sequence[Group], program: Program
) -> tuple[Variant, KernelIR | None]:
    """The variant as `decided_variant` has it, and the kernel that it has; None where it was decided already."""
    variant = groups[0].variant_of(program.name)
    if variant.vectors:
        return variant, None
    large = large_results(device, plan, groups, program)
    ranges = variant_ranges(plan, variant)
    lowered = lowered_kernel(KernelContext(program, CpuTarget.of(device), large, symbol_ranges=ranges))
    tensors = {parameter.name: parameter.tensor for parameter in program.parameters}
    full = lowered.full
    vectors = {node.name: _vector(full[node.name]) if node.name in full else "" for node in groups[0].nodes}
    unroll = {node: _unroll(full[node]) for node in vectors if node in full}
    chains = {node: tile.blocking.chains for node, tile in full.items() if node in vectors and tile.blocking}
    decided = replace(
        variant,
        vectors=vectors,
        unroll={node: widths for node, widths in unroll.items() if widths},
        accumulators={node: count for node, count in chains.items() if count > 1},
        prefetch={tensors[name]: kind for name, kind in lowered.prefetch.items()},
        streamed=tuple(sorted(tensors[name] for name in lowered.kernel.nontemporal)),
    )
    return decided, lowered.kernel


def variant_ranges(plan: Plan, variant: Variant) -> Mapping[str, SymbolRange]:
    """The sizes for which a variant of a plan runs."""
    return guarded_ranges(variant.guard, plan.symbols, plan.symbol_ranges)


def large_results(device: DeviceSpec, plan: Plan, groups: Sequence[Group], program: Program) -> frozenset[str]:
    """Parameters of the program of some groups whose results nobody finds in a cache when they are read, in every
    group: those that take more than a part of the last cache at usual sizes. Outputs of the model are not among them,
    for they begin at no known multiple of a vector."""
    last = next((level for level in device.levels[1:] if level.managed == "implicit"), None)
    if last is None:
        return frozenset()
    least = int(last.capacity * last.units * CpuTarget.of(device).costs.streamed_share)
    outside = {port.tensor for port in plan.outputs}
    usual = pivot_sizes(plan.symbols, variant_ranges(plan, groups[0].variant_of(program.name)))

    def is_large(tensor: str) -> bool:
        entry = plan.tensors[tensor]
        return tensor not in outside and integer(as_expr(tensor_bytes(entry.ttype, entry.shape)), usual) >= least

    places = [{n for n, tensor in enumerate(group.outputs) if is_large(tensor)} for group in groups]
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
