"""Dynamic models compiled once and run at many sizes, against onnxruntime."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from acceptance.building import build, folder_of, host, plan_of, tilec
from tilec.artifact import Artifact, digest_file, read_artifact
from tilec.codegen.driver import codegen
from tilec.errors import UsageError
from tilec.ir.graph import Call, Port
from tilec.ir.plan import Plan
from tilec.ir.sizes import SymbolRange
from tilec.ir.text import parse_expr
from tilec.progress import unseen
from tilec.runtime import Session, load

Shape = tuple[int | str, ...]
RANGES = {"batch": SymbolRange(1, 600), "seq": SymbolRange(1, 512, origin="recipe"), "kept": SymbolRange(0, 600)}
SIZES = (1, 2, 3, 7, 8, 16, 17, 31, 64, 100, 128, 129)


def weight(name: str, *shape: int) -> onnx.TensorProto:
    values = np.random.default_rng(len(name)).standard_normal(shape) / np.sqrt(shape[0])
    return numpy_helper.from_array(values.astype(np.float32), name)


def write(
    path: Path, nodes: list[onnx.NodeProto], inputs: Mapping[str, Shape], outputs: Mapping[str, Shape], *weights: object
) -> Path:
    ports = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in each.items()]
        for each in (inputs, outputs)
    ]
    graph = helper.make_graph(nodes, path.stem, *ports, list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)
    return path


def mlp(folder: Path) -> Path:
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "w2"], ["c"]),
        helper.make_node("Softmax", ["c"], ["y"], axis=-1),
    ]
    weights = (weight("w1", 20, 64), weight("b1", 64), weight("w2", 64, 10))
    return write(folder / "mlp.onnx", nodes, {"x": ("batch", 20)}, {"y": ("batch", 10)}, *weights)


def attention(folder: Path) -> Path:
    nodes = [
        *(helper.make_node("MatMul", ["x", f"w{n}"], [n]) for n in "qkv"),
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "kt"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["o"]),
        helper.make_node("Add", ["o", "x"], ["r"]),
        helper.make_node("MatMul", ["r", "wo"], ["y"]),
    ]
    shape = ("batch", "seq", 32)
    return write(
        folder / "attention.onnx", nodes, {"x": shape}, {"y": shape}, *(weight(f"w{n}", 32, 32) for n in "qkvo")
    )


def convolutions(folder: Path) -> Path:
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w2"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["c"], ["e"]),
        helper.make_node("Flatten", ["e"], ["f"]),
        helper.make_node("MatMul", ["f", "w3"], ["y"]),
    ]
    weights = (weight("w1", 8, 3, 3, 3), weight("b1", 8), weight("w2", 16, 8, 3, 3), weight("w3", 16, 5))
    return write(folder / "conv.onnx", nodes, {"x": ("batch", 3, 12, 12)}, {"y": ("batch", 5)}, *weights)


def compiled(model: Path, change: Callable[[Plan], Plan] = lambda plan: plan) -> Session:
    """The model compiled once, with the ranges of its symbols."""
    build(model, last="schedule")
    folder = folder_of(model)
    plan = plan_of(folder)
    ranges = {symbol: RANGES[symbol] for symbol in plan.symbols}
    plan = change(replace(plan, symbol_ranges=ranges))
    options = host().recipe.codegen
    body = codegen(plan, host().device, options, folder=folder, cache=None, advance=unseen)
    Artifact("kernels", {}, body).write(folder / "3-kernels.json")
    return load(folder)


def summary(folder: Path) -> Path:
    """A softmax over rows, and their largest products: tasks hold rows whole."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Softmax", ["a"], ["b"], axis=1),
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["t", "b"], ["c"]),
        helper.make_node("ReduceMax", ["b"], ["d"], axes=[1]),
        helper.make_node("Add", ["c", "d"], ["y"]),
    ]
    return write(folder / "summary.onnx", nodes, {"x": (1, "rows", 32)}, {"y": (1, 32, 32)}, weight("w", 32, 32))


def reference_of(model: Path) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])


def near(value: np.ndarray, expected: np.ndarray) -> bool:
    return value.shape == expected.shape and bool(
        np.all(np.abs(value - expected) <= 1e-5 * max(1, np.abs(expected).max(initial=0)))
    )


SHAPES: Mapping[Callable[[Path], Path], Callable[[int], Shape]] = {
    mlp: lambda n: (n, 20),
    attention: lambda n: (1 + n % 3, n, 32),
    convolutions: lambda n: (n, 3, 12, 12),
}


