"""The stage: tile programs, weights, arena and launches as one artifact, and a library where there is a back end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tilec.artifact import encode
from tilec.codegen.kernels import Advance, lower_plan
from tilec.codegen.programs import write_programs
from tilec.errors import UnavailableError
from tilec.ir.plan import Plan
from tilec.spec.device import DeviceSpec
from tilec.spec.recipe import CodegenOptions


def codegen(
    plan: Plan, device: DeviceSpec, options: CodegenOptions, *, folder: Path, cache: Path | None, advance: Advance
) -> dict[str, Any]:
    """Generate code for a plan whose sizes are bound; returns the body of `3-kernels.json`.

    `folder` holds the weight files that the plan names and gets packed weights and the library; `cache` keeps
    object files across models.  A device without a back end gets tile programs only.  Raises TilecError, of which
    UnavailableError when TVM is not installed.
    """
    build = _cpu_back_end(device) if device.target.backend == "cpu" else None
    made = lower_plan(plan, folder, advance)
    body: dict[str, Any] = {
        "arena": {"bytes": made.arena.size, "offsets": dict(made.arena.offsets)},
        "constants": {name: encode(place) for name, place in made.weights.places.items()},
        "device": plan.device,
        "name": plan.name,
        "programs": write_programs(made, folder),
        "steps": [encode(step) for step in made.steps],
    }
    if build is not None:
        body["runtime"] = build(plan, made, device, options, folder, cache)
    return body


def _cpu_back_end(device: DeviceSpec) -> Callable[..., dict[str, Any]]:
    """What compiles for the CPU. Raises UnavailableError without TVM, before anything is written."""
    try:
        from tilec.codegen.cpu.build_model import build
    except ImportError as error:
        if (error.name or "").startswith("tilec"):
            raise
        raise UnavailableError(
            f"TVM, which compiles for {device.name}, cannot be imported: {error}",
            hint="Install apache-tvm and apache-tvm-ffi in the versions that tilec names, then run codegen again.",
        ) from error
    return build
