"""Functions of a kernel that are alike as one, which is called with other arrays.

Slices, heads and directions are computed by steps that differ in the names of what they read and write and in constant
offsets alone.  Measured: a segmenter with 190 sliced products has 79 compiled functions instead of 229.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tilec.codegen.cpu.kernel_ir import CallFunction, For, Function, If, KernelIR, Step, Tile, memories_of
from tilec.codegen.cpu.passes.function_forms import Forms
from tilec.codegen.cpu.passes.outline_reductions import variables_of

MANY = 4
"""Reductions outside of loops that are alike, from which on they are a function: a call takes nanoseconds."""

Unit = tuple[Tile, ...]
"""Neighbouring tiles that share registers with each other alone, of which one reduces."""


def share_functions(kernel: KernelIR) -> KernelIR:
    """The kernel with one function for all that are alike; reductions outside of loops are functions where many are."""
    forms = Forms(kernel)
    kernel = _repeated_apart(kernel, forms)
    parts: list[Function] = []
    known: list[tuple[object, str]] = []
    uses: dict[str, CallFunction] = {}

    def called(steps: Sequence[Step]) -> tuple[Step, ...]:
        return tuple(map(_called, steps))

    def _called(step: Step) -> Step:
        match step:
            case For(variable, lo, hi, body):
                return For(variable, lo, hi, called(body))
            case If(condition, yes, no):
                return If(condition, called(yes), called(no))
            case CallFunction(part):
                return uses[part]
        return step

    for part in kernel.parts:  # those that others call come first
        form = forms.of(called(part.body), part.variables)
        name = next((name for key, name in known if key == form.key), None)
        if name is None:
            name = f"part{len(parts)}"
            parts.append(Function(name, part.variables, form.body, tuple(array for array, _ in form.arrays)))
            known.append((form.key, name))
        uses[part.name] = CallFunction(name, part.variables, form.arrays)
    nests = tuple(replace(nest, body=called(nest.body)) for nest in kernel.nests)
    return replace(kernel, nests=nests, parts=tuple(parts))


def _repeated_apart(kernel: KernelIR, forms: Forms) -> KernelIR:
    """The kernel with reductions outside of loops as parts of their own, as far as many are alike."""
    found: list[tuple[object, int]] = []

    def count(unit: Unit, scope: tuple[str, ...]) -> Step | None:
        key = forms.of(unit, variables_of(unit, scope, kernel.symbols)).key
        place = next((n for n, (other, _) in enumerate(found) if other == key), len(found))
        found[place:] = [(key, found[place][1] + 1 if place < len(found) else 1), *found[place + 1 :]]
        numbers.append(place)
        return None

    numbers: list[int] = []
    _with_units(kernel, count)
    if all(times < MANY for _, times in found):
        return kernel
    parts: list[Function] = []
    local = {array.name for array in kernel.memories if array.kind == "local"}
    following = iter(numbers)

    def outline(unit: Unit, scope: tuple[str, ...]) -> Step | None:
        if found[next(following)][1] < MANY:
            return None
        variables = variables_of(unit, scope, kernel.symbols)
        fetched = (ahead.memory for tile in unit for ahead in tile.ahead)
        arrays = tuple(name for name in dict.fromkeys((*memories_of(unit), *fetched)) if name not in local)
        parts.append(Function(f"repeated{len(parts)}", variables, unit, arrays))
        return CallFunction(parts[-1].name, variables, tuple((name, 0) for name in arrays))

    nests = _with_units(kernel, outline)
    return replace(kernel, nests=nests.nests, parts=(*kernel.parts, *parts))


def _with_units(kernel: KernelIR, made: Callable[[Unit, tuple[str, ...]], Step | None]) -> KernelIR:
    """The kernel with what is made of every unit of a task that no part holds, in the scope of loops around it."""
    local = {array.name for array in kernel.memories if array.kind == "local"}
    total: dict[str, int] = {}
    for body in (*(nest.body for nest in kernel.nests), *(part.body for part in kernel.parts)):
        for name in memories_of(body):
            total[name] = total.get(name, 0) + (name in local)

    def walked(steps: Sequence[Step], scope: tuple[str, ...]) -> tuple[Step, ...]:
        result: list[Step] = []
        at = 0
        while at < len(steps):
            unit = _unit(steps[at:], total)
            new = made(unit, scope) if any(tile.reducer is not None for tile in unit) else None
            result += [new] if new is not None else unit or [inside(steps[at], scope)]
            at += len(unit) or 1
        return tuple(result)

    def inside(step: Step, scope: tuple[str, ...]) -> Step:
        match step:
            case For(variable, lo, hi, body):
                return For(variable, lo, hi, walked(body, (*scope, variable)))
            case If(condition, yes, no):
                return If(condition, walked(yes, scope), walked(no, scope))
        return step

    nests = tuple(
        replace(nest, body=walked(nest.body, (*kernel.symbols, *(name for name, _ in nest.spread))))
        for nest in kernel.nests
    )
    return replace(kernel, nests=nests)


def _unit(steps: Sequence[Step], total: dict[str, int]) -> Unit:
    """The first tiles of some steps that share registers with no others; none where there are no such."""
    open_: dict[str, int] = {}
    unit: list[Tile] = []
    for step in steps:
        if not isinstance(step, Tile):
            return ()
        unit.append(step)
        for name in memories_of([step]):
            if total[name]:
                open_[name] = open_.get(name, total[name]) - 1
        if not any(open_.values()):
            return tuple(unit)
    return ()
