"""The GPU as code generation sees it: the language of its kernels, its processor, the lanes of its units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilec.ir.matrix_units import MatrixUnit
from tilec.spec.device import DeviceSpec
from tilec.spec.recipe import CodegenOptions

WORD = 4
"""Bytes of a register of one lane."""

Language = Literal["cuda", "hip"]


@dataclass(frozen=True, slots=True)
class GpuTarget:
    """A unit of the device has `lanes`: those of its vectors, as a warp has, or one, as a thread has; its warps have
    `warp` lanes; `units` multiply matrices; the units of a core share `registers` bytes, where the device has them in a
    pool. The text is of a `language`; `processor` is what it is compiled for."""

    language: Language
    processor: str
    lanes: int
    warp: int
    units: tuple[MatrixUnit, ...] = ()
    registers: int | None = None

    @classmethod
    def of(cls, device: DeviceSpec, options: CodegenOptions) -> GpuTarget:
        """The target of a device, with the processor that the options name."""
        lanes = device.vector.bytes // WORD if device.vector is not None else 1
        language: Language = "hip" if device.target.backend == "hip" else "cuda"
        warp = lanes if lanes > 1 else 64 if language == "hip" else 32
        units = tuple(unit for unit, _ in device.matrix_units)
        registers = device.pools.get(device.levels[-1].pool or "")
        return cls(language, options.processor or device.target.processor or "", lanes, warp, units, registers)

    @property
    def suffix(self) -> str:
        """The end of the names of files of kernels."""
        return ".cu" if self.language == "cuda" else ".hip"
