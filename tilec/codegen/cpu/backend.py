"""The CPU back end: TIR through TVM's LLVM to object files, run by threads of this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilec.abi.manifest import LOADER
from tilec.codegen.backend import Backend, Emit, KernelPass, Observe, Obstacle
from tilec.codegen.cpu.calls import import_compiler

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tilec.calls_ahead import CallsAhead
    from tilec.codegen.kernels import Kernels
    from tilec.ir.plan import Group, Plan, Variant
    from tilec.ir.program import Program
    from tilec.progress import Advance
    from tilec.spec.device import DeviceSpec
    from tilec.spec.host import Host
    from tilec.spec.recipe import CodegenOptions


def can_build(device: DeviceSpec) -> Obstacle | None:
    """The obstacle to compiling for a device: kernels that are not launched over the lowest level, where all tensors
    lie, or TVM missing in the version whose names the emitter uses."""
    lowest = device.levels[0].name
    if device.launch_level != lowest:
        return Obstacle(
            f"{device.name} launches kernels over {device.launch_level}, CPU code over the lowest level, {lowest}",
            f"Name {lowest} as launch_level, or take the levels below {device.launch_level} out.",
        )
    why = import_compiler()
    if why is None:
        return None
    return Obstacle(
        f"TVM, which compiles for {device.name}, cannot be imported: {why}",
        "Install apache-tvm and apache-tvm-ffi in the versions that tilec names, then run codegen again.",
    )


def can_run(device: DeviceSpec, host: Host) -> str | None:
    """Why a machine cannot run a device's code: another architecture, or narrower vector registers."""
    same = device.target.triple is None or device.target.triple.split("-")[0] == host.triple.split("-")[0]
    if same and (device.vector is None or device.vector.bytes <= host.vector_bytes):
        return None
    return f"this machine does not run {device.name} code"


def can_time(device: DeviceSpec, host: Host) -> str | None:
    """Why a machine takes another time than a device: another processor, or fewer cores."""
    if device.target.processor not in (None, host.processor):
        return f"it has a {device.target.processor}, this machine a {host.processor}"
    if device.cores > host.cores:
        return f"it has {device.cores} cores, this machine {host.cores}"
    return None


def build(
    plan: Plan,
    kernels: Kernels,
    device: DeviceSpec,
    options: CodegenOptions,
    folder: Path,
    cache: Path | None,
    observe: Observe | None,
    ahead: CallsAhead | None,
    advance: Advance,
) -> Mapping[str, Any]:
    """Compile a lowered plan; imports TVM, unless calls are made `ahead`."""
    from tilec.codegen.cpu.build_model import build

    return build(plan, kernels, device, options, folder, cache, observe, ahead, advance)


def begin(
    plan: Plan,
    groups: Sequence[Group],
    program: Program,
    code: object,
    device: DeviceSpec,
    options: CodegenOptions,
    cache: Path | None,
    ahead: CallsAhead,
) -> None:
    """Let another process compile a kernel."""
    from tilec.codegen.cpu.build_model import begin_kernel

    begin_kernel(plan, groups, program, code, device, options, cache, ahead)


def passes() -> Sequence[KernelPass]:
    """The passes over a kernel."""
    from tilec.codegen.cpu.pipeline import KERNEL_PASSES

    return KERNEL_PASSES


def decide(device: DeviceSpec, plan: Plan, groups: Sequence[Group], program: Program) -> tuple[Variant, object]:
    """The variant of groups that share a kernel, with vectors, unrolling, fetches and stores, and the kernel that it
    has then."""
    from tilec.codegen.cpu.decide import decided_kernel

    return decided_kernel(device, plan, groups, program)


def forms() -> Mapping[str, Emit]:
    """The forms of a compiled model beside the one that the runtime loads."""
    from tilec.codegen.cpu.c_api.emit import emit_c_api

    return {"c-api": emit_c_api}


BACKEND = Backend("cpu", LOADER, build, can_build, can_run, can_time, passes, decide, forms, begin=begin)
