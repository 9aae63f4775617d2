"""Two verdicts on quantised models: what rounding flips is no fault, what a fault flips is one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilec.importer import import_model
from tilec.ir.expr import Access, Binary, Call, Const, Expr, rebuild
from tilec.progress import unseen
from tilec.scheduler import schedule
from tilec.spec.recipe import ScheduleOptions, VerifyOptions
from tilec.spec.resolve import resolve_device
from tilec.verify.cases import cases_of
from tilec.verify.native import verify_native
from tilec.verify.whole_plan import WholePlan
from verify.builds import generated
from verify.here import in_this_process
from verify.planted import Fault, planted

ONE_DRAW = VerifyOptions(seeds=(0,))
WIDTHS = (24, 32, 48, 32, 10)


@pytest.fixture(autouse=True)
def here():
    with in_this_process():
        yield


def network(path: Path, alter: Callable[[int, dict[str, np.ndarray]], None] = lambda _layer, _arrays: None) -> Path:
    """A network of convolutions of 3 x 3 in QDQ form, uint8 and int8 with scales per channel, whose parameters may be
    altered layer by layer: `codes` and `scales` of weights, `step`, `zero` and `back`, the zero point of
    DequantizeLinear, of the activations before it, `bias`."""
    generator = np.random.default_rng(0)
    nodes, weights, value = [], [], "x"
    for layer, (inner, outer) in enumerate(pairwise(WIDTHS)):
        real = generator.standard_normal((outer, inner, 3, 3)) / np.sqrt(4.5 * inner)
        scales = np.abs(real).max((1, 2, 3)) / 127
        arrays = {
            "codes": np.rint(real / scales[:, None, None, None]).astype(np.int8),
            "scales": scales.astype(np.float32),
            "step": np.float32(6.03 / 255),
            "zero": np.uint8(128 if layer == 0 else 3),
            "back": np.uint8(128 if layer == 0 else 3),
            "bias": (generator.standard_normal(outer) / 8).astype(np.float32),
        }
        alter(layer, arrays)
        weights += [numpy_helper.from_array(np.asarray(array), f"{key}{layer}") for key, array in arrays.items()]
        nodes += [
            helper.make_node(
                "QuantizeLinear", [value, f"step{layer}", f"zero{layer}"], [f"q{layer}"], name=f"Q{layer}"
            ),
            helper.make_node(
                "DequantizeLinear", [f"q{layer}", f"step{layer}", f"back{layer}"], [f"d{layer}"], name=f"DQ{layer}"
            ),
            helper.make_node("DequantizeLinear", [f"codes{layer}", f"scales{layer}"], [f"w{layer}"], axis=0),
            helper.make_node("Conv", [f"d{layer}", f"w{layer}", f"bias{layer}"], [f"c{layer}"], name=f"C{layer}"),
            helper.make_node("Relu", [f"c{layer}"], [f"r{layer}"], name=f"R{layer}"),
        ]
        value = f"r{layer}"
    nodes.append(helper.make_node("Identity", [value], ["y"]))
    port = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, WIDTHS[0], 16, 16])
    graph = helper.make_graph(nodes, "qdq", [port], [helper.make_tensor_value_info("y", 1, None)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def built(folder: Path, model: Path, fusion: str = "register"):
    """The plan of a model, its files in the folder."""
    imported = import_model(model)
    if imported.owned_file:
        (folder / imported.owned_file).write_bytes(b"".join(imported.weights))
    return schedule(imported.graph, resolve_device("host"), ScheduleOptions(fusion=fusion, bounds=False))


def verified(folder, plan, wrong, model, options=ONE_DRAW):
    """The outcome of a library made from the plan `wrong`."""
    kernels = generated(wrong, folder, "host").body
    return verify_native(folder, plan, kernels, model, options, unseen)


@pytest.mark.feature("W45")
def test_onnxruntime_agrees_with_itself_and_with_tilec(tmp_path):
    """Optimised and not it differs by steps of quantisers, as tilec does from either."""
    model = network(tmp_path / "m.onnx")
    plan = built(tmp_path, model)
    (feeds,) = (case.feeds for case in cases_of(plan, ONE_DRAW, model))
    results = [run(model, feeds, level) for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_ALL")]
    whole = WholePlan(plan, tmp_path)
    moved = whole.moved(feeds, ["y"], lambda _moved: False)["y"]
    values = [*results, whole.outputs(feeds)["y"]]
    assert all(moved.covers(one, other) for one in values for other in values)
    assert not moved.covers(values[0], values[0] + 2 * moved.most)


def run(model, feeds, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    session = onnxruntime.InferenceSession(str(model), options, ["CPUExecutionProvider"])
    return session.run(["y"], feeds)[0]


@pytest.mark.slow_cases("full")
@pytest.mark.parametrize("fusion", ["register", "full"])
def test_quantised_networks_pass(tmp_path, fusion):
    model = network(tmp_path / "m.onnx")
    plan = built(tmp_path, model, fusion)
    outcome = verified(tmp_path, plan, plan, model)
    assert outcome.failure is None, (outcome.failure, outcome.hint)


def _zero_point(value: Expr, _node: object) -> Expr | None:
    match value:
        case Binary("*", Call(fn, (Binary("-", codes, Const(int() as zero)),)), scale):
            return Binary("*", Call(fn, (Binary("-", codes, Const(zero + 1)),)), scale)
    return None


def _rounding(name: str, shift: float) -> Fault:
    def fault(value: Expr, _node: object) -> Expr | None:
        def walk(part: Expr) -> Expr:
            new = part if isinstance(part, Access) else rebuild(part, walk)
            if isinstance(new, Call) and new.fn == "round":
                return Call(name, (Binary("+", new.args[0], Const(shift)),))
            return new

        return walk(value)

    return fault


KERNEL_FAULTS = {
    "zero point off by one": _zero_point,
    "rounds down": _rounding("floor", 0.0),
    "rounds up": _rounding("ceil", 0.0),
    "boundary off by a hundredth of a step": _rounding("round", 0.01),
}


@pytest.mark.quick_cases("register-zero point off by one", "full-zero point off by one")
@pytest.mark.parametrize("fault", KERNEL_FAULTS)
@pytest.mark.parametrize("fusion", ["register", "full"])
def test_faults_of_kernels_are_found(tmp_path, fault, fusion):
    model = network(tmp_path / "m.onnx")
    plan = built(tmp_path, model, fusion)
    for number, wrong in enumerate(planted(plan, KERNEL_FAULTS[fault])):
        outcome = verified(tmp_path, plan, wrong, model)
        assert outcome.failure is not None, number
        assert outcome.report["diverging"]["stage"] == "codegen"


def _neighbours(layer, arrays):
    if layer == 2:
        arrays["scales"] = np.roll(arrays["scales"], 1)


def _zero(layer, arrays):
    if layer == 2:
        arrays["back"] = arrays["back"] + np.uint8(1)


def _one_code(layer, arrays):
    if layer == 2:
        arrays["codes"][:, 5] = arrays["codes"][:, 6]


@pytest.mark.quick_cases("_neighbours")
@pytest.mark.parametrize("alter", [_neighbours, _zero, _one_code])
def test_faults_of_import_are_found(tmp_path, alter):
    """What is compiled is another model than the one it is compared with."""
    plan = built(tmp_path, network(tmp_path / "other.onnx", alter))
    outcome = verified(tmp_path, plan, plan, network(tmp_path / "m.onnx"))
    assert outcome.failure is not None
    assert outcome.report["diverging"]["stage"] == "import"
