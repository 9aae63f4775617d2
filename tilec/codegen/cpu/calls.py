"""The calls that need TVM, under names that need none: a process that has others make them does not import it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilec.own_process import without_torch

if TYPE_CHECKING:
    from tilec.codegen.cpu.kernel_source import HostSource, KernelSource, ObjectFile
    from tilec.codegen.model import KernelCode


def import_compiler() -> str | None:
    """Import TVM; returns why that fails."""
    try:
        with without_torch():
            from tilec.codegen.cpu.compile import object_files  # noqa: F401
    except ImportError as error:
        if (error.name or "").startswith("tilec"):
            raise
        return str(error)
    return None


def compile_kernel(source: KernelSource) -> KernelCode[ObjectFile]:
    """See `tilec.codegen.cpu.compile.object_files`."""
    import_compiler()
    from tilec.codegen.cpu.compile.object_files import compile_kernel

    return compile_kernel(source)


def compile_host(source: HostSource) -> dict[str, ObjectFile]:
    """See `tilec.codegen.cpu.compile.object_files`."""
    import_compiler()
    from tilec.codegen.cpu.compile.object_files import compile_host

    return compile_host(source)
