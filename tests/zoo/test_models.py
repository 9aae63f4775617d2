"""Every model in both forms: valid, finite, well scaled, equal between forms and across batches."""

import functools
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray

from tests.acceptance.miniatures import SEQ, shrunk
from tilec import zoo

Arrays = dict[str, NDArray[Any]]
Dims = tuple[int | str, ...]
FORMS: tuple[zoo.Form, ...] = ("fused", "decomposed")
SMALL = ("gpt2", "vit-b16", "swin-t", "mobilevit-s", "restormer", "bsrn", "conformer")
"""Models that never run here but with few and narrow layers."""
LARGE = ("bert-base", "vgg16", "resnet-50", "unet", "vit-s32", "llama-layer-prefill", "llama-layer-decode")
"""Models that run here small as well, and as they are among the slow tests; the others are small as they are."""
NAMES = [*zoo.names(), *(pytest.param(f"{name}, whole", marks=pytest.mark.slow) for name in LARGE)]
LENGTHS = {"bert-base": 9, "nerf-mlp": 33, "llama-layer-prefill": 7, "llama-layer-decode": 12}
LENGTHS |= {"gpt2": 9, "conformer": 8, "unet": 32, "nafnet": 32, "restormer": 32}
"""The sequence lengths used here; the other models have none, or keep theirs."""
LENGTH_SYMBOLS = {"bert-base": "seq", "llama-layer-prefill": "seq", "llama-layer-decode": "past"}
LENGTH_SYMBOLS |= {"gpt2": "seq", "conformer": "seq"}
IMAGES = ("unet", "nafnet", "restormer")
"""Models of images of any height and width."""
KNOWN_WORDS = 50
"""Token ids that every vocabulary has."""


@dataclass(frozen=True)
class Observed:
    """What is kept of one model in one form: facts of its graph, and the reference's outputs by case."""

    opset: int
    operators: frozenset[str]
    inputs: tuple[tuple[str, int, Dims], ...]
    outputs: dict[str, Arrays]


@functools.cache
def observe(name: str, form: zoo.Form, dynamic: bool = False) -> Observed:
    """Build, check and run a model on all cases, and let go of it: bert-base has 440 MB."""
    name, _, whole = name.partition(", ")
    small = name in (*SMALL, *LARGE) and not whole
    size = shrunk(name) if small else nullcontext()
    seq = LENGTHS.get(name, SEQ.get(name) if small else None)
    with size:
        model = zoo.build(name, form=form, dynamic=dynamic, seq=None if dynamic else seq)
    serialized = model.SerializeToString()
    onnx.checker.check_model(serialized, full_check=True)
    inputs = tuple(
        (value.name, value.type.tensor_type.elem_type, tuple(d.dim_param or d.dim_value for d in dims))
        for value in model.graph.input
        for dims in [value.type.tensor_type.shape.dim]
    )
    facts = {
        "opset": model.opset_import[0].version,
        "operators": frozenset(node.op_type for node in model.graph.node),
    }
    del model
    session = _session(serialized)
    cases = _dynamic_cases(name, inputs) if dynamic else _static_cases(inputs)
    return Observed(**facts, inputs=inputs, outputs={case: _run(session, feeds) for case, feeds in cases.items()})


def _session(serialized: bytes) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.disable_prepacking", "1")
    return onnxruntime.InferenceSession(serialized, options, providers=["CPUExecutionProvider"])


def _run(session: onnxruntime.InferenceSession, feeds: Arrays) -> Arrays:
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(None, feeds), strict=True))


def _feeds(inputs: tuple[tuple[str, int, Dims], ...], symbols: dict[str, int], seed: int, mean: float = 0.0) -> Arrays:
    generator = np.random.default_rng(seed)
    feeds: Arrays = {}
    for name, element_type, dims in inputs:
        shape = [symbols[dim] if isinstance(dim, str) else dim for dim in dims]
        if element_type == onnx.TensorProto.INT64:
            feeds[name] = generator.integers(0, KNOWN_WORDS if name == "input_ids" else 2, shape)
        else:
            feeds[name] = (generator.standard_normal(shape) + mean).astype(np.float32)
    return feeds


def _static_cases(inputs: tuple[tuple[str, int, Dims], ...]) -> dict[str, Arrays]:
    masked = {
        name: np.zeros_like(feed) if name == "attention_mask" else feed for name, feed in _feeds(inputs, {}, 1).items()
    }
    return {
        "first": _feeds(inputs, {}, 1),
        "second": _feeds(inputs, {}, 2),
        "mean 3": _feeds(inputs, {}, 1, 3.0),
        "all masked": masked,
    }


