"""What emitting code for a CPU depends on: the shape of its vector registers, as data."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field

from tilec.errors import UnsupportedError
from tilec.ir.types import TTYPES
from tilec.spec.device import DeviceSpec
from tilec.spec.machine_costs import CpuCosts

LOCAL_BYTES = 16 << 10
"""Most bytes of stack that the local buffers of one kernel may take; larger ones live in the thread's scratch."""


@dataclass(frozen=True, slots=True)
class CpuTarget:
    """SIMD registers: `vector_bytes` of one (64 for AVX-512, 32 for AVX2, 16 for NEON), `registers` of them, and the
    measured `costs` of such machines; instructions are those of the `architecture`, in LLVM's words, `units` functions
    of words with the unit for each.

    Processor and features belong to the compiler and are read from the device when the kernel is compiled.
    """

    vector_bytes: int = 64
    registers: int = 32
    costs: CpuCosts = CpuCosts()
    architecture: str = "x86_64"
    units: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, device: DeviceSpec) -> CpuTarget:
        """The vector registers of a device. Raises UnsupportedError for one that is no CPU."""
        if device.target.backend != "cpu":
            raise UnsupportedError(
                f"device {device.name} wants the back end {device.target.backend!r}, this is 'cpu'",
                hint="Choose a device whose target.backend is cpu, such as host.",
            )
        architecture = (device.target.triple or platform.machine()).split("-")[0]
        if device.vector is None:
            return cls(16, 16, architecture=architecture)
        registers = device.vector.bytes, device.vector.registers
        return cls(*registers, architecture=architecture, units=device.dot_units)

    def lanes(self, ttype: str) -> int:
        """Elements of a plain tType that fill a register in the type it is computed in (f16 and bf16 in f32)."""
        bits = 32 if ttype in ("f16", "bf16") else TTYPES[ttype].bits
        return max(1, self.vector_bytes * 8 // bits)
