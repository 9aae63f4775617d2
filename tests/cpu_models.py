"""Small CPU models of hand-written TIR kernels, compiled into a folder that `tilec.load` reads."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tvm import tirx
from tvm.tirx.script.builder import ir as I  # noqa: N812

from tilec.abi.manifest import Manifest, TensorSpec
from tilec.artifact import Artifact, encode
from tilec.codegen.cpu.compile.build_library import compile_model
from tilec.codegen.cpu.emit.kernel_function import Operand, Scratch, kernel_function
from tilec.codegen.launch_table import Argument, Launch
from tilec.codegen.model import Model
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


def write_model(folder: Path, model: Model, **options: Any) -> Manifest:
    """Compile `model` and write the 3-kernels.json that `tilec.load` reads."""
    manifest = compile_model(model, HOST, folder, **options)
    write_manifest(folder, manifest)
    return manifest


def write_manifest(folder: Path, manifest: Manifest) -> None:
    Artifact("kernels", {}, {"runtime": encode(manifest)}).write(folder / "3-kernels.json")
