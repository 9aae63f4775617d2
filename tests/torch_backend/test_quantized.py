"""Quantised graphs: the codes of eager PyTorch, sums of integers, weights in the bits that they need."""

import ml_dtypes
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="pip install tilec[torch]")

import onnx  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils._pytree import tree_map  # noqa: E402

from tilec.torch_backend import compiled_graph, operators  # noqa: E402, F401
from tilec.torch_backend.few_bits import in_few_bits  # noqa: E402

q = torch.ops.quantized_decomposed
SCALE, ZERO = 0.0282163, 123


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


class Static(nn.Module):
    """A linear layer as pt2e's converted graphs have it, and all codes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.randint(-8, 8, (16, 32), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(16) * 0.1)
        self.register_buffer("zeros", torch.randint(-3, 3, (16,)))

    def forward(self, x):
        codes = q.quantize_per_tensor(x, SCALE, ZERO, 0, 255, torch.uint8)
        real = q.dequantize_per_tensor(codes, SCALE, ZERO, 0, 255, torch.uint8)
        weight = q.dequantize_per_channel(self.weight, self.scales, self.zeros, 0, -8, 7, torch.int8)
        channels = q.quantize_per_channel(x[:, :16], self.scales, self.zeros, 1, -127, 127, torch.int8)
        return codes, channels, weight, torch.nn.functional.linear(real, weight)


@pytest.mark.feature("B18", "L01")
def test_codes_are_those_of_pytorch_to_the_bit(tmp_path, monkeypatch):
    models = []
    translate = compiled_graph.translate
    monkeypatch.setattr(compiled_graph, "translate", lambda *args: models.append(translate(*args)) or models[-1])
    module = Static()
    ties = (torch.arange(-150, 170) + 0.5 - ZERO) * SCALE  # halves of a step, and the floats beside them
    x = torch.cat([ties, ties.nextafter(ties + 1), ties.nextafter(ties - 1), torch.randn(320) * 3]).reshape(-1, 32)
    with torch.no_grad():
        ours = torch.compile(module, backend="tilec", fullgraph=True, options={"cache": str(tmp_path), "strict": True})(
            x
        )
        theirs = module(x)
    for found, wanted in zip(ours[:3], theirs, strict=False):
        assert torch.equal(found, wanted)
        assert found.dtype == wanted.dtype
    torch.testing.assert_close(ours[3], theirs[3], rtol=1e-4, atol=1e-4)
    (made,) = models
    assert onnx.TensorProto.INT4 in {each.data_type for each in made.model.graph.initializer}
    (plan,) = tmp_path.rglob("2-plan.json")
    assert "_integral" in plan.read_text()


class Scaled(torch.Tensor):
    """A weight of 8 bits and its scale, as torchao has them: a class of its own that Dynamo takes apart."""

    @staticmethod
    def __new__(cls, codes, scale):
        return torch.Tensor._make_wrapper_subclass(cls, codes.shape, dtype=scale.dtype)

    def __init__(self, codes, scale):
        self.codes, self.scale = codes, scale

    def __repr__(self):
        return "Scaled"

    def __tensor_flatten__(self):
        return ["codes", "scale"], None

    @staticmethod
    def __tensor_unflatten__(inner, _context, _size, _stride):
        return Scaled(inner["codes"], inner["scale"])

    @classmethod
    def __torch_dispatch__(cls, function, _types, args=(), kwargs=None):
        if function is torch.ops.aten.detach.default:
            return Scaled(args[0].codes, args[0].scale)
        plain = tree_map(lambda each: each.codes.float() * each.scale if isinstance(each, Scaled) else each, args)
        return function(*plain, **(kwargs or {}))


def test_weights_of_classes_of_their_own_are_constants(tmp_path, monkeypatch):
    begun, begin = [], compiled_graph.CompiledGraph._begun
    monkeypatch.setattr(
        compiled_graph.CompiledGraph,
        "_begun",
        lambda self, given, *more: begun.append(sorted(given)) or begin(self, given, *more),
    )
    module = nn.Linear(32, 16, bias=False)
    weight = Scaled(torch.randint(-127, 128, (16, 32), dtype=torch.int8), torch.rand(16, 1))
    module.weight = nn.Parameter(weight, requires_grad=False)
    run = torch.compile(module, backend="tilec", options={"cache": str(tmp_path)})
    x = torch.randn(4, 32)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(run(x), module(x), rtol=1e-4, atol=1e-4)
        weight.scale.mul_(2)
        torch.testing.assert_close(run(x), module(x), rtol=1e-4, atol=1e-4)
    assert begun == [[0, 1], [0, 1]]


def test_products_of_integers_are_native(tmp_path):
    def module(x, y):
        return torch._int_mm(x, y)

    run = torch.compile(module, backend="tilec", options={"cache": str(tmp_path), "strict": True})
    x, y = (torch.randint(-128, 128, shape, dtype=torch.int8) for shape in ((20, 32), (32, 16)))
    with torch.no_grad():
        assert torch.equal(run(x, y), module(x, y))


@pytest.mark.parametrize(("dtype", "few"), [(np.int8, ml_dtypes.int4), (np.uint8, ml_dtypes.uint4)])
def test_integers_of_four_bits_are_stored_in_four(dtype, few):
    low, high = int(ml_dtypes.iinfo(few).min), int(ml_dtypes.iinfo(few).max)
    whole = np.resize(np.arange(low, high + 1), 300).astype(dtype)
    found = in_few_bits(whole)
    assert found is not None
    assert found.dtype == few
    assert np.array_equal(found.astype(dtype), whole)
    assert in_few_bits(whole[:200]) is None
    assert in_few_bits(np.where(whole == high, high + 1, whole).astype(dtype)) is None
    assert in_few_bits(whole.astype(np.int32)) is None
