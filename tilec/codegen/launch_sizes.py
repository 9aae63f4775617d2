"""Sizes of launches, and the shape program of a model: what compiled code and the manifest take from the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilec.abi.shape_program import ConstraintSpec, ShapeProgram
from tilec.codegen.kernels import Kernels, Step
from tilec.codegen.launch_table import Launch
from tilec.codegen.shape_program import Number, NumberBuilder, Numbers, Size, largest, number_reference
from tilec.codegen.symbol_sources import symbol_specs
from tilec.ir.call_segments import outside_calls
from tilec.ir.expr import Binary, Call, Const, Expr, Var, as_expr, constant_value
from tilec.ir.plan import Plan
from tilec.ir.sizes import algebra_ranges
from tilec.ir.text import text_of

MOST_TASKS = 1 << 31
"""Task numbers are counted in 32 bits."""


@dataclass(frozen=True, slots=True)
class LaunchSizes:
    """Turns expressions into what launches hold; without `numbers` all of them are known."""

    numbers: NumberBuilder | None

    @classmethod
    def of(cls, plan: Plan, kernels: Kernels) -> LaunchSizes:
        """Those of a lowered plan."""
        if kernels.sized is None:
            return cls(None)
        before = kernels.sized.numbers
        return cls(NumberBuilder(before, algebra_ranges(before.symbols, plan.symbol_ranges)))

    def size(self, value: int | Expr) -> Size:
        """One value."""
        if self.numbers is not None:
            return self.numbers.size(value)
        known = constant_value(value)
        assert known is not None, f"{value} depends on sizes"
        return known

    def tasks(self, step: Step, tasks: int | Expr) -> Size:
        """Tasks of a step: none at sizes that another variant of its group is for."""
        if step.guard == Const(True):
            return self.size(tasks)
        return self.size(Call("where", (step.guard, as_expr(tasks), Const(0))))

    def symbols(self, names: Sequence[str]) -> tuple[Size, ...]:
        """The values of symbols."""
        return tuple(self.size(Var(name)) for name in names)


def shape_program(
    plan: Plan, kernels: Kernels, launches: Sequence[Launch], numbers: NumberBuilder
) -> tuple[ShapeProgram, Numbers]:
    """The shape program of a model with these launches, and its numbers as expressions."""
    assert kernels.sized is not None
    segments = [
        [launch for launch in launches if launch.segment == k] for k in range(len(outside_calls(plan.calls)) + 1)
    ]
    extents = {text_of(extent): numbers.position(extent) for extent in _extents(plan)}
    conditions = [(each.holds, each.origin) for each in plan.constraints]
    specs = symbol_specs(plan)
    extents |= {spec.name: numbers.position(Var(spec.name)) for spec in specs}
    constraints = [ConstraintSpec(text_of(holds), numbers.position(holds), origin) for holds, origin in conditions]
    constraints += [each for segment in segments for each in _countable(segment, numbers)]
    tasks = tuple(tuple(numbers.position(_leaf(launch.tasks)) for launch in segment) for segment in segments)
    widths = tuple(numbers.position(largest(_width(launch, numbers) for launch in segment)) for segment in segments)
    scratch = tuple(numbers.position(largest(_scratch(launch, numbers) for launch in segment)) for segment in segments)
    done = numbers.numbers
    program = ShapeProgram(
        specs,
        tuple(text_of(expr) for expr in done.exprs),
        extents,
        tuple(constraints),
        kernels.sized.arena.sizes,
        tasks,
        widths,
        scratch,
        done.parts if any(done.parts) else (),
    )
    return program, done


def _extents(plan: Plan) -> Iterator[Expr]:
    """The extents that depend on sizes, of tensors and ranges that the manifest mentions."""
    calls = [port for call in outside_calls(plan.calls) for port in (*call.inputs, *call.outputs)]
    shapes = [plan.tensors[p.tensor].shape for p in (*plan.inputs, *plan.outputs, *calls) if p.tensor in plan.tensors]
    for extent in (*(extent for shape in shapes for extent in shape), *(each.extent for each in plan.ranges)):
        if constant_value(extent) is None:
            yield extent


def _countable(segment: Sequence[Launch], numbers: NumberBuilder) -> Iterator[ConstraintSpec]:
    """That no launch of a segment has more tasks than are counted."""
    most = numbers.add(largest(_leaf(launch.tasks) for launch in segment))
    if not isinstance(most, Const):
        fits = Binary("<", most, Const(MOST_TASKS))
        yield ConstraintSpec(text_of(fits), numbers.position(fits), "the number of tasks of a kernel")


def _width(launch: Launch, numbers: NumberBuilder) -> Expr:
    """The most threads that can share a launch."""
    return numbers.add(Binary("//", _leaf(launch.tasks), _leaf(launch.grain)))


def _scratch(launch: Launch, numbers: NumberBuilder) -> Expr:
    """The working memory of each thread of a launch, 0 where it has no tasks."""
    if isinstance(launch.scratch_bytes, int):
        return Const(launch.scratch_bytes)
    any_tasks = Binary("!=", _leaf(launch.tasks), Const(0))
    return numbers.add(Call("where", (any_tasks, _leaf(launch.scratch_bytes), Const(0))))


def _leaf(size: Size) -> Expr:
    return number_reference(size.position) if isinstance(size, Number) else Const(size)
