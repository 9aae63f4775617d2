"""How a tile walks through a memory: which elements it comes to in which round of the loops around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilec.codegen.cpu.kernel_ir import ParallelNest, Prefetch, Tile
from tilec.codegen.cpu.open_sizes import OpenSizes
from tilec.ir.algebra import bounds_of, linear_form
from tilec.ir.expr import Access, Binary, Const, Expr, Var, variables

Loops = tuple[tuple[str, int, int], ...]
"""Variable, first value and rounds of loops, outermost first."""


def usual_counts(nest: ParallelNest, sizes: OpenSizes) -> tuple[tuple[str, int], ...]:
    """The task loops of a nest with how often they go round at usual sizes."""
    return tuple((name, sizes.usual(extent) or 1) for name, extent in nest.spread)


def access_pattern(
    access: Access, tile: Tile, spread: Sequence[tuple[str, int]], loops: Loops, clipped: bool = False
) -> AccessPattern | None:
    """The walk of a tile inside `loops` of a task through what it accesses; None where it goes backwards, by no
    constant strides, or by a number of elements that is not known.

    With `clipped` loops of the task may go up to a limit and stay there: the walk then covers what all of their rounds
    come to, without saying in which.
    """
    form, constant = linear_form(access.index[0])
    strides = {atom.name: stride for atom, stride in form.items() if isinstance(atom, Var)}
    sizes = {dim.name: size for dim in tile.dims if (size := dim.size) is not None}
    if len(sizes) < len(tile.dims) or min(form.values(), default=0) < 0:
        return None
    inside: dict[str, tuple[Expr, Expr]] = {name: (Const(lo), Const(lo + count - 1)) for name, lo, count in loops}
    for atom in form.keys() - {Var(name) for name in strides}:
        low, high = bounds_of(atom, inside) if clipped and variables(atom) <= inside.keys() else (None, None)
        if low is None or high is None:
            return None
        name = f"?{len(strides)}"
        strides[name], sizes[name] = form[atom], high - low + 1
        constant += form[atom] * low
    return AccessPattern(access.tensor, constant, strides, sizes, (*((n, 0, extent) for n, extent in spread), *loops))


@dataclass(frozen=True, slots=True)
class AccessPattern:
    """How a tile with dimensions of some `sizes` goes through a memory in `loops`: at a constant plus each variable
    times its stride."""

    memory: str
    constant: int
    strides: Mapping[str, int]
    sizes: Mapping[str, int]
    loops: Loops

    def again(self, place: int) -> bool:
        """Whether a loop inside the one at a place comes to the same more than once."""
        return any(count != 1 for each, _, count in self.loops[place + 1 :] if each not in self.strides)

    def behind(self, place: int, around: bool, least: int) -> Prefetch | None:
        """What the next round of the loop at a place comes to that this one does not, if that is `least` elements or
        more. With `around` the last round is followed by the first one in the next round of the loop around it."""
        name, low, rounds = self.loops[place]
        inner = self.loops[place + 1 :]
        runs = self._runs(inner)
        if runs is None:
            return None
        run, pitch, count = runs
        step, new = self.strides[name], min(self.strides[name], run)
        if new * count < least:
            return None
        begin = sum(self.strides.get(each, 0) * lo for each, lo, _ in inner)
        first: Expr = Const(self.constant + begin + step + run - new)
        for each, _, _ in self.loops[: place + 1]:
            if each in self.strides:
                first = Binary("+", first, Binary("*", Var(each), Const(self.strides[each])))
        outer = next((each for each, _, count in reversed(self.loops[:place]) if count > 1), None)
        if around and outer is not None:
            ended = Binary("//", Binary("+", Var(name), Const(1 - low)), Const(rounds))
            back = Const(self.strides.get(outer, 0) - rounds * step)
            first = Binary("+", first, Binary("*", ended, back))
        return Prefetch(self.memory, first, new, pitch, count, inner)

    def _runs(self, inner: Loops) -> tuple[int, int, int] | None:
        """What all rounds of loops come to, if that is runs of one length at one distance: the elements of one, from
        the first of one to the first of the next, how many there are."""
        sizes = {**self.sizes, **{name: rounds for name, _, rounds in inner}}
        moved = [(self.strides[name], size) for name, size in sizes.items() if name in self.strides and size > 1]
        run = pitch = count = 1
        for stride, size in sorted(moved):
            if count == 1 and stride <= run:
                run += stride * (size - 1)
            elif count == 1:
                pitch, count = stride, size
            elif stride == pitch * count:
                count *= size
            else:
                return None
        return run, pitch, count
