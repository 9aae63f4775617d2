"""The stage: tile programs, weights, arena and launches as one artifact, and a library where there is a back end."""

from __future__ import annotations

from math import lcm
from pathlib import Path
from typing import Any

from tilec.abi.alignment import ALIGNMENT
from tilec.abi.manifest import LOADER
from tilec.artifact import encode
from tilec.calls_ahead import CallsAhead
from tilec.codegen.backend import Backend, Observe, Obstacle, backend_of
from tilec.codegen.kernels import Kernels, lower_plan
from tilec.codegen.programs import write_programs
from tilec.errors import UnavailableError, UnsupportedError
from tilec.ir.plan import Plan
from tilec.ir.text import text_of
from tilec.progress import Advance
from tilec.spec.device import DeviceSpec
from tilec.spec.recipe import CodegenOptions


def codegen(
    plan: Plan,
    device: DeviceSpec,
    options: CodegenOptions,
    *,
    folder: Path,
    cache: Path | None,
    advance: Advance,
    observe: Observe | None = None,
    ahead: CallsAhead | None = None,
) -> dict[str, Any]:
    """Generate code for a plan; returns the body of `3-kernels.json`.

    `folder` holds the weight files that the plan names and gets packed weights and the library; `cache` keeps
    object files across models; `observe` is called after every pass over a kernel; calls that began `ahead` are
    not made again.  A device without a back end gets tile programs only.  Raises TilecError, of which UnavailableError,
    before anything is written, when the device's back end cannot compile here.
    """
    backend = backend_of(device)
    obstacle = _obstacle(backend, device, ahead) if backend is not None else None
    if obstacle is not None:
        raise UnavailableError(obstacle.reason, hint=obstacle.fix)
    kernels = lower_plan(plan, folder, advance, lcm(ALIGNMENT, device.levels[0].alignment))
    groups = {group.name for group in plan.groups}
    body: dict[str, Any] = {
        "arena": _arena(kernels),
        "constants": {name: encode(place) for name, place in kernels.weights.places.items()},
        "device": plan.device,
        "name": plan.name,
        "programs": write_programs(kernels, folder),
        "steps": [encode(step) for step in kernels.steps if step.group in groups],
    }
    updates = [encode(step) for step in kernels.steps if step.group not in groups]
    body |= {"updates": updates} if updates else {}
    if backend is not None:
        try:
            runtime = dict(backend.build(plan, kernels, device, options, folder, cache, observe, ahead, advance))
        except UnsupportedError as error:
            if not backend.optional:
                raise
            return body | {"without_code": error.message}
        body["runtime"] = runtime if backend.loader == LOADER else {**runtime, "loader": backend.loader}
    return body


def begin_compiler(device: DeviceSpec, ahead: CallsAhead) -> None:
    """Let another process import what compiles for a device."""
    backend = backend_of(device)
    if backend is not None and backend.begin is not None:
        ahead.begin(_COMPILER, backend.can_build, device)


def _obstacle(backend: Backend, device: DeviceSpec, ahead: CallsAhead | None) -> Obstacle | None:
    if ahead is None or backend.begin is None:
        return backend.can_build(device)
    return ahead.result(_COMPILER, backend.can_build, device)


_COMPILER = "compiler"


def _arena(kernels: Kernels) -> dict[str, Any]:
    """The places of tensors; in a model with symbols arenas and positions among the numbers, which stand beside them as
    text."""
    if kernels.sized is None:
        return {"bytes": kernels.arena.size, "offsets": dict(kernels.arena.offsets)}
    numbers, arena = kernels.sized.numbers, kernels.sized.arena
    return {
        "numbers": [text_of(expr) for expr in numbers.exprs],
        "offsets": {name: encode(place) for name, place in arena.places.items()},
        "sizes": list(arena.sizes),
    }
