"""The import stage as a whole: graphs, symbols, weights, names, and every error it can end in."""

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.acceptance.miniatures import LONG
from tests.acceptance.miniatures import SMALL as MINIATURES
from tests.importer.reference import compare, constants, normal, onnxruntime, run, save
from tilec import zoo
from tilec.errors import ConfigError, UnsupportedError
from tilec.importer import UnsupportedModelError, import_model
from tilec.ir.bind import bind
from tilec.ir.codec import graph_from_json, graph_to_json
from tilec.ir.graph import Placement, Port, WeightRef
from tilec.ir.text import tensor_text
from tilec.ir.types import numpy_dtype
from tilec.ir.verify.graph import check_graph
from tilec.zoo.encoder import Width
from tilec.zoo.vit import Vit

FORMS = ("fused", "decomposed")
TURNS = [
    pytest.param(name, form, marks=() if (place + turn) % 2 else pytest.mark.slow)
    for place, name in enumerate(zoo.names())
    for turn, form in enumerate(FORMS)
]
"""Both forms of every model; the quick tests take one of each, by turns."""
OTHER_TURNS = [
    pytest.param(name, form, marks=() if (place + turn + 1) % 2 else pytest.mark.slow)
    for place, name in enumerate(zoo.names())
    for turn, form in enumerate(FORMS)
]
"""The same, where the quick tests take the other form of each."""
SYMBOLIC_TURNS = [
    pytest.param(*turn.values, marks=turn.marks or (pytest.mark.slow if turn.values[0] in LONG else ()))
    for turn in TURNS
]
"""The first turns; the quick tests leave out models that take long and say little that others do not."""
SIZES = {"batch": 2, "seq": 5, "past": 6, "height": 16, "width": 16}

SMALL: dict[str, dict[str, Any]] = {
    "bert": {"VOCABULARY": 50, "POSITIONS": 16, "LAYERS": 2, "CHANNELS": 24, "HEADS": 3, "HIDDEN": 40},
    "llama": {"CHANNELS": 64, "HEADS": 8, "KEY_HEADS": 2, "HIDDEN": 96, "HEAD": 8, "POSITIONS": 16},
    "mobilenet": {"STAGES": ((1, 16, 2, 2), (6, 24, 2, 2), (2, 32, 1, 4))},
    "nafnet": {"WIDTH": 4, "LEVELS": 1},
    "resnet": {"STAGES": ((1, 8, 4), (2, 12, 2))},
    "shufflenet": {"STAGES": ((2, 16, 28), (2, 32, 14))},
    "vit": {
        "SMALL_32": Vit(96, 32, 1, Width(24, 3, 32, 1e-6)),
        "BASE_16": Vit(48, 16, 1, Width(24, 2, 32, 1e-6)),
    },
}
"""Constants of the zoo's modules for networks of the same structure that run in no time."""

SMALL |= dict(MINIATURES[name] for name in ("gpt2", "swin-t", "conformer", "vgg16", "unet", "restormer"))
SMALL |= {module: {**sizes, "PIXELS": 16} for module, sizes in map(MINIATURES.__getitem__, ("mobilevit-s", "bsrn"))}


