"""The `verify` stage: on this machine or its GPU where the code runs, else in an emulator or on the tile machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilec.errors import UnavailableError
from tilec.ir.plan import Plan
from tilec.progress import Advance, unseen
from tilec.spec.recipe import VerifyOptions
from tilec.verify.outcome import Outcome


def verify(
    folder: Path,
    plan: Plan,
    kernels: Mapping[str, Any],
    model: Path,
    options: VerifyOptions,
    advance: Advance = unseen,
    because: str | None = None,
) -> Outcome:
    """Compare the compiled model in `folder` with the original.

    `kernels` is the data of its 3-kernels.json, `plan` the plan it was made from, `model` the ONNX file. `because` is
    the reason why the code cannot run on this machine; then kernels of a GPU run in the emulator where a C++ compiler
    builds them, and else, or when there is no code, the tile programs on the tile machine. `options.on` chooses. A
    model with symbols is compared at samples of their sizes. Traffic below a proved bound fails as
    well, and so does a quantised model that is less accurate than `options` want. Raises TilecError when one side
    cannot run at all.
    """
    from tilec.ir.bind_plan import bind_plan
    from tilec.ir.sizes import pivot_sizes
    from tilec.verify.accuracy import within_accuracy
    from tilec.verify.limits import enough_groups, within_bounds

    outcome = _compared(folder, plan, kernels, model, options, advance, because)
    bounded = within_bounds(outcome, bind_plan(plan, pivot_sizes(plan.symbols, plan.symbol_ranges)))
    return within_accuracy(enough_groups(bounded, options.least_share), options.accuracy)


def _compared(
    folder: Path,
    plan: Plan,
    kernels: Mapping[str, Any],
    model: Path,
    options: VerifyOptions,
    advance: Advance,
    because: str | None,
) -> Outcome:
    if because is None and "runtime" not in kernels:
        because = f"no {plan.device} code generator yet"
    elif because is None and not _compiled(kernels["runtime"]):
        because = "the kernels are text that nothing here compiled"
    on = options.on or _place(kernels, because)
    if on == "host":
        if because is not None:
            raise UnavailableError(because, str(folder), "Leave --on out, or choose the emulator or the machine.")
        from tilec.verify.native import verify_native

        return verify_native(folder, plan, kernels, model, options, advance)
    from tilec.verify.on_machine import verify_on_machine

    if on == "machine":
        return verify_on_machine(folder, plan, kernels, model, options, advance, because or "as asked for")
    from tilec.verify.on_emulator import Emulator

    emulator = Emulator(folder, plan, kernels)
    return verify_on_machine(folder, plan, kernels, model, options, advance, emulator.because, emulator)


def _compiled(runtime: Mapping[str, Any]) -> bool:
    """Whether there is machine code, or code that a driver compiles."""
    return "gpu" not in runtime or any(runtime["gpu"].get(form) for form in ("binary", "portable"))


def _place(kernels: Mapping[str, Any], because: str | None) -> str:
    """Where the code of a model is verified unless the user says so."""
    from tilec.emulator import compiler

    if because is None:
        return "host"
    return "emulator" if "gpu" in kernels.get("runtime", {}) and compiler() else "machine"