@pytest.mark.quick_cases("mlp")
@pytest.mark.feature("B01", "B02")
@pytest.mark.parametrize("model", SHAPES)
def test_one_compilation_runs_at_all_sizes(tmp_path, model):
    """One after the other, then by eight callers at once that each go through all of them."""
    path = model(tmp_path)
    session, reference = compiled(path), reference_of(path)
    known = []
    for size in SIZES:
        x = np.random.default_rng(size).standard_normal(SHAPES[model](size), np.float32)
        known.append((x, reference.run(None, {"x": x})[0]))
    for x, expected in known:
        assert near(session.run({"x": x})["y"], expected), x.shape
    wrong = []

    def call(first):
        for x, expected in (*known[first:], *known[:first]):
            if not near(session.run({"x": x})["y"], expected):
                wrong.append(x.shape)

    callers = [threading.Thread(target=call, args=(n,)) for n in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == []
    symbol = session.symbols[-1]
    assert symbol.high is not None
    origin = rf" \({symbol.origin}\)" if symbol.origin else ""
    with pytest.raises(UsageError, match=rf"the model takes 1 to {symbol.high} for {symbol.name}{origin}"):
        session.run({"x": np.zeros(SHAPES[model](symbol.high + 1), np.float32)})


@pytest.mark.slow
def test_a_compiled_model_is_verified_and_runs_from_the_command_line(tmp_path):
    """Inputs are drawn at the usual sizes, or at those of --shape."""
    mlp(tmp_path)
    ran = tilec("compile", "mlp.onnx", "--shape", "batch=1..600", folder=tmp_path)
    assert "verified on: host" in ran.stderr
    assert read_artifact(tmp_path / "mlp.tilec" / "4-report.json", "report").body["verdict"] == "pass"
    for flags, shape in (((), "[8, 10]"), (("--shape", "batch=7"), "[7, 10]")):
        ran = tilec("run", "mlp.tilec", *flags, folder=tmp_path)
        assert f"output y: float32{shape}" in ran.stderr
    ran = tilec("run", "mlp.tilec", "--shape", "seq=7", folder=tmp_path, code=2)
    assert "the model has no size 'seq'\n  Its sizes are batch." in ran.stderr


def test_working_memory_is_of_the_sizes_of_a_run_however_far_their_range_goes(tmp_path):
    """Converters write 10^9 for an end that there is not."""
    path = summary(tmp_path)
    build(path, ranges={"rows": SymbolRange(1, 10**9)})
    session, reference = load(folder_of(path)), reference_of(path)
    for size in (1, 17, 1000):
        x = np.random.default_rng(size).standard_normal((1, size, 32), np.float32)
        assert near(session.run({"x": x})["y"], reference.run(None, {"x": x})[0])


@pytest.mark.feature("B09")
def test_guards_choose_among_variants(tmp_path):
    """Every group in two variants: small batches have a kernel of their own."""

    def in_two(plan: Plan) -> Plan:
        few = parse_expr("batch < 16")
        groups = []
        for group in plan.groups:
            last = group.variants[-1]
            groups.append(replace(group, variants=(replace(last, guard=few, kernel=f"{last.kernel}_few"), last)))
        return replace(plan, groups=tuple(groups))

    path = convolutions(tmp_path)
    session, reference = compiled(path, in_two), reference_of(path)
    steps = read_artifact(folder_of(path) / "3-kernels.json", "kernels").body["steps"]
    assert {step["guard"] for step in steps} == {"batch < 16", "batch >= 16"}
    for size in (1, 15, 16, 17, 100):
        x = np.random.default_rng(size).standard_normal((size, 3, 12, 12), np.float32)
        assert near(session.run({"x": x})["y"], reference.run(None, {"x": x})[0])
        groups = [span.name for span in session.traced({"x": x})]
        assert len(groups) == len(set(groups))


def rows_kept(folder: Path) -> Path:
    """The part that onnxruntime runs: rows of e whose first element is positive."""
    nodes = [
        helper.make_node("Slice", ["e", "zero", "one", "one"], ["first"]),
        helper.make_node("Squeeze", ["first", "one"], ["flat"]),
        helper.make_node("Greater", ["flat", "none"], ["positive"]),
        helper.make_node("Compress", ["e", "positive"], ["r"], axis=0),
    ]
    constants = [
        numpy_helper.from_array(np.array(value, np.int64), name) for name, value in (("zero", [0]), ("one", [1]))
    ]
    none = numpy_helper.from_array(np.float32(0), "none")
    return write(folder / "kept.onnx", nodes, {"e": ("batch", 32)}, {"r": ("kept", 32)}, *constants, none)


@pytest.mark.slow
def test_sizes_that_a_call_reports(tmp_path):
    """e = x w; r = the rows of e that a call keeps; y = softmax(r r^T) r, z = x + x."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["e"]),
        helper.make_node("Add", ["x", "x"], ["z"]),
        helper.make_node("MatMul", ["r", "v"], ["q"]),
        helper.make_node("Transpose", ["r"], ["rt"], perm=[1, 0]),
        helper.make_node("MatMul", ["q", "rt"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "r"], ["o"]),
        helper.make_node("MatMul", ["o", "v"], ["y"]),
    ]
    inputs: dict[str, Shape] = {"x": ("batch", 32), "r": ("kept", 32)}
    outputs: dict[str, Shape] = {"e": ("batch", 32), "z": ("batch", 32), "y": ("kept", 32), "o": ("kept", 32)}
    path = write(tmp_path / "model.onnx", nodes, inputs, outputs, weight("w", 32, 32), weight("v", 32, 32))
    folder_of(path).mkdir()
    kept = rows_kept(folder_of(path))

    def with_call(plan: Plan) -> Plan:
        ports = {port.name: port.tensor for port in (*plan.inputs, *plan.outputs)}
        call = Call(kept.name, (Port("e", ports["e"]),), (Port("r", ports["r"]),), ())
        return replace(
            plan,
            inputs=tuple(port for port in plan.inputs if port.name != "r"),
            outputs=tuple(port for port in plan.outputs if port.name in "zy"),
            calls=(call,),
            files={**plan.files, kept.name: digest_file(kept)},
        )

    session, reference, rows = compiled(path, with_call), reference_of(path), reference_of(kept)
    for size in SIZES:
        x = np.random.default_rng(size).standard_normal((size, 32), np.float32)
        e = reference.run(["e"], {"x": x, "r": np.zeros((1, 32), np.float32)})[0]
        r = rows.run(None, {"e": e})[0]
        expected = reference.run(["z", "y"], {"x": x, "r": r})
        y = np.empty_like(expected[1])
        for out in ({}, {"y": y}):
            given = session.run({"x": x}, out)
            assert near(given["z"], expected[0])
            assert near(given["y"], expected[1]), (size, r.shape)
        assert given["y"] is y
