"""The host function: every thread of a run executes it, launch by launch, on whatever tasks it gets.

    int32 tilec_main(job, worker)

For each launch it waits for the launches that this one depends on, then takes ranges of tasks and calls the
kernel on them until none is left. It returns early when a helper has to leave. The functions that it calls
are those of threads.ll. A model with calls of onnxruntime has one such sequence of launches for every segment between
them; a job says which one it runs.

A model with symbols reads what depends on sizes from the numbers of the run: tasks and grains, byte offsets in the
arenas, sizes that kernels take. A launch without tasks at the sizes of a run is skipped.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import tvm
from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script.builder import ir as I  # noqa: N812

from tilec.codegen.cpu.emit.kernel_function import PrimExpr, PrimFunc
from tilec.codegen.cpu.kernel_source import HOST_SYMBOL
from tilec.codegen.launch_sizes import MOST_TASKS
from tilec.codegen.launch_table import Launch, PointerTable, waits
from tilec.codegen.shape_program import Number, Size
from tilec.errors import UnsupportedError


@dataclass(frozen=True)
class _Run:
    """What every launch is printed with: the arguments of the function, the buffer that a range of tasks is taken into,
    and the numbers, None in a model whose sizes are known."""

    job: PrimExpr
    worker: PrimExpr
    scratch: PrimExpr
    tasks: PrimExpr
    numbers: PrimExpr | None

    def value(self, size: Size) -> PrimExpr:
        """A size, read from the numbers where it depends on them."""
        if isinstance(size, Number):
            assert self.numbers is not None
            return self.numbers[_int64(size.position)]
        return _int64(size)


def host_function(launches: Sequence[Launch], table: PointerTable) -> PrimFunc:
    """The TIR of the host function for these launches, in an order that respects their dependences and segments.

    Launches without tasks are left out. Each segment counts its launches from 0. Raises UnsupportedError when one has
    2^31 tasks or more.
    """
    real = [launch for launch in launches if launch.tasks != 0]
    for launch in real:
        if isinstance(launch.tasks, int) and launch.tasks >= MOST_TASKS:
            raise UnsupportedError(
                f"kernel {launch.symbol} has {launch.tasks} tasks, more than 2^31 - 1",
                hint="Choose larger tiles at the launch level.",
            )
    segments = [[launch for launch in real if launch.segment == k] for k in sorted({each.segment for each in real})]
    with IRBuilder() as builder, I.prim_func(s_tir=True):
        I.func_name(HOST_SYMBOL)
        I.func_attr({"global_symbol": HOST_SYMBOL})
        I.func_ret(tvm.ir.PrimType("int32"))
        job, worker = I.arg("job", I.ptr("uint8")), I.arg("worker", I.int64())
        tasks = I.alloc_buffer((1,), "int64", scope="local")
        scratch = I.Bind(tirx.call_extern("handle", "tilec_scratch", job, worker))
        run = _Run(job, worker, scratch, tasks, _numbers(job, real, table))
        for segment in segments[:-1]:
            chosen = tirx.call_extern("int64", "tilec_segment", job) == _int64(segment[0].segment)
            with I.If(chosen), I.Then():
                _sequence(run, segment, table)
        for segment in segments[-1:]:
            _sequence(run, segment, table)
        if not segments:
            I.Return(tirx.IntImm("int32", 0))
    return builder.get()


def _numbers(job: PrimExpr, launches: Sequence[Launch], table: PointerTable) -> PrimExpr | None:
    """The numbers of the run as a buffer, if any launch needs one."""
    places = [argument.offset for launch in launches for argument in launch.arguments]
    values = [*places, *(size for launch in launches for size in (launch.tasks, launch.grain, *launch.sizes))]
    positions = [value.position for value in values if isinstance(value, Number)]
    if not positions:
        return None
    pointer = I.Bind(tirx.call_extern("handle", "tilec_at", job, _int64(table.numbers), _int64(0)))
    return I.decl_buffer((_int64(max(positions) + 1),), "int64", data=pointer)


def _sequence(run: _Run, launches: Sequence[Launch], table: PointerTable) -> None:
    """Run launches and return when they are done."""
    before = waits(launches)
    for number, launch in enumerate(launches):
        for earlier in before[number]:
            _wait(run, earlier, launches[earlier])
        with _if_any(run, launch):
            _launch(run, number, launch, table)
    for earlier in before[-1]:
        _wait(run, earlier, launches[earlier])
    I.Return(tirx.IntImm("int32", 0))


@contextmanager
def _if_any(run: _Run, launch: Launch) -> Iterator[None]:
    """Inside, the launch has tasks."""
    if isinstance(launch.tasks, int):
        yield
        return
    with I.If(run.value(launch.tasks) != _int64(0)), I.Then():
        yield


def _wait(run: _Run, number: int, launch: Launch) -> None:
    """Wait until launch `number` is done, or return when this helper is to leave."""
    leave = tirx.call_extern("int32", "tilec_wait", run.job, _int64(number), run.worker, run.value(launch.tasks))
    with I.If(leave != 0), I.Then():
        I.Return(tirx.IntImm("int32", 0))


def _launch(run: _Run, number: int, launch: Launch, table: PointerTable) -> None:
    """Take ranges of the launch's tasks and call the kernel on them."""
    job, tasks = run.job, run.tasks
    pointers = [
        I.Bind(tirx.call_extern("handle", "tilec_at", job, _int64(table.entry(argument)), run.value(argument.offset)))
        for argument in launch.arguments
    ]

    def take() -> None:
        sizes = (run.value(launch.tasks), run.value(launch.grain))
        I.buffer_store(tasks, tirx.call_extern("int64", "tilec_next", job, _int64(number), run.worker, *sizes), [0])

    take()
    with I.While(tasks[0] != _int64(0)):
        begin = I.Bind(tirx.bitwise_and(tasks[0], _int64(MOST_TASKS * 2 - 1)))
        end = I.Bind(tirx.shift_right(tasks[0], _int64(32)))
        values = [run.value(size) for size in launch.sizes]
        I.evaluate(tirx.call_extern("void", launch.symbol, *pointers, run.scratch, begin, end, *values))
        total = run.value(launch.tasks)
        I.evaluate(tirx.call_extern("void", "tilec_done", job, _int64(number), total, end - begin))
        take()


def _int64(value: int) -> PrimExpr:
    return tirx.IntImm("int64", value)
