"""Programs of `torch.export` as compiled models: names, sizes, buffers that are written, arguments, refusals."""

import numpy as np
import onnx
import pytest

import tilec
from tilec.errors import UnsupportedError, UsageError

torch = pytest.importorskip("torch", reason="pip install tilec[torch]")

from torch import nn  # noqa: E402
from torch.export import Dim, export  # noqa: E402

pytestmark = pytest.mark.feature("B18")


class Model(nn.Module):
    """All kinds of inputs and outputs that a program has."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("count", torch.zeros(2))
        self.register_buffer("scales", torch.rand(8), persistent=False)
        self.offsets = torch.arange(8.0)

    def forward(self, x, flag: bool, *, factor=1.0, seen=None):
        self.count += 1
        if seen is not None:
            seen.add_(x.sum())
        scores = self.linear(x) * self.scales * factor + self.offsets
        return {"scores": scores, "size": x.shape[0], "more": (scores.argmax(-1), None, flag), "x": x * self.count[0]}


def program():
    torch.manual_seed(0)
    sizes = {"x": {0: Dim("batch"), 1: Dim("length", max=64)}, "flag": None, "factor": None, "seen": None}
    arguments = {"factor": 2.0, "seen": torch.zeros(3)}
    return export(Model().eval(), (torch.randn(3, 4, 8), True), arguments, dynamic_shapes=sizes)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    made = program()
    return made, tilec.from_exported(made, cache=str(tmp_path_factory.mktemp("cache")))


def test_ports_have_the_names_of_the_signature(compiled):
    session = compiled[1].session
    assert {each.name: each.shape for each in session.get_inputs()} == {
        "b_count": [2],
        "x": ["batch", "length", 8],
        "seen": [3],
    }
    named = ["b_count_after", "seen_after", "scores", "size", "more_0", "x_out"]
    assert [each.name for each in session.get_outputs()] == named


def test_calls_are_those_of_the_program(compiled):
    made, model = compiled
    reference = made.module()
    seen, theirs = torch.zeros(3), torch.zeros(3)
    for batch, length in ((3, 4), (1, 64), (5, 2)):
        x = torch.randn(batch, length, 8)
        ours = model(x, True, seen=seen, factor=2.0)
        torch.testing.assert_close(ours, reference(x, True, factor=2.0, seen=theirs), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(seen, theirs, rtol=1e-4, atol=1e-4)
        assert ours["size"] == batch
        assert ours["more"][1:] == (None, True)


def test_wrong_arguments_are_told(compiled):
    model, x, more = compiled[1], torch.randn(3, 4, 8), {"factor": 2.0, "seen": torch.zeros(3)}
    with pytest.raises(UsageError, match=r"takes other arguments: \(\*, \*, factor=\*, seen=\*\), not \(\*, factor=\*"):
        model(x, **more)
    with pytest.raises(UsageError, match="flag is True in the exported program, here it is False"):
        model(x, False, **more)
    with pytest.raises(UsageError, match="x is a tensor in the program, here it is a float"):
        model(1.0, True, **more)
    with pytest.raises(ValueError, match=r"has 65 along dimension 1, the model takes 0 to 64 for length"):
        model(torch.randn(1, 65, 8), True, **more)
    with pytest.raises(ValueError, match="element type float64"):
        model(x.double(), True, **more)


def test_the_onnx_model_is_written(compiled, tmp_path):
    import onnxruntime

    made, model = compiled
    session = onnxruntime.InferenceSession(model.save(tmp_path / "sub" / "model.onnx"))
    x = torch.randn(2, 3, 8)
    feeds = {"x": x.numpy(), "b_count": np.zeros(2, np.float32), "seen": np.zeros(3, np.float32)}
    (scores,) = session.run(["scores"], feeds)
    wanted = made.module()(x, True, factor=2.0, seen=torch.zeros(3))["scores"]
    torch.testing.assert_close(torch.from_numpy(scores), wanted, rtol=1e-4, atol=1e-5)


def test_large_weights_stand_beside_the_model(compiled, tmp_path, monkeypatch):
    import onnxruntime

    from tilec.torch_backend import model_file

    whole = compiled[1].save(tmp_path / "whole.onnx")
    monkeypatch.setattr(model_file, "MOST", 16)
    monkeypatch.setattr(model_file, "LEAST", 64)
    apart = compiled[1].save(tmp_path / "apart.onnx")
    assert not (tmp_path / "whole.weights").exists()
    assert (tmp_path / "apart.weights").stat().st_size > 255
    feeds = {"x": np.ones((2, 3, 8), np.float32), "b_count": np.zeros(2, np.float32), "seen": np.zeros(3, np.float32)}
    one, other = (onnxruntime.InferenceSession(path).run(["scores"], feeds)[0] for path in (whole, apart))
    assert np.array_equal(one, other)


def test_an_operator_without_translation_is_named():
    class Model(nn.Module):
        def forward(self, x):
            return torch.linalg.svd(x)[1].relu()

    with pytest.raises(UnsupportedError, match=r"aten\._linalg_svd") as caught:
        tilec.from_exported(export(Model(), (torch.randn(3, 4),)))
    assert "getitem" not in str(caught.value)
    assert 'torch.compile(model, backend="tilec")' in str(caught.value)


def test_composite_operators_are_taken_apart(tmp_path):
    """An export keeps some that torch.compile decomposes."""

    class Model(nn.Module):
        def forward(self, x):
            return nn.functional.interpolate(x, scale_factor=1.5, mode="bilinear")

    x = torch.randn(1, 2, 5, 5)
    made = export(Model(), (x,))
    assert "aten.upsample_bilinear2d.vec" in {str(node.target) for node in made.graph.nodes}
    torch.testing.assert_close(tilec.from_exported(made, cache=str(tmp_path))(x), Model()(x), rtol=1e-4, atol=1e-5)


def test_results_have_the_strides_of_the_program(tmp_path):
    class Model(nn.Module):
        def forward(self, x, image):
            return x.transpose(1, 2), (x * 2).transpose(0, 1).relu(), x.sum(0).expand(3, -1, -1), image.relu(), x[:0]

    arguments = torch.randn(2, 3, 4), torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    made = export(Model(), arguments, dynamic_shapes={"x": {0: Dim.AUTO, 1: Dim("rows")}, "image": None})
    model = tilec.from_exported(made, cache=str(tmp_path))
    assert [each.shape[1] for each in model.session.get_inputs()] == ["rows", 3]
    for x in (arguments[0], torch.randn(4, 6, 4)):
        for ours, theirs in zip(model(x, arguments[1]), Model()(x, arguments[1]), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6, check_stride=True)


def test_an_index_outside_is_an_error_and_the_file_has_no_check(tmp_path):
    class Rows(nn.Module):
        def forward(self, x, i):
            return x[i + 1]

    x = torch.randn(4, 3)
    made = tilec.from_exported(export(Rows(), (x, torch.tensor([0, 2]))), cache=str(tmp_path))
    assert made(x, torch.tensor([-5, 2])).equal(x[[-4, 3]])
    for outside in (3, -6):
        with pytest.raises(UsageError, match="an index lies outside of its dimension"):
            made(x, torch.tensor([0, outside]))
    assert [each.name for each in onnx.load(made.save(tmp_path / "rows.onnx")).graph.output] == ["output"]


def test_a_module_is_no_program():
    with pytest.raises(UsageError, match="an exported program is wanted, this is a Linear"):
        tilec.from_exported(nn.Linear(2, 2))