def _dynamic_cases(name: str, inputs: tuple[tuple[str, int, Dims], ...]) -> dict[str, Arrays]:
    """The two static cases in one batch and alone; three items of two other lengths, or oblong."""
    length = LENGTHS.get(name, 1)
    symbols = {"batch": length if name == "nerf-mlp" else 1, "past": length - 1}
    symbols |= dict.fromkeys(("seq", "height", "width"), length)
    first, second = _feeds(inputs, symbols, 1), _feeds(inputs, symbols, 2)
    cases = {"both": {key: np.concatenate([first[key], second[key]]) for key in first}, "second": second}
    if name in LENGTH_SYMBOLS:
        for other in (1, 14):
            cases[f"length {other}"] = _feeds(inputs, {"batch": 3, LENGTH_SYMBOLS[name]: other}, 6)
    if name in IMAGES:
        cases["oblong"] = _feeds(inputs, {"batch": 3, "height": 48, "width": 16}, 6)
    return cases


def _distance(actual: NDArray[Any], expected: NDArray[Any]) -> float:
    """The largest difference relative to the largest value."""
    assert actual.shape == expected.shape
    return float(np.max(np.abs(actual - expected)) / np.max(np.abs(expected)))


@pytest.mark.parametrize("name", NAMES)
def test_forms_are_what_exporters_write(name: str) -> None:
    fused, decomposed = observe(name, "fused"), observe(name, "decomposed")
    assert fused.opset >= 20
    assert decomposed.opset == 13
    compound = {"LayerNormalization", "RMSNormalization", "BatchNormalization", "Gelu", "RotaryEmbedding", "Split"}
    assert not compound & decomposed.operators
    if name == "nerf-mlp":
        assert decomposed.operators == {"Transpose", "MatMul", "Relu"}
    elif name == "unet":
        assert decomposed.operators == {"Conv", "Relu", "MaxPool", "ConvTranspose", "Concat"}
    else:
        assert compound & fused.operators or name == "vgg16"
        assert not {"Constant", "Shape"} & fused.operators
        assert {"Constant", "Shape", "Gather", "Unsqueeze", "Concat", "Reshape"} <= decomposed.operators


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", ["first", "mean 3"])
def test_outputs_are_well_scaled(name: str, case: str) -> None:
    for output in observe(name, "fused").outputs[case].values():
        assert np.all(np.isfinite(output))
        assert 0.1 < np.std(output) < 10
        assert np.max(np.abs(output)) < 100


@pytest.mark.parametrize("name", NAMES)
def test_outputs_depend_on_inputs(name: str) -> None:
    outputs = observe(name, "fused").outputs
    for key, output in outputs["first"].items():
        assert _distance(outputs["second"][key], output) > 0.01


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", ["first", "second", "mean 3", "all masked"])
def test_forms_agree(name: str, case: str) -> None:
    fused, decomposed = observe(name, "fused"), observe(name, "decomposed")
    assert decomposed.inputs == fused.inputs
    assert list(decomposed.outputs[case]) == list(fused.outputs[case])
    for key, output in fused.outputs[case].items():
        assert _distance(decomposed.outputs[case][key], output) < 1e-4


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", FORMS)
def test_dynamic_equals_static_item_by_item(name: str, form: zoo.Form) -> None:
    static, dynamic = observe(name, form), observe(name, form, dynamic=True)
    assert all("batch" in dims for _, _, dims in dynamic.inputs)
    for key, second in static.outputs["second"].items():
        joined = np.concatenate([static.outputs["first"][key], second])
        assert _distance(dynamic.outputs["both"][key], joined) < 1e-4
        assert _distance(dynamic.outputs["second"][key], second) < 1e-4


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", FORMS)
def test_dynamic_symbols(name: str, form: zoo.Form) -> None:
    dynamic = observe(name, form, dynamic=True)
    symbols = {dim for _, _, dims in dynamic.inputs for dim in dims if isinstance(dim, str)}
    others = ["height", "width"] if name.partition(", ")[0] in IMAGES else []
    assert symbols == {"batch", *others, *([LENGTH_SYMBOLS[name]] if name in LENGTH_SYMBOLS else [])}


@pytest.mark.parametrize("name", LENGTH_SYMBOLS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("length", [1, 14])
def test_dynamic_takes_other_lengths(name: str, form: zoo.Form, length: int) -> None:
    for output in observe(name, form, dynamic=True).outputs[f"length {length}"].values():
        assert output.shape[0] == 3
        assert np.all(np.isfinite(output))


@pytest.mark.parametrize("name", IMAGES)
def test_dynamic_takes_other_sides(name: str) -> None:
    fused, decomposed = (observe(name, form, dynamic=True).outputs["oblong"] for form in FORMS)
    for key, output in fused.items():
        assert (output.shape[0], *output.shape[2:]) == (3, 48, 16)
        assert _distance(decomposed[key], output) < 1e-4


@pytest.mark.slow_cases("fused")
@pytest.mark.parametrize("form", FORMS)
def test_decode_with_an_empty_cache(form: zoo.Form) -> None:
    session = _session(zoo.build("llama-layer-decode", form=form, seq=1).SerializeToString())
    empty, token = np.zeros((1, 4, 0, 64), np.float32), np.ones((1, 1, 2048), np.float32)
    outputs = _run(session, {"hidden_states": token, "past_key": empty, "past_value": empty})
    assert [output.shape for output in outputs.values()] == [(1, 1, 2048), (1, 4, 1, 64), (1, 4, 1, 64)]
    assert all(np.all(np.isfinite(output)) for output in outputs.values())
