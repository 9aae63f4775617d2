"""Kernels that differ in names alone are one: their canonical form, its digest and its object files."""

from dataclasses import replace

import pytest

from tests.codegen.cpu.running import AVX512
from tests.codegen.cpu.test_obeyed import MODELS
from tilec.codegen.cpu.canonical_kernel import canonical_kernel, kernel_digest
from tilec.codegen.cpu.kernel_ir import KernelIR
from tilec.codegen.cpu.pipeline import KernelContext, lower_kernel
from tilec.codegen.cpu.rename_steps import Renaming
from tilec.codegen.cpu.verify_kernel import check_kernel
from tilec.ir.program import Program
from tilec.spec.device import Target

PROCESSOR = Target(backend="cpu")


def kernel_of(program: Program) -> KernelIR:
    return lower_kernel(KernelContext(program, AVX512))


def digest(kernel: KernelIR, symbol: str = "k", target=AVX512, processor: Target = PROCESSOR) -> str:
    return kernel_digest(canonical_kernel(kernel), symbol, target, processor)


def renamed(kernel: KernelIR) -> KernelIR:
    """The kernel with all arrays and variables called otherwise."""
    arrays = {each.name: f"other_{each.name}_{n}" for n, each in enumerate(reversed(kernel.memories))}
    names = Renaming({old: (new, 0) for old, new in arrays.items()}, {}, nameless=True)
    return replace(
        kernel,
        name="another",
        memories=tuple(replace(each, name=arrays[each.name]) for each in kernel.memories),
        nests=tuple(replace(nest, body=names.steps(nest.body)) for nest in kernel.nests),
        parts=tuple(
            replace(part, body=names.steps(part.body), arrays=tuple(arrays[name] for name in part.arrays))
            for part in kernel.parts
        ),
        nontemporal=frozenset(arrays[name] for name in kernel.nontemporal),
    )


@pytest.mark.parametrize("name", sorted(MODELS))
def test_names_are_not_part_of_a_kernel(name: str) -> None:
    kernel = kernel_of(MODELS[name].program())
    form = canonical_kernel(kernel)
    assert check_kernel(form) == check_kernel(kernel) == ()
    assert canonical_kernel(form) == form
    assert canonical_kernel(renamed(kernel)) == form
    assert digest(renamed(kernel)) == digest(kernel)


def test_all_else_is_in_the_digest() -> None:
    kernel = kernel_of(MODELS["matmul"].program())
    others = [
        digest(kernel, "other"),
        digest(kernel, target=replace(AVX512, vector_bytes=32)),
        digest(kernel, processor=Target(backend="cpu", features=("+sse4.2",))),
        digest(replace(kernel, nontemporal=frozenset({kernel.memories[0].name}))),
        digest(replace(kernel, scratch_bytes=64)),
        *(digest(kernel_of(MODELS[name].program())) for name in sorted(MODELS) if name != "matmul"),
    ]
    assert digest(kernel) not in others
    assert len(set(others)) == len(others)
