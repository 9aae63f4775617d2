"""Graphs on a GPU: compiled for its device, run on addresses over the emulator's driver; PyTorch sees no GPU here."""

import ctypes
import weakref

import numpy as np
import pytest

from tests.emulator.kernels import emulator_cache, needs_compiler
from tilec.errors import UnavailableError
from tilec.runtime.gpu import cuda, hip
from tilec.runtime.gpu.emulated import EmulatorDriver
from tilec.spec import gpus

torch = pytest.importorskip("torch", reason="pip install tilec[torch]")

from torch import nn  # noqa: E402
from torch._decomp import core_aten_decompositions  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from tilec.torch_backend import backend, cards, streamed_shapes  # noqa: E402
from tilec.torch_backend.options import Options  # noqa: E402
from tilec.torch_backend.partition import compiled_parts  # noqa: E402
from tilec.torch_backend.written_arguments import Functional  # noqa: E402

pytestmark = needs_compiler


class Memory:
    """A driver of the emulator, and tensors over its memory."""

    def __init__(self):
        self.driver = EmulatorDriver(emulator_cache())

    def empty(self, shape, strides, dtype):
        size = 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
        size *= dtype.itemsize
        place = self.driver.allocate(max(size, 1))
        raw = np.ctypeslib.as_array(ctypes.cast(place, ctypes.POINTER(ctypes.c_uint8)), (size,))
        tensor = torch.from_numpy(raw).view(dtype).as_strided(shape, strides)
        weakref.finalize(tensor.untyped_storage(), self.driver.free, place)
        return tensor

    def copy(self, tensor):
        return self.empty(tensor.shape, tensor.stride(), tensor.dtype).copy_(tensor)


@pytest.fixture
def memory(monkeypatch):
    made = Memory()
    assert issubclass(hip.HipDriver, cuda.CudaDriver)
    monkeypatch.setattr(cuda, "CudaDriver", lambda: made.driver)
    monkeypatch.setattr(streamed_shapes, "empty", made.empty)
    monkeypatch.setattr(streamed_shapes, "stream", lambda: 7)
    return made


def graph(function, *tensors):
    """The functional graph of a function of tensors that lie on a GPU."""
    with FakeTensorMode():
        fakes = [torch.empty_strided(each.shape, each.stride(), dtype=each.dtype, device="cuda:0") for each in tensors]
        return make_fx(function, decomposition_table=core_aten_decompositions())(*fakes)


def compiled(function, *tensors, cache):
    return compiled_parts(
        Functional(graph(function, *tensors), ()), {}, Options(device="a100", cache=str(cache), strict=True)
    )


def test_tensors_stay_on_the_gpu(memory, tmp_path):
    def layer(x, weight, bias, table, places):
        hidden = torch.relu(nn.functional.linear(x, weight, bias))
        return hidden + table[places], hidden.t()

    tensors = torch.randn(5, 8), torch.randn(4, 8), torch.randn(4), torch.randn(9, 4), torch.randint(9, (5,))
    run = compiled(layer, *tensors, cache=tmp_path)
    placed = [memory.copy(each) for each in tensors]
    for _ in range(3):
        ours, theirs = run(list(placed)), layer(*tensors)
        torch.testing.assert_close(tuple(ours), theirs, check_stride=True)
    torch.testing.assert_close(tuple(run([placed[0].t().contiguous().t(), *placed[1:]])), theirs)
    shifted = memory.empty((41,), (1,), torch.float32)[1:].view(5, 8).copy_(tensors[0])
    torch.testing.assert_close(tuple(run([shifted, *placed[1:]])), theirs)
    placed[4][3] = 9
    with pytest.raises(RuntimeError, match="an index lies outside of its dimension"):
        run(list(placed))
    assert memory.driver.findings == []


def test_what_has_no_kernel_stays_in_pytorch(memory, tmp_path):
    def mixed(x):
        return torch.special.i1(torch.exp(x) * 2 - x)

    x = torch.randn(5, 8)
    with pytest.warns(UserWarning, match=r"PyTorch runs 1 operator of a graph of 4 .*\n.*special_i1"):
        run = compiled_parts(Functional(graph(mixed, x), ()), {}, Options(device="a100", cache=str(tmp_path)))
    torch.testing.assert_close(run([memory.copy(x)]), mixed(x))
    assert memory.driver.findings == []


def test_results_on_the_cpu_are_pytorchs(tmp_path):
    def both(x):
        return x + 1, torch.arange(3) * 2

    with pytest.raises(Exception, match="its result is on the cpu in a graph on a GPU"):
        compiled(both, torch.randn(4), cache=tmp_path)


def test_graphs_are_on_one_device():
    with FakeTensorMode():
        here, there, elsewhere = (torch.empty(3, device=each) for each in ("cpu", "cuda:0", "cuda:1"))
    assert backend._is_on_card([there, 3])
    assert not backend._is_on_card([here])
    assert not backend._is_on_card([3])
    for mixed in ([here, there], [elsewhere]):
        with pytest.raises(backend._LeftError, match="on the CPU or on the first GPU"):
            backend._is_on_card(mixed)


@pytest.mark.parametrize(
    ("processor", "cores", "memory", "name"),
    [("sm_80", 108, 80 << 30, "a100"), ("sm_90", 132, 80 << 30, "h100"), ("sm_90", 132, 141 << 30, "h200")],
)
def test_the_card_of_a_machine_is_the_device_that_describes_it(processor, cores, memory, name, monkeypatch):
    monkeypatch.setattr(gpus, "gpus", lambda: (gpus.Gpu("a card", processor, cores, memory),))
    cards.card.cache_clear()
    assert cards.card() == name
    monkeypatch.setattr(gpus, "gpus", tuple)
    cards.card.cache_clear()
    with pytest.raises(UnavailableError, match="no device that comes with tilec runs on the GPU of this machine"):
        cards.card()
    cards.card.cache_clear()
