"""Kernels as machine code, whichever compiler made it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class KernelUse:
    """Registers of a thread, and the bytes that it keeps in memory for want of more."""

    registers: int
    spilled_bytes: int = 0


@dataclass(frozen=True)
class Compiled:
    """Machine code for one processor, code that drivers of later ones compile where there is such, and what kernels
    use, by symbol."""

    binary: bytes
    portable: bytes | None = None
    uses: dict[str, KernelUse] = field(default_factory=dict)
