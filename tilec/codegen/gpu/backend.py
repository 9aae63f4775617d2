"""The GPU back ends: C++ over tile.h as CUDA and as HIP, compiled where NVRTC or hipcc is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilec.codegen.backend import Backend, Observe, Obstacle

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tilec.calls_ahead import CallsAhead
    from tilec.codegen.kernels import Kernels
    from tilec.ir.plan import Group, Plan, Variant
    from tilec.ir.program import Program
    from tilec.progress import Advance
    from tilec.spec.device import DeviceSpec
    from tilec.spec.gpus import Gpu
    from tilec.spec.host import Host
    from tilec.spec.recipe import CodegenOptions

_LEAST_SHARE = 0.8
"""Share of a memory that its driver and its rounding leave at least."""

LOADER = "tilec.runtime.gpu.executor:load"


def serves(device: DeviceSpec) -> bool:
    """Whether kernels run over the device's lowest level, with one explicit level of blocks and one of units above."""
    explicit = [level for level in device.levels if level.managed == "explicit"]
    return len(explicit) == 3 and device.launch_level == explicit[0].name == device.levels[0].name


def can_build(_device: DeviceSpec) -> Obstacle | None:
    """Nothing is in the way: kernels are text."""
    return None


def can_run(device: DeviceSpec, _host: Host) -> str | None:
    """Why this machine does not run a device's code: its first GPU is another one, or there is none."""
    from tilec.spec.gpus import gpus

    processor, here = device.target.processor or "", _own(device, gpus())
    if not here:
        return f"no {device.name} is known to be in this machine"
    if not here[0].runs(processor):
        return f"the GPU of this machine is a {here[0].processor} ({here[0].name}), the code is for {processor}"
    return None


def _own(device: DeviceSpec, here: Sequence[Gpu]) -> list[Gpu]:
    """The GPUs of a device's maker."""
    maker = "sm_" if device.target.backend == "cuda" else "gfx"
    return [gpu for gpu in here if gpu.processor.startswith(maker)]


def can_time(device: DeviceSpec, _host: Host) -> str | None:
    """Why this machine's GPU takes another time than a device: other multiprocessors, or other memory."""
    from tilec.spec.gpus import gpus

    gpu = _own(device, gpus())[0]
    if gpu.multiprocessors != device.cores:
        return f"its GPU ({gpu.name}) has {gpu.multiprocessors} multiprocessors, {device.name} has {device.cores}"
    memory = device.levels[0].capacity
    if not _LEAST_SHARE * memory <= gpu.memory <= memory / _LEAST_SHARE:
        return f"its GPU ({gpu.name}) has {gpu.memory >> 30} GiB of memory, {device.name} has {memory >> 30} GiB"
    return None


def lacks(device: DeviceSpec) -> Obstacle | None:
    """What is missing here to compile the text of kernels."""
    from tilec.codegen.gpu import hipcc, nvrtc

    if device.target.backend != "cuda":
        return hipcc.obstacle(device.target.processor or "")
    return nvrtc.obstacle(device.target.processor or "")


def build(
    plan: Plan,
    kernels: Kernels,
    device: DeviceSpec,
    options: CodegenOptions,
    folder: Path,
    cache: Path | None,  # noqa: ARG001
    observe: Observe | None,
    ahead: CallsAhead | None,  # noqa: ARG001
    advance: Advance,
) -> Mapping[str, Any]:
    """Print, and compile, the kernels of a lowered plan."""
    from tilec.codegen.gpu.build_model import build

    return build(plan, kernels, device, options, folder, observe, advance)


def decide(device: DeviceSpec, plan: Plan, groups: Sequence[Group], program: Program) -> tuple[Variant, object]:
    """The variant of groups that share a kernel, as it is, where there is code for it."""
    from tilec.codegen.gpu.decide import decided_variant

    return decided_variant(device, plan, groups, program), None


CUDA, HIP = (
    Backend(kind, LOADER, build, can_build, can_run, can_time, decide=decide, lacks=lacks, serves=serves, optional=True)
    for kind in ("cuda", "hip")
)
