"""Stores past the caches: whole aligned vectors of large results that the kernel does not read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from acceptance.building import Quiet, assert_close, folder_of, host
from cli.models import save, value, weight
from importer.reference import onnxruntime
from onnx import helper

from tests.codegen.cpu.running import AVX2, AVX512, NEON
from tests.lower.cases import Case
from tilec.codegen.cpu.compile import object_files
from tilec.codegen.cpu.compile.compile_tir import compile_function
from tilec.codegen.cpu.emit.emit_kernel import emit, emit_lowered
from tilec.codegen.cpu.target import CpuTarget
from tilec.pipeline import Job, compile_model
from tilec.runtime import load
from tilec.spec.device import Target

STREAM = "tilec_stream_"


def doubled(columns: int, ttype: str = "f32") -> Case:
    return Case(
        ["Y[i, j] = X[i, j] + X[i, j]"],
        {"i": 8, "j": columns},
        {"X": (8, columns)},
        {"l2": {"Y": {"i": 2}}, "reg": {"Y": {"i": 1}}},
        ttypes={"X": ttype, "Y": ttype},
    )


def script(case: Case, target: CpuTarget = AVX512, large: frozenset[str] = frozenset({"Y"})) -> str:
    kernel = emit(case.program(), target, "k", large)
    return "".join(function.script() for function in (kernel.function, *kernel.parts.values()))


@pytest.mark.parametrize(
    ("ttype", "target", "name"),
    [
        ("f32", AVX512, "float32x16"),
        ("f32", AVX2, "float32x8"),
        ("f32", NEON, "float32x4"),
        ("f64", AVX512, "float64x8"),
        ("i32", AVX512, "int32x16"),
        ("u8", AVX512, "uint8x64"),
    ],
)
def test_whole_vectors_pass_the_caches_by(ttype, target, name):
    assert f'"{STREAM}{name}"' in script(doubled(128, ttype), target)


def test_rows_that_begin_inside_vectors_do_not():
    assert STREAM in script(doubled(48))
    assert f'"{STREAM}' not in script(doubled(50))
    assert f'"{STREAM}' not in script(doubled(8))


def test_results_that_are_not_asked_for_do_not():
    assert STREAM not in script(doubled(64), large=frozenset())
    assert STREAM not in script(doubled(64), large=frozenset({"Z"}))


def test_a_result_that_the_kernel_reads_does_not():
    case = Case(
        ["Y[i, j] = X[i, j] * 2.0", "Z[i, j] = Y[i, j] + Y[i, 63 - j]"],
        {"i": 8, "j": 64},
        {"X": (8, 64)},
        {"l2": {"Z": {"i": 2}}, "reg": {"Z": {"i": 1}, "Y": {"i": 1}}},
        outputs=("Y", "Z"),
    )
    assert script(case, large=frozenset({"Y"})).count(STREAM) == 0
    assert f'"{STREAM}' in script(case, large=frozenset({"Y", "Z"}))


@pytest.mark.parametrize(
    ("target", "triple", "processor"),
    [
        (AVX512, "x86_64-unknown-linux-gnu", "znver4"),
        (AVX2, "x86_64-unknown-linux-gnu", "haswell"),
        (NEON, "aarch64-unknown-linux-gnu", "neoverse-n1"),
    ],
)
def test_every_processor_has_such_stores(target, triple, processor):
    kernel = emit(doubled(64).program(), target, "k", frozenset({"Y"}))
    described = Target(backend="cpu", triple=triple, processor=processor)
    data = compile_function(kernel.function, described)
    assert data[:4] == b"\x7fELF"
    assert STREAM.encode() not in data, "they are inlined"


@pytest.mark.parametrize("columns", [64, 72, 100])
def test_models_whose_tensors_no_cache_holds(tmp_path: Path, monkeypatch, columns: int):
    """A last cache of a kilobyte: what kernels hand to each other goes past it, outputs of the model do not."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "v"], ["y"]),
    ]
    path = tmp_path / "model.onnx"
    save(path, nodes, [value("x", 32, 24)], [value("y", 32, 16)], [weight("w", 24, columns), weight("v", columns, 16)])
    asked: list[frozenset[str]] = []

    def noted(kernel, target, symbol):
        asked.append(kernel.nontemporal)
        return emit_lowered(kernel, target, symbol)

    monkeypatch.setattr(object_files, "emit_lowered", noted)
    whole, recipe = host().device, host().recipe
    small = whole.levels[1].model_copy(update={"capacity": 1024, "units": 1})
    device = whole.model_copy(update={"levels": (whole.levels[0], small, *whole.levels[2:])})
    apart = recipe.model_copy(update={"schedule": recipe.schedule.model_copy(update={"fusion": "none"})})
    job = Job(apart, Quiet(), device, shapes={}, asked=frozenset(), device_text=host().device_source.text)
    compile_model(job, path, folder_of(path), last="codegen")
    session = load(folder_of(path), threads=2)
    feeds = {"x": np.random.default_rng(1).standard_normal((32, 24)).astype(np.float32)}
    (expected,) = onnxruntime(path, feeds)
    for _ in range(3):
        assert_close(session.run(feeds), {"y": expected})
    assert [len(names) for names in asked] == [1, 1, 0]
