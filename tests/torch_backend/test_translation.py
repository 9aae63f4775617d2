"""From FX graphs to ONNX: names, refusals."""

import pytest

torch = pytest.importorskip("torch", reason="pip install tilec[torch]")

from torch import fx  # noqa: E402

from tilec.torch_backend import operators  # noqa: E402
from tilec.torch_backend.translation import refused_operators, translate  # noqa: E402

assert operators.__all__
aten = torch.ops.aten


def graph(target, name="x", dtype=torch.float32, **more):
    made = fx.Graph()
    x = made.placeholder(name)
    x.meta["val"] = torch.empty(2, 3, dtype=dtype)
    y = made.call_function(target, (x,), more)
    y.meta["val"] = torch.empty(2, 3)
    made.output((y,))
    return fx.GraphModule({}, made)


def test_nodes_take_no_name_that_an_input_has():
    model = translate(graph(aten.neg.default, "neg_1"), {}, "g").model.graph
    names = [value.name for value in model.input] + [name for node in model.node for name in node.output]
    assert len(set(names)) == len(names)


def test_nodes_know_their_origin():
    translated = translate(graph(aten.expm1.default), {}, "g")
    nodes = [node.name for node in translated.model.graph.node]
    assert {translated.origins[name] for name in nodes[:-1]} == {"expm1_default"}


def test_refused_operators_are_named_with_a_reason():
    assert refused_operators(graph(aten.neg.default)) == {}
    assert refused_operators(graph(aten.erfinv.default)) == {"erfinv_default": "it has no translation"}
    (reason,) = refused_operators(graph(aten.neg.default, dtype=torch.complex128)).values()
    assert "complex128" in reason
    (reason,) = refused_operators(graph(aten.softplus.default, beta="two")).values()
    assert reason.startswith("its arguments are not translated (TypeError: ")


def test_ranges_are_of_any_type(native):
    def ranges(x):
        return torch.arange(2, 9, 3, dtype=torch.uint8), torch.arange(4, dtype=torch.float16) + x.half(), x + 1

    native(ranges, (torch.randn(4),))