@pytest.fixture
def small_zoo(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, values in SMALL.items():
        for name, value in values.items():
            monkeypatch.setattr(f"tilec.zoo.{module}.{name}", value)


def feeds_of(graph: Any, seed: int) -> dict[str, np.ndarray[Any, Any]]:
    feeds = {}
    for port in graph.inputs:
        tensor = graph.tensors[port.tensor]
        shape = tuple(e.value for e in tensor.shape)
        values = normal(*shape, seed=seed) + (3 if seed else 0)
        feeds[port.name] = (values > 0 if tensor.ttype == "i64" else values).astype(numpy_dtype(tensor.ttype))
    return feeds


def compare_outputs(path: Path, sizes: dict[str, int], seeds: tuple[int, ...] = (0, 1)) -> None:
    imported = import_model(path)
    assert imported.graph.placement.compiled == imported.graph.placement.total > 0
    bound = bind(imported.graph, sizes)
    for seed in seeds:
        feeds = feeds_of(bound, seed)
        for found, expected in zip(run(imported, path.parent, feeds, sizes), onnxruntime(path, feeds), strict=True):
            assert found.shape == expected.shape
            assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()


@pytest.mark.slow_cases("bsrn-decomposed", "swin-t-decomposed", "unet-fused")
@pytest.mark.usefixtures("small_zoo")
@pytest.mark.parametrize(("name", "form"), OTHER_TURNS)
@pytest.mark.feature("A04", "W01")
def test_zoo_models_compute_what_the_reference_computes(tmp_path: Path, name: str, form: Any) -> None:
    rows = {"seq": 5} if name.startswith(("llama", "nerf", "bert", "gpt2", "conformer")) else {}
    rows |= {"seq": 16} if name in ("nafnet", "restormer") else {}
    compare_outputs(zoo.export(name, tmp_path / "m.onnx", form=form, **rows), {})


@pytest.mark.slow_cases("mobilenet-v2-decomposed", "shufflenet-v2-fused")
@pytest.mark.usefixtures("small_zoo")
@pytest.mark.parametrize(("name", "form"), SYMBOLIC_TURNS)
@pytest.mark.feature("B01")
def test_symbolic_zoo_models(tmp_path: Path, name: str, form: Any) -> None:
    path = zoo.export(name, tmp_path / "m.onnx", form=form, dynamic=True)
    symbols = import_model(path).graph.symbols
    assert symbols
    compare_outputs(path, {s: SIZES[s] for s in symbols}, seeds=(1,))


@pytest.mark.slow_cases("restormer-decomposed")
@pytest.mark.usefixtures("small_zoo")
@pytest.mark.parametrize(("name", "form"), TURNS)
@pytest.mark.feature("B06")
def test_binding_afterwards_gives_the_graph_of_the_bound_model(tmp_path: Path, name: str, form: Any) -> None:
    free = import_model(zoo.export(name, tmp_path / "m.onnx", form=form, dynamic=True)).graph
    bound = bind(free, {s: SIZES[s] for s in free.symbols})
    rows = {"bert-base": 5, "gpt2": 5, "conformer": 5, "llama-layer-prefill": 5, "llama-layer-decode": 7, "nerf-mlp": 1}
    rows |= dict.fromkeys(("unet", "nafnet", "restormer"), 16)
    seq = {"seq": rows[name]} if name in rows else {}
    fixed = import_model(zoo.export(name, tmp_path / "m.onnx", form=form, batch=2, **seq)).graph
    assert {p.tensor for p in bound.outputs} == {p.tensor for p in fixed.outputs}
    common = {(tensor_text(n.expr), n.expr.extents) for n in bound.nodes}
    common &= {(tensor_text(n.expr), n.expr.extents) for n in fixed.nodes}
    assert len(common) >= 0.9 * len(fixed.nodes)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", zoo.names())
def test_zoo_models_at_full_size(tmp_path: Path, name: str, form: Any) -> None:
    rows = {"seq": 1000} if name == "nerf-mlp" else {}
    compare_outputs(zoo.export(name, tmp_path / "m.onnx", form=form, **rows), {})


LIGHT = sorted((Path(onnx.__file__).parent / "backend/test/data/light").glob("*.onnx"))


@pytest.mark.slow_cases("light_densenet121", "light_inception_v2")
@pytest.mark.parametrize("path", LIGHT, ids=lambda p: p.stem)
def test_onnx_light_graphs_import_as_they_are(path: Path) -> None:
    graph = import_model(path).graph
    assert check_graph(graph) == ()
    assert graph.placement.compiled == graph.placement.total


def _two_layers(path: Path, **options: Any) -> Path:
    nodes = [
        helper.make_node("MatMul", ["x", "encoder.weight"], ["/encoder/MatMul_output_0"], name="/encoder/MatMul"),
        helper.make_node("Gelu", ["/encoder/MatMul_output_0"], ["y"], name="/encoder/Gelu"),
    ]
    weights = {"encoder.weight": normal(30, 20)}
    return save(path, nodes, {"x": ("float32", ["batch", 30])}, ["y"], weights, **options)


@pytest.mark.feature("W43")
def test_names_weights_and_digests(tmp_path: Path) -> None:
    path = _two_layers(tmp_path / "my model.onnx")
    graph = import_model(path).graph
    assert graph.name == "my model"
    assert graph.symbols == ("batch",)
    assert graph.inputs == (Port("x", "x"),)
    assert graph.outputs == (Port("y", "y"),)
    assert tensor_text(graph.nodes[0].expr) == "encoder_MatMul[m, n] = sum(k, x[m, k] * encoder_weight[k, n])"
    assert [(n.op, n.origin) for n in graph.nodes] == [("MatMul", ("/encoder/MatMul",)), ("Gelu", ("/encoder/Gelu",))]
    assert graph.files == {"my model.onnx": hashlib.sha256(path.read_bytes()).hexdigest()}
    ref = graph.constants["encoder_weight"]
    assert isinstance(ref, WeightRef)
    assert not ref.owned
    np.testing.assert_array_equal(constants(graph, tmp_path)["encoder_weight"], normal(30, 20))
    assert graph.placement == Placement(2, 2)
    assert graph_from_json(graph_to_json(graph)) == graph


def test_the_same_model_gives_the_same_graph_from_any_folder(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    first = import_model(_two_layers(tmp_path / "m.onnx"), name="n").graph
    second = import_model(_two_layers(tmp_path / "other" / "m.onnx"), name="n").graph
    assert graph_to_json(first) == graph_to_json(second)


def test_sizes_from_the_start(tmp_path: Path) -> None:
    path = _two_layers(tmp_path / "m.onnx")
    assert import_model(path, sizes={"batch": 4}).graph == bind(import_model(path).graph, {"batch": 4})


def test_outputs_that_are_inputs_constants_or_the_same(tmp_path: Path) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Identity", ["a"], ["b"])]
    path = save(tmp_path / "m.onnx", nodes, {"x": ("float32", [3])}, ["a", "b", "x", "w"], {"w": normal(3)})
    graph = compare(path, {"x": normal(3)})
    assert len({port.tensor for port in graph.outputs}) == 4
    assert {port.tensor for port in graph.outputs} <= {node.name for node in graph.nodes}


def test_inputs_that_nobody_reads_stay_and_dead_nodes_go(tmp_path: Path) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Exp", ["z"], ["dead"])]
    path = save(tmp_path / "m.onnx", nodes, {"x": ("float32", [3]), "z": ("float32", [2])}, ["y"])
    graph = compare(path, {"x": normal(3), "z": normal(2)})
    assert [port.name for port in graph.inputs] == ["x", "z"]
    assert [node.op for node in graph.nodes] == ["Relu"]


def test_initializers_that_are_also_inputs_are_constants(tmp_path: Path) -> None:
    node = helper.make_node("Add", ["x", "w"], ["y"])
    path = save(tmp_path / "m.onnx", [node], {"x": ("float32", [3]), "w": ("float32", [3])}, ["y"], {"w": normal(3)})
    assert [port.name for port in import_model(path).graph.inputs] == ["x"]


def test_every_unsupported_node_is_named_with_a_remedy(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["a"], name="first"),
        helper.make_node("Relu", ["x"], ["b"], name="fine"),
        helper.make_node("Neg", ["a"], ["c"], name="behind"),
        helper.make_node("Rellu", ["b"], ["d"], name="typo"),
        helper.make_node("Special", ["b"], ["e"], name="foreign", domain="com.acme"),
        helper.make_node("Dropout", ["x", "r", "t"], ["f"], name="training"),
    ]
    weights = {"r": np.float32(0.5), "t": np.bool_(True)}
    path = save(tmp_path / "m.onnx", nodes, {"x": ("float32", [3])}, ["b"], weights)
    with pytest.raises(UnsupportedModelError) as error:
        import_model(path)
    assert error.value.exit_code == 5
    assert error.value.place == "m.onnx"
    assert error.value.message.startswith("4 of 6 nodes are not supported")
    assert [(n.node, n.op, n.remedy) for n in error.value.nodes] == [
        ("first", "NonZero", "Make the deciding input a constant, or mask elements instead of removing them."),
        ("typo", "Rellu", "Did you mean 'Relu'?"),
        ("foreign", "Special", "Export the model with ONNX's own operators."),
        ("training", "Dropout", "Export the model for inference."),
    ]


def test_shapes_that_depend_on_data_name_the_input(tmp_path: Path) -> None:
    node = helper.make_node("Reshape", ["x", "shape"], ["y"], name="reshape")
    path = save(tmp_path / "m.onnx", [node], {"x": ("float32", [6]), "shape": ("int64", [2])}, ["y"])
    with pytest.raises(UnsupportedError, match="input 1 must be known at compile time"):
        import_model(path)


@pytest.mark.parametrize(
    ("nodes", "outputs", "message"),
    [
        ([("Relu", "x", "y"), ("Relu", "x", "y")], ["y"], "tensor 'y' is also defined by node 'Relu_0'"),
        ([("Relu", "gone", "y")], ["y"], "input 'gone' is defined nowhere"),
        ([("Relu", "b", "a"), ("Relu", "a", "b")], ["a"], "the graph has a cycle: "),
        ([("Relu", "x", "y")], ["why"], "output 'why' is defined nowhere"),
        ([("Relu", "x", "y")], [], "the model has no outputs"),
    ],
)
def test_graphs_that_are_not_sound(
    tmp_path: Path, nodes: list[tuple[str, str, str]], outputs: list[str], message: str
) -> None:
    made = [helper.make_node(op, [a], [b]) for op, a, b in nodes]
    path = save(tmp_path / "m.onnx", made, {"x": ("float32", [3])}, outputs)
    with pytest.raises(ConfigError, match=message) as error:
        import_model(path)
    assert error.value.exit_code == 2


def test_an_input_twice(tmp_path: Path) -> None:
    path = save(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"])], {"x": ("float32", [3])}, ["y"])
    model = onnx.load(path)
    model.graph.input.append(model.graph.input[0])
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ConfigError, match="input 'x' is defined twice"):
        import_model(path)


def test_absurd_sizes(tmp_path: Path) -> None:
    node = helper.make_node("ConstantOfShape", ["shape"], ["y"], name="fill")
    path = save(tmp_path / "m.onnx", [node], {}, ["y"], {"shape": np.array([1 << 31, 1 << 31], np.int64)})
    with pytest.raises(ConfigError, match="the result would take 18446744073709551616 bytes") as error:
        import_model(path)
    assert error.value.place == "m.onnx: node 'fill' (ConstantOfShape)"


def test_import_needs_neither_tvm_nor_onnxruntime(tmp_path: Path) -> None:
    path = zoo.export("nerf-mlp", tmp_path / "m.onnx", seq=4)
    code = (
        "import sys; from pathlib import Path\n"
        "sys.modules.update(dict.fromkeys(('tvm', 'tvm_ffi', 'onnxruntime')))\n"
        f"from tilec.importer import import_model; print(len(import_model(Path({str(path)!r})).graph.nodes))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(found.stdout) > 0


def test_weights_do_not_go_through_memory(tmp_path: Path) -> None:
    weight = np.zeros((2048, 8192), np.float32)
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [info("x", 1, [1, 2048])],
        [info("y", 1, [1, 8192])],
        [numpy_helper.from_array(weight, "w")],
    )
    path = tmp_path / "m.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]).SerializeToString())
    code = (
        "import resource; from pathlib import Path; from tilec.importer import import_model\n"
        f"before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; import_model(Path({str(path)!r}))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(found.stdout) * 1024 < weight.nbytes // 4
