"""Faults planted into kernels that tilec printed: every one is reported by the race detector or changes results."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from cli.models import save
from onnx import TensorProto, helper
from verify.builds import generated

from tests.emulator.kernels import HEADER, emulator_cache, needs_compiler, region
from tilec.abi.gpu_code import GpuKernel
from tilec.emulator import ORDERS, EmulatedKernel, Shape, build_kernels
from tilec.emulator.build import kernel_text
from tilec.emulator.emulate import sample
from tilec.importer import import_model
from tilec.ir.expr import constant_value
from tilec.ir.program import Program
from tilec.runtime.memory import aligned_array
from tilec.scheduler import schedule
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.resolve import resolve_device
from tilec.verify.program_files import read_programs

pytestmark = needs_compiler


@dataclass
class Printed:
    """A kernel, its text and its program."""

    kernel: GpuKernel
    text: str
    program: Program


def graph(folder: Path) -> Path:
    """Attention over 13 rows and what is around it: products, a softmax, a layer norm; a convolution of odd sizes."""
    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"]),
        helper.make_node("MatMul", ["p", "v"], ["o"]),
        helper.make_node("LayerNormalization", ["o", "g", "b"], ["y"]),
        helper.make_node("Conv", ["i", "c"], ["f"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["f"], ["z"]),
    ]
    shapes = {"w": (40, 37), "v": (37, 48), "g": (48,), "b": (48,), "c": (5, 3, 3, 3)}
    weights = [onnx.numpy_helper.from_array(rng.normal(size=s).astype(np.float32), n) for n, s in shapes.items()]
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", (13, 40)), ("i", (1, 3, 9, 7)))]
    return save(folder / "m.onnx", nodes, ports, [onnx.ValueInfoProto(name=n) for n in "yz"], weights, opset=22)


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> list[Printed]:
    folder = tmp_path_factory.mktemp("printed")
    plan = schedule(import_model(graph(folder)).graph, resolve_device("a100"), ScheduleOptions())
    body = generated(plan, folder, "a100").body
    text, programs = (folder / "kernels.cu").read_text(), read_programs(folder, body)
    kernels = [GpuKernel(**each) for each in body["runtime"]["gpu"]["kernels"]]
    return [Printed(each, kernel_text(text, each.symbol), programs[each.kernel]) for each in kernels]


def launches(printed: Printed, texts: list[str]) -> list[EmulatedKernel]:
    """Variants of a kernel, built together."""
    names = [f"{printed.kernel.symbol}_{i}" for i in range(len(texts))]
    renamed = [text.replace(f" {printed.kernel.symbol}(", f" {name}(") for text, name in zip(texts, names, strict=True)]
    bodies = "".join(text.replace('#include "tile.h"\n', "").lstrip("\n") for text in renamed)
    whole = '#include "tile.h"\n' + bodies
    library = build_kernels(whole, names, {"tile.h": HEADER}, emulator_cache())
    return [EmulatedKernel(library, name, whole) for name in names]


def ran(printed: Printed, kernel: EmulatedKernel, order: Any) -> tuple[bool, bytes]:
    """Whether something was found in some blocks, and what they stored."""
    program, rng = printed.program, np.random.default_rng(1)
    arrays = [aligned_array(tuple(constant_value(n) or 0 for n in p.shape), np.dtype("f4")) for p in program.parameters]
    stored = [p.name in program.outputs for p in program.parameters]
    for array, out in zip(arrays, stored, strict=True):
        array[...] = np.nan if out else rng.integers(-3, 4, array.shape)
    how = printed.kernel
    regions = [region(array, out) for array, out in zip(arrays, stored, strict=True)]
    shape = Shape(how.grid, how.block, how.shared_bytes)
    told = kernel.launch(shape, regions, order, sample(how.grid, 2), counting=False)
    return bool(told.findings), b"".join(a.tobytes() for a, out in zip(arrays, stored, strict=True) if out)


def without(text: str, number: int, what: str) -> str:
    """The text without the occurrence of this number."""
    parts = text.split(what)
    return what.join(parts[: number + 1]) + ";" + what.join(parts[number + 1 :])


def test_clean_kernels_raise_nothing_and_agree_in_all_orders(printed):
    assert len(printed) >= 2
    for each in printed:
        (kernel,) = launches(each, [each.text])
        results = [ran(each, kernel, order) for order in ORDERS]
        assert not any(found for found, _ in results)
        assert len({stored for _, stored in results}) == 1


def test_every_barrier_that_matters_is_reported_in_every_order(printed):
    dropped = needless = 0
    for each in printed:
        count = each.text.count("t_barrier();")
        clean, *faulty = launches(each, [each.text, *(without(each.text, i, "t_barrier();") for i in range(count))])
        expected = ran(each, clean, ORDERS[0])[1]
        for kernel in faulty:
            results = [ran(each, kernel, order) for order in ORDERS]
            reported = [found for found, _ in results]
            assert all(reported) or not any(reported)
            assert all(reported) or all(stored == expected for _, stored in results)
            dropped, needless = dropped + 1, needless + (not any(reported))
    assert dropped >= 6
    assert needless <= dropped / 4


def test_rows_one_word_off_and_wrong_lanes_are_seen(printed):
    seen = 0
    for each in printed:
        pads = [re.sub(r"(LDS\d?\(\w+ \+ [^;]*?\* )(\d+)", lambda m: f"{m[1]}{int(m[2]) + 1}", each.text, count=1)]
        lanes = re.sub(r"t_shfl_xor\((\w+), (\w+)\)", r"t_shfl_xor(\1, \2 * 2 % 32)", each.text)
        changes = [text for text in (*pads, lanes) if text != each.text]
        clean, *faulty = launches(each, [each.text, *changes])
        expected = ran(each, clean, ORDERS[0])[1]
        outcomes = [ran(each, kernel, ORDERS[0]) for kernel in faulty]
        seen += sum(found or stored != expected for found, stored in outcomes)
        assert all(found or stored != expected for found, stored in outcomes[len(pads) :])
    assert seen >= 2
