"""The line of a model on a GPU."""

from __future__ import annotations

from collections.abc import Iterable

from tests.gpu_zoo.compiled import Result

STAGES = ("schedule", "codegen", "verify")

NEAR = ("sectors", "wavefronts", "planned")

COLUMNS = (
    *("model", "type", "device", "groups", "kernels", "predicted us", "most registers", "spilling", "their time"),
    *("below 128 threads", "verdict", *NEAR, "schedule s", "codegen s", "verify s"),
)


def row(model: str, ttype: str, device: str, result: Result) -> str:
    """One line of the table."""
    registers = [kernel["registers"] for kernel in result.kernels if kernel.get("registers") is not None]
    spilling = ", ".join(f"{kernel['symbol']} {kernel['spilled_bytes']} B" for kernel in result.spilling)
    small = [kernel["symbol"] for kernel in result.kernels if kernel["block"] < 128]
    cells = (
        *(model, ttype, device, result.groups, len(result.kernels)),
        f"{sum(result.picoseconds.values()) / 1e6:.1f}",
        *(max(registers, default="-"), spilling or "none" if registers else "-"),
        share(result, (kernel["symbol"] for kernel in result.spilling)),
        *(share(result, small), result.error or result.verdict or "-"),
        *(f"{100 * result.near[what]:.0f} %" if what in result.near else "-" for what in NEAR),
        *(f"{result.seconds[stage]:.0f}" if stage in result.seconds else "-" for stage in STAGES),
    )
    return f"| {' | '.join(map(str, cells))} |"


def share(result: Result, symbols: Iterable[str]) -> str:
    """The part of the predicted time that some kernels take."""
    whole = sum(result.picoseconds.values())
    return f"{100 * sum(result.picoseconds[each] for each in symbols) / whole:.0f} %" if whole else "-"
