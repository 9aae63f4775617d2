"""Instructions by which a warpgroup multiplies matrices out of shared memory (wgmma, PTX ISA 9.7.15), as functions
that a kernel brings along: of those for every width a header would be mostly unused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilec.codegen.gpu.print.c_text import storage_type, value_type
from tilec.ir.matrix_units import MatrixUnit
from tilec.ir.types import HALVES

PTX_TYPES = {"f16": "f16", "bf16": "bf16", "f32": "f32", "i8": "s8", "u8": "u8", "i32": "s32"}
"""tType -> its name in an instruction."""

TOGETHER = 8
"""Registers in a line of text."""


@dataclass(frozen=True, slots=True)
class WarpgroupInstruction:
    """The instruction of a unit for so many columns; of each factor whether neighbours along its rows (or columns) lie
    side by side, and not those along the depth."""

    unit: MatrixUnit
    columns: int
    across: tuple[bool, bool]

    @property
    def name(self) -> str:
        """The name of the function."""
        majors = "".join("n" if across else "k" for across in self.across)
        return f"t_wgmma_{self._shape}_{'_'.join(self._types)}_{majors}"

    @property
    def text(self) -> str:
        """The function, and what the emulator takes for it."""
        sums = self.unit.rows * self.columns // 32
        kind, of = value_type(self.unit.accumulator), "r" if self.unit.accumulator == "i32" else "f"
        transposed = ", ".join(str(int(across)) for across in self.across)
        factors = ", ".join(map(storage_type, self.unit.inputs))
        operands = f"%{sums}, %{sums + 1}, p"
        if self.unit.inputs[0] in HALVES:
            operands += f", 1, 1, {transposed}"
        types = ".".join((PTX_TYPES[self.unit.accumulator], *self._types))
        return "\n".join(
            [
                "#ifdef TILE_EMULATOR",
                f"#define {self.name}(c, a, b) \\",
                f"  emu_warpgroup<{factors}, {kind}, {self.columns}, {self.unit.depth}, {transposed}>"
                "(c, a, b, EMU_SITE(SHARED_READ, #c), EMU_HERE)",
                "#else",
                f"T_DEV void {self.name}({kind}* c, unsigned long long a, unsigned long long b) {{",
                '  asm volatile("{ .reg .pred p; setp.eq.b32 p, 0, 0; "',
                f'    "wgmma.mma_async.sync.aligned.{self._shape}.{types} {{"',
                *_lines([f"%{number}" for number in range(sums)], '    "', ', "', '}, "'),
                f'    "{operands}; }}"',
                *_lines([f'"+{of}"(c[{number}])' for number in range(sums)], "    ", ",", "", first="    : "),
                '    : "l"(a), "l"(b));',
                "}",
                "#endif\n",
            ]
        )

    @property
    def _shape(self) -> str:
        return f"m{self.unit.rows * self.unit.warps}n{self.columns}k{self.unit.depth}"

    @property
    def _types(self) -> tuple[str, ...]:
        return tuple(PTX_TYPES[ttype] for ttype in self.unit.inputs)


def _lines(parts: Sequence[str], head: str, tail: str, last: str, first: str = "") -> list[str]:
    """Parts in lines of some, each with a head and a tail."""
    starts = range(0, len(parts), TOGETHER)
    return [
        f"{first if first and start == 0 else head}{', '.join(parts[start : start + TOGETHER])}"
        f"{last if start + TOGETHER >= len(parts) else tail}"
        for start in starts
    ]
