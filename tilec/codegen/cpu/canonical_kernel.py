"""A kernel in names that say nothing of its model, and the digest of all that decides its code.

Kernels that differ in names alone have the same code: code is emitted from the canonical one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from tilec.artifact import digest_bytes, source_version
from tilec.codegen.cpu.extents import Extent
from tilec.codegen.cpu.kernel_ir import Array, Function, KernelIR, ParallelNest, loop_variables
from tilec.codegen.cpu.rename_steps import Renaming
from tilec.codegen.cpu.target import CpuTarget
from tilec.spec.device import Target

SOURCES = ("abi", "codegen/cpu", "ir")
"""Folders of the package whose files decide what code a kernel has."""


def canonical_kernel(kernel: KernelIR) -> KernelIR:
    """The kernel with arrays, variables and dimensions called by their places, and without the names of nodes."""
    variables = {name: f"s{n:02}" for n, name in enumerate(kernel.symbols)}
    for name in _variables(kernel):
        variables.setdefault(name, f"v{len(variables):03}")
    arrays = {array.name: (f"a{n:03}", 0) for n, array in enumerate(kernel.memories)}
    names = Renaming(arrays, variables, nameless=True, numbered=True)

    def extent(value: Extent) -> Extent:
        return value if isinstance(value, int) else names.expr(value)

    def memory(array: Array) -> Array:
        offset = array.offset if array.offset is None else extent(array.offset)
        return replace(array, name=arrays[array.name][0], elements=extent(array.elements), offset=offset, life=(0, 0))

    def nest(each: ParallelNest) -> ParallelNest:
        spread = tuple((variables[name], extent(size)) for name, size in each.spread)
        return replace(each, spread=spread, body=names.steps(each.body))

    def part(each: Function) -> Function:
        called = tuple(variables[name] for name in each.variables)
        return replace(
            each, variables=called, body=names.steps(each.body), arrays=tuple(arrays[name][0] for name in each.arrays)
        )

    return KernelIR(
        "",
        tuple(map(memory, kernel.memories)),
        tuple(map(nest, kernel.nests)),
        extent(kernel.scratch_bytes),
        tuple(map(part, kernel.parts)),
        frozenset(arrays[name][0] for name in kernel.nontemporal),
        tuple(variables[name] for name in kernel.symbols),
    )


def kernel_digest(kernel: KernelIR, symbol: str, target: CpuTarget, processor: Target) -> str:
    """The digest of a canonical kernel under a symbol, and of everything else that decides its code."""
    text = repr((replace(kernel, nontemporal=frozenset()), sorted(kernel.nontemporal), symbol, target, processor))
    return digest_bytes(f"{generator()}\n{text}".encode())


@cache
def generator() -> str:
    """What generates code: versions of the packages, and the digest of the files that take part."""
    return " ".join((source_version(*SOURCES), *map(_version, ("apache-tvm", "apache-tvm-ffi"))))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _variables(kernel: KernelIR) -> Iterator[str]:
    """The variables of loops, in order."""
    for nest in kernel.nests:
        yield from (name for name, _ in nest.spread)
        yield from loop_variables(nest.body)
    for part in kernel.parts:
        yield from part.variables
        yield from loop_variables(part.body)
