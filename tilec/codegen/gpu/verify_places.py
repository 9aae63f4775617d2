"""Rules of places: they read what the kernel is given and does not write, what data decide stays inside of the larger
tensor, and nothing is read there."""

from __future__ import annotations

from collections.abc import Iterator

from tilec.codegen.gpu.kernel_ir import Copy, KernelIR, Step, Tile, steps
from tilec.codegen.gpu.kernel_text import step_text
from tilec.ir.expr import accesses
from tilec.ir.places import is_kept_inside


def check_places(kernel: KernelIR) -> Iterator[str]:
    """The rules that the places of a kernel's parameters break."""
    given = {each.name for each in kernel.parameters} - set(kernel.outputs)
    placed = {each.name: each.place for each in kernel.parameters if each.place is not None}
    for name, place in placed.items():
        for index, extent in zip(place.index, place.shape, strict=True):
            if not is_kept_inside(index, extent):
                yield f"data decide that elements of {name} lie outside of its memory"
            for access in accesses(index):
                if access.tensor not in given:
                    yield f"the place of {name} reads {access.tensor}, which the kernel is not given"
    for step in steps(kernel.body):
        for name in sorted(_read(step) & placed.keys()):
            yield f"{step_text(kernel, step)}: elements of {name} are read at their place"


def _read(step: Step) -> set[str]:
    """The arrays that a step reads."""
    match step:
        case Copy(upper, lower):
            return {(lower if step.up else upper).name}
        case Tile():
            own = {step.target.name} if step.accumulate else set()
            return own | {buffer.name for _, buffer in step.operands}
    return set()
