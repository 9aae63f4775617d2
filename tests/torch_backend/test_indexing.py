"""Places that are written: what a model is told to do."""

import pytest

torch = pytest.importorskip("torch", reason="pip install tilec[torch]")

from tilec.torch_backend import compiled_graph  # noqa: E402


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_sums_in_16_bits_are_made_in_float32(dtype, native, monkeypatch):
    models, translate = [], compiled_graph.translate
    monkeypatch.setattr(compiled_graph, "translate", lambda *args: models.append(translate(*args)) or models[-1])
    x, values = torch.randn(5, 3).to(dtype), torch.randn(7, 3).to(dtype)
    native(lambda x, i, v: x.index_add(0, i, v), (x, torch.tensor([0, 4, 4, 1, 4, 0, 0]), values))
    (graph,) = [each.model.graph for each in models]
    made = {name: node.op_type for node in graph.node for name in node.output}
    (scatter,) = [node for node in graph.node if node.op_type.startswith("Scatter")]
    narrow = dtype != torch.float32
    assert (made.get(scatter.input[0]) == "Cast") == narrow
    assert any(node.op_type == "Cast" and node.input[0] == scatter.output[0] for node in graph.node) == narrow
