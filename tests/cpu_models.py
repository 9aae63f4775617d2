"""Small CPU models of hand-written TIR kernels, compiled into a folder that `tilec.load` reads."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script.builder import ir as I  # noqa: N812

from tilec.abi.manifest import Manifest, TensorSpec
from tilec.abi.shape_program import ConstraintSpec, ShapeProgram, SymbolSpec
from tilec.artifact import Artifact, encode
from tilec.codegen.cpu.compile.build_library import compile_model
from tilec.codegen.cpu.emit.kernel_function import Operand, Scratch, kernel_function
from tilec.codegen.launch_table import Argument, Launch
from tilec.codegen.model import Model
from tilec.codegen.shape_program import Number, NumberBuilder, symbols_as_numbers
from tilec.ir.expr import Var
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.text import parse_expr, text_of
from tilec.spec.device import Target

HOST = Target(backend="cpu")


def int64(value: int) -> Any:
    return tirx.IntImm("int64", value)


def rows(symbol: str, count: int, width: int, formula: Callable[..., Any], operands: int = 2, repeat: int = 1) -> Any:
    """Kernel over `count` rows of `width` floats, a row a task: last[t, j] = formula(read, t, j).

    `read(i, t, j)` is an element of operand i. The row is computed `repeat` times to make it last.
    """
    size = count * width

    def body(buffers: Any, scratch: Scratch, task: Any) -> None:
        def read(operand: int, row: Any, column: Any) -> Any:
            return buffers[f"x{operand}"][row * width + column]

        with I.serial(int64(0), int64(repeat)), I.serial(int64(0), int64(width)) as column:
            value = formula(read, task, column)
            I.buffer_store(buffers[f"x{operands - 1}"], value, [task * width + column])

    return kernel_function(symbol, [Operand(f"x{i}", "float32", size) for i in range(operands)], body)


def neighbours(symbol: str, count: int, width: int, repeat: int = 1) -> Any:
    """last[t] = 0.5 * x[t] + 0.5 * x[t + 1], the row after the last being the first."""
    half = tirx.FloatImm("float32", 0.5)
    return rows(
        symbol,
        count,
        width,
        lambda read, t, j: half * read(0, t, j) + half * read(0, tirx.floormod(t + 1, int64(count)), j),
        repeat=repeat,
    )


def tensor(name: str, *shape: int) -> TensorSpec:
    return TensorSpec(name, "f32", shape)


def whole(space: Any, size: int, index: int = 0, offset: int = 0, writes: bool = False) -> Argument:
    return Argument(space, index, offset, size, writes)


def chain(length: int, count: int, width: int, repeat: int = 1, grain: int = 1) -> Model:
    """`length` times `neighbours` from input x to output y through two arena buffers."""
    size = 4 * count * width
    launches = []
    for k in range(length):
        source = whole("input", size) if k == 0 else whole("arena", size, offset=(k + 1) % 2 * size)
        last = k == length - 1
        target = whole("output", size, writes=True) if last else whole("arena", size, 0, k % 2 * size, True)
        launches.append(Launch("neighbours", (source, target), count, grain=grain))
    return Model(
        {"neighbours": neighbours("neighbours", count, width, repeat)},
        tuple(launches),
        (tensor("x", count, width),),
        (tensor("y", count, width),),
        2 * size,
    )


def chain_reference(x: Any, length: int) -> Any:
    """What `chain` computes, bit for bit."""
    import numpy as np

    half = np.float32(0.5)
    for _ in range(length):
        x = half * x + half * np.roll(x, -1, axis=0)
    return x


def sized_neighbours(symbol: str, repeat: int = 1) -> Any:
    """`neighbours` of `count` rows of `width` floats, passed behind the range of tasks; a row is made in scratch."""
    half = tirx.FloatImm("float32", 0.5)
    with IRBuilder() as builder, I.prim_func(s_tir=True):
        I.func_name(symbol)
        I.func_attr({"tirx.noalias": True, "global_symbol": symbol})
        pointers = [I.arg(name, I.ptr("float32")) for name in ("x", "y")]
        block = I.arg("scratch", I.ptr("uint8"))
        begin, end, count, width = (I.arg(name, I.int64()) for name in ("begin", "end", "count", "width"))
        x, y = (I.decl_buffer((int64(1 << 40),), "float32", data=pointer) for pointer in pointers)
        start = I.Bind(tirx.address_of(I.decl_buffer((int64(1 << 40),), "uint8", data=block)[int64(0)]))
        row = I.decl_buffer((int64(1 << 40),), "float32", data=start)
        with I.serial(begin, end) as t, I.serial(int64(0), int64(repeat)):
            with I.serial(int64(0), width) as j:
                below = tirx.floormod(t + 1, count)
                I.buffer_store(row, half * x[t * width + j] + half * x[below * width + j], [j])
            with I.serial(int64(0), width) as j:
                I.buffer_store(y, row[j], [t * width + j])
    return builder.get()


def sized_chain(
    length: int,
    repeat: int = 1,
    grain: int = 1,
    batch: tuple[int, int | None] = (0, None),
    seq: tuple[int, int | None] = (0, None),
    constraints: tuple[tuple[str, str], ...] = (),
) -> Model:
    """`chain` of any number of rows, `batch`, of any width, `seq`: even lengths of up to 8 rows have kernels of their
    own, chosen by guards. Input `also` has the same width."""
    symbols = ("batch", "seq")
    numbers = NumberBuilder(symbols_as_numbers(symbols, dict.fromkeys(symbols, 0)), KnownRanges())
    size = numbers.size(parse_expr("batch * seq * 4"))
    second = numbers.size(parse_expr("(batch * seq * 4 + 63) // 64 * 64"))
    total = numbers.position(parse_expr("(batch * seq * 4 + 63) // 64 * 128"))
    scratch = numbers.size(parse_expr("seq * 4"))
    few = "batch <= 8 and batch % 2 == 0"
    tasks = [numbers.size(parse_expr(f"where({few}, batch, 0)")), numbers.size(parse_expr(f"where({few}, 0, batch)"))]
    launches = []
    for k in range(length):
        places = [
            Argument("arena", 0, offset, size, False, f"a{n}", frozenset({f"a{1 - n}"}))
            for n, offset in enumerate((0, second))
        ]
        source = Argument("input", 0, 0, size) if k == 0 else places[(k + 1) % 2]
        target = Argument("output", 0, 0, size) if k == length - 1 else places[k % 2]
        arguments = (source, replace(target, writes=True))
        sizes = (numbers.size(Var("batch")), numbers.size(Var("seq")))
        for name, count in zip(("few", "many"), tasks, strict=True):
            launches.append(Launch(name, arguments, count, scratch, grain, group=f"group {k}", sizes=sizes))
    width = numbers.position(parse_expr(f"maximum(1, batch // {grain})"))
    conditions = tuple(ConstraintSpec(text, numbers.position(parse_expr(text)), why) for text, why in constraints)
    extents = {text: numbers.position(parse_expr(text)) for text in ("batch", "seq", "seq + 1")}
    done = numbers.numbers
    program = ShapeProgram(
        (SymbolSpec("batch", "input", 0, 0, *batch, origin="recipe"), SymbolSpec("seq", "input", 0, 1, *seq)),
        tuple(text_of(expr) for expr in done.exprs),
        extents,
        conditions,
        (total,),
        (tuple(launch.tasks.position for launch in launches if isinstance(launch.tasks, Number)),),
        (width,),
        (numbers.position(parse_expr("seq * 4")),),
    )
    kernels = {name: sized_neighbours(name, repeat) for name in ("few", "many")}
    inputs = (TensorSpec("x", "f32", ("batch", "seq")), TensorSpec("also", "f32", ("seq", "seq + 1", 2)))
    outputs = (TensorSpec("y", "f32", ("batch", "seq")),)
    return Model(kernels, tuple(launches), inputs, outputs, sizes=program, numbers=done)


def write_model(folder: Path, model: Model, **options: Any) -> Manifest:
    """Compile `model` and write the 3-kernels.json that `tilec.load` reads."""
    manifest = compile_model(model, HOST, folder, **options)
    write_manifest(folder, manifest)
    return manifest


def write_manifest(folder: Path, manifest: Manifest) -> None:
    Artifact("kernels", {}, {"runtime": encode(manifest)}).write(folder / "3-kernels.json")
