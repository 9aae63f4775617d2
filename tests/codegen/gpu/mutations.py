"""Faults in the kernel IR of GPUs: a synchronisation less, other lanes, places and windows one off."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tilec.codegen.gpu.kernel_ir import (
    Barrier,
    Commit,
    Copy,
    Declare,
    Fence,
    Fill,
    KernelIR,
    Let,
    Nested,
    Step,
    Tile,
    Units,
    Wait,
    steps,
)
from tilec.codegen.gpu.kernel_text import step_text
from tilec.ir.expr import Binary, Const


@dataclass(frozen=True)
class Mutant:
    """A kernel with one step changed: the kind of change, and the step as text."""

    kind: str
    step: str
    kernel: KernelIR


def mutants(kernel: KernelIR) -> Iterator[Mutant]:
    """Every mutant of a kernel."""
    for number, step in enumerate(steps(kernel.body)):
        for kind, change in CHANGES:
            for wrong in change(kernel, step):
                rest = [number]
                body = _with(kernel.body, rest, (wrong,) if wrong is not None else ())
                yield Mutant(kind, step_text(kernel, step), replace(kernel, body=body))


def _with(body: tuple[Step, ...], rest: list[int], instead: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps with others instead of one, whose number among them is counted down in `rest`."""
    result: list[Step] = []
    for step in body:
        here, rest[0] = rest[0] == 0, rest[0] - 1
        if here:
            result += instead
            rest[0] -= sum(1 for _ in steps((step,))) - 1
            continue
        if isinstance(step, Nested):
            step = replace(step, body=_with(step.body, rest, instead))
        elif isinstance(step, Tile) and step.meanwhile:
            step = replace(step, meanwhile=_with(step.meanwhile, rest, instead))
        result.append(step)
    return tuple(result)


def _drop(kind: type) -> Callable[[KernelIR, Step], Iterator[Step | None]]:
    def dropped(_kernel: KernelIR, step: Step) -> Iterator[Step | None]:
        if isinstance(step, kind):
            yield None

    return dropped


def _wait_too_late(_kernel: KernelIR, step: Step) -> Iterator[Step | None]:
    if isinstance(step, Wait):
        yield replace(step, left=step.left + 1)


def _arrives_later(kernel: KernelIR, step: Step) -> Iterator[Step | None]:
    """A copy that threads wait for, as one that nothing waits for."""
    if isinstance(step, Copy) and step.up and step.arrival == "now" and not kernel.is_private(step.upper):
        yield replace(step, arrival="later")


