"""A kernel in names that say nothing of its model, and the digest of all that decides its code.

Kernels that differ in names alone have the same code: code is emitted from the canonical one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tilec.artifact import digest_bytes
from tilec.codegen.cpu.extents import Extent
from tilec.codegen.cpu.kernel_ir import Array, For, Function, If, KernelIR, ParallelNest, Step
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
    root = Path(__file__).parents[2]
    digest = sha256()
    for folder in SOURCES:
        for file in sorted(file for kind in ("*.py", "*.ll") for file in (root / folder).rglob(kind)):
            digest.update(f"{file.relative_to(root).as_posix()}\n".encode())
            digest.update(file.read_bytes())
    return " ".join((*map(_version, ("tilec", "apache-tvm", "apache-tvm-ffi")), digest.hexdigest()))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _variables(kernel: KernelIR) -> Iterator[str]:
    """The variables of loops, in order."""
    for nest in kernel.nests:
        yield from (name for name, _ in nest.spread)
        yield from _loops(nest.body)
    for part in kernel.parts:
        yield from part.variables
        yield from _loops(part.body)


def _loops(steps: Sequence[Step]) -> Iterator[str]:
    for step in steps:
        match step:
            case For(variable, _, _, body):
                yield variable
                yield from _loops(body)
            case If(_, yes, no):
                yield from _loops((*yes, *no))
