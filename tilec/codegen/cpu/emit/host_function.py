"""The host function: every thread of a run executes it, launch by launch, on whatever tasks it gets.

    int32 tilec_main(job, worker)

For each launch it waits for the launches that this one depends on, then takes ranges of tasks and calls the
kernel on them until none is left. It returns early when a helper has to leave. The functions that it calls
are those of threads.ll. A model with calls of onnxruntime has one such sequence of launches for every segment between
them; a job says which one it runs.
"""

from collections.abc import Sequence

import tvm
from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script.builder import ir as I  # noqa: N812

from tilec.codegen.cpu.emit.kernel_function import PrimExpr, PrimFunc
from tilec.codegen.launch_table import Launch, PointerTable, waits
from tilec.errors import UnsupportedError

SYMBOL = "tilec_main"

MOST_TASKS = 1 << 31
"""Task numbers are counted in 32 bits."""


def host_function(launches: Sequence[Launch], table: PointerTable) -> PrimFunc:
    """The TIR of the host function for these launches, in an order that respects their dependences and segments.

    Launches without tasks are left out. Each segment counts its launches from 0. Raises UnsupportedError when one has
    2^31 tasks or more.
    """
    real = [launch for launch in launches if launch.tasks > 0]
    for launch in real:
        if launch.tasks >= MOST_TASKS:
            raise UnsupportedError(
                f"kernel {launch.symbol} has {launch.tasks} tasks, more than 2^31 - 1",
                hint="Choose larger tiles at the launch level.",
            )
    segments = [[launch for launch in real if launch.segment == k] for k in sorted({each.segment for each in real})]
    with IRBuilder() as builder, I.prim_func(s_tir=True):
        I.func_name(SYMBOL)
        I.func_attr({"global_symbol": SYMBOL})
        I.func_ret(tvm.ir.PrimType("int32"))
        job, worker = I.arg("job", I.ptr("uint8")), I.arg("worker", I.int64())
        tasks = I.alloc_buffer((1,), "int64", scope="local")
        scratch = I.Bind(tirx.call_extern("handle", "tilec_scratch", job, worker))
        for segment in segments[:-1]:
            chosen = tirx.call_extern("int64", "tilec_segment", job) == _int64(segment[0].segment)
            with I.If(chosen), I.Then():
                _sequence(job, worker, scratch, tasks, segment, table)
        for segment in segments[-1:]:
            _sequence(job, worker, scratch, tasks, segment, table)
        if not segments:
            I.Return(tirx.IntImm("int32", 0))
    return builder.get()


def _sequence(
    job: PrimExpr,
    worker: PrimExpr,
    scratch: PrimExpr,
    tasks: PrimExpr,
    launches: Sequence[Launch],
    table: PointerTable,
) -> None:
    """Run launches and return when they are done."""
    before = waits(launches)
    for number, launch in enumerate(launches):
        for earlier in before[number]:
            _wait(job, worker, earlier, launches[earlier])
        _launch(job, worker, scratch, tasks, number, launch, table)
    for earlier in before[-1]:
        _wait(job, worker, earlier, launches[earlier])
    I.Return(tirx.IntImm("int32", 0))


def _wait(job: PrimExpr, worker: PrimExpr, number: int, launch: Launch) -> None:
    """Wait until launch `number` is done, or return when this helper is to leave."""
    leave = tirx.call_extern("int32", "tilec_wait", job, _int64(number), worker, _int64(launch.tasks))
    with I.If(leave != 0), I.Then():
        I.Return(tirx.IntImm("int32", 0))


def _launch(
    job: PrimExpr,
    worker: PrimExpr,
    scratch: PrimExpr,
    tasks: PrimExpr,
    number: int,
    launch: Launch,
    table: PointerTable,
) -> None:
    """Take ranges of the launch's tasks and call the kernel on them."""
    pointers = [
        I.Bind(tirx.call_extern("handle", "tilec_at", job, _int64(table.entry(argument)), _int64(argument.offset)))
        for argument in launch.arguments
    ]

    def take() -> None:
        sizes = (_int64(launch.tasks), _int64(launch.grain))
        I.buffer_store(tasks, tirx.call_extern("int64", "tilec_next", job, _int64(number), worker, *sizes), [0])

    take()
    with I.While(tasks[0] != _int64(0)):
        begin = I.Bind(tirx.bitwise_and(tasks[0], _int64(MOST_TASKS * 2 - 1)))
        end = I.Bind(tirx.shift_right(tasks[0], _int64(32)))
        I.evaluate(tirx.call_extern("void", launch.symbol, *pointers, scratch, begin, end))
        I.evaluate(tirx.call_extern("void", "tilec_done", job, _int64(number), _int64(launch.tasks), end - begin))
        take()


def _int64(value: int) -> PrimExpr:
    return tirx.IntImm("int64", value)