def _lanes_swapped(kernel: KernelIR, step: Step) -> Iterator[Step | None]:
    """Lanes along one axis in the places of those along another; of one axis alone every other lane has points. What
    lies in memory lanes may share as they like, and so may they a reduction."""
    if isinstance(step, Tile) and kernel.is_private(step.target):
        first, *more = step.lanes or (None,)
        if first is not None and first.along in step.expr.spatial:
            if more:
                swapped = (replace(first, along=more[0].along), replace(more[0], along=first.along), *more[1:])
            else:
                swapped = (replace(first, count=max(1, first.count // 2), step=first.step * 2),)
            yield replace(step, lanes=swapped)


def _another_window(_kernel: KernelIR, step: Step) -> Iterator[Step | None]:
    """A copy of the elements beside."""
    if isinstance(step, Copy):
        lo, hi = (tuple(Binary("+", end, Const(int(d == 0))) for d, end in enumerate(e)) for e in (step.lo, step.hi))
        yield replace(step, lo=lo, hi=hi)


def _another_place(kernel: KernelIR, step: Step) -> Iterator[Step | None]:
    """An array 4 bytes further on, at no multiple of what copies need."""
    if isinstance(step, Declare) and not kernel.is_private(step.buffer) and step.buffer.offset is not None:
        moved = replace(step.buffer, offset=Binary("+", step.buffer.offset, Const(4)))
        yield replace(step, buffer=moved)


def _another_stage(_kernel: KernelIR, step: Step) -> Iterator[Step | None]:
    if isinstance(step, Declare) and step.buffer.copies > 1:
        yield replace(step, copy=Binary("%", Binary("+", step.copy, Const(1)), Const(step.buffer.copies)))


def _another_iteration(_kernel: KernelIR, step: Step) -> Iterator[Step | None]:
    if isinstance(step, Let):
        yield replace(step, value=Binary("+", step.value, Const(1)))


def _idle_units_act(_kernel: KernelIR, step: Step) -> Iterator[Step | None]:
    if isinstance(step, Tile | Copy) and step.active is not None:
        yield replace(step, active=None)


def _turns_less(_kernel: KernelIR, step: Step) -> Iterator[Step | None]:
    """Units that take turns have one iteration each."""
    if isinstance(step, Units) and step.take == "turns":
        yield replace(step, take="first", count=1)


def _another_box(_kernel: KernelIR, step: Step) -> Iterator[Step | None]:
    """A tile without the last point of its first reduction."""
    if isinstance(step, Tile) and step.expr.reduce:
        which = step.expr.reduce[0]
        box = tuple((i, lo, Binary("-", hi, Const(1)) if i == which else hi) for i, lo, hi in step.box)
        yield replace(step, box=box)


def _wider_vectors(_kernel: KernelIR, step: Step) -> Iterator[Step | None]:
    """Twice as many neighbours at once: beyond the end of a row, or what threads cannot move at once."""
    if isinstance(step, Copy | Fill | Tile) and step.vector > 1:
        yield replace(step, vector=step.vector * 2)
    if isinstance(step, Tile):
        for number, ahead in enumerate(step.ahead):
            if ahead.vector > 1:
                wider = replace(ahead, vector=ahead.vector * 2)
                yield replace(step, ahead=(*step.ahead[:number], wider, *step.ahead[number + 1 :]))


def _fewer_points(_kernel: KernelIR, step: Step) -> Iterator[Step | None]:
    """A tile of which a lane computes half of the points that it goes past, or has half of the instructions."""
    if isinstance(step, Tile) and step.matrix is None and any(count > 1 for count in step.together.values()):
        yield replace(step, together={name: max(1, count // 2) for name, count in step.together.items()})
    if isinstance(step, Tile) and step.matrix is not None and step.matrix.across > 1:
        yield replace(step, matrix=replace(step.matrix, across=step.matrix.across // 2))


def _ahead_of_one(_kernel: KernelIR, step: Step) -> Iterator[Step | None]:
    """An operand that is loaded ahead for the first of the points that read it."""
    if isinstance(step, Tile):
        for number, ahead in enumerate(step.ahead):
            if any(count > 1 for count in ahead.counts.values()):
                first = replace(ahead, counts={}, vector=1, along="")
                yield replace(step, ahead=(*step.ahead[:number], first, *step.ahead[number + 1 :]))


def _beside(_kernel: KernelIR, step: Step) -> Iterator[Step | None]:
    """A lane goes through the points beside its own."""
    if isinstance(step, Tile | Copy) and step.axes:
        first, *rest = step.axes
        yield replace(step, axes=(replace(first, position=Binary("+", first.position, Const(1))), *rest))


CHANGES = (
    ("barrier dropped", _drop(Barrier)),
    ("wait dropped", _drop(Wait)),
    ("wait too late", _wait_too_late),
    ("commit dropped", _drop(Commit)),
    ("fence dropped", _drop(Fence)),
    ("copy dropped", _drop(Copy)),
    ("arrives later", _arrives_later),
    ("lanes swapped", _lanes_swapped),
    ("another window", _another_window),
    ("another place", _another_place),
    ("another stage", _another_stage),
    ("another iteration", _another_iteration),
    ("idle units act", _idle_units_act),
    ("turns less", _turns_less),
    ("another box", _another_box),
    ("wider vectors", _wider_vectors),
    ("fewer points", _fewer_points),
    ("ahead of one", _ahead_of_one),
    ("points beside", _beside),
)
"""Kind, and what stands for a step, None for nothing; of each kind every place is a mutant."""
