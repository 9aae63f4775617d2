"""Programs of users, run with tilec and with PyTorch: equal in values, types and strides."""

import pytest

torch = pytest.importorskip("torch", reason="pip install tilec[torch]")

from tests.torch_backend.scenarios import SCENARIOS  # noqa: E402
from tilec.api import warn_once  # noqa: E402


class Wrap:
    """`torch.compile`, or nothing."""

    def __init__(self, backend, options):
        self.backend = backend
        self.options = options

    def __call__(self, function, **more):
        if self.backend is None:
            return function
        return torch.compile(function, backend=self.backend, options=self.options, **more)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    warn_once.forget()


@pytest.mark.filterwarnings("ignore:PyTorch runs a graph. Gradients", "ignore:PyTorch keeps")
@pytest.mark.parametrize("name", SCENARIOS)
def test_as_in_pytorch(name, cache):
    results = []
    for wrap in (Wrap(None, {}), Wrap("tilec", {"cache": cache})):
        torch.manual_seed(0)
        results.append([(each.detach().clone(), each.stride()) for each in SCENARIOS[name](wrap)])
    for n, ((theirs, strides), (ours, mine)) in enumerate(zip(*results, strict=True)):
        torch.testing.assert_close(ours, theirs, rtol=2e-2 if ours.dtype == torch.bfloat16 else 1e-4, atol=1e-5)
        assert mine == strides, f"result {n} has strides {mine}, in PyTorch {strides}"
