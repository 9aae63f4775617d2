"""Programs of users, run with tilec and with PyTorch: equal in values, types and strides. Every twelfth is no slow
case."""

import re
import warnings

import pytest

torch = pytest.importorskip("torch", reason="pip install tilec[torch]")

from tilec.api import warn_once  # noqa: E402
from torch_backend.scenarios import LEAVES, SCENARIOS, Wrap  # noqa: E402

EVERY_TWELFTH = [
    pytest.param(name, marks=[] if number % 12 == 0 else [pytest.mark.slow]) for number, name in enumerate(SCENARIOS)
]
GRADIENTS = "Gradients flow through it"
BITS_32 = {"rtol": 1e-4, "atol": 1e-5}
OF_16_BITS = {"autocast_inside"}
"""Programs whose results in f32 are computed of numbers of 16 bits."""


def bits_16(theirs):
    """Tolerances by the largest of some numbers: those near 0 are sums of such."""
    return {"rtol": 2e-2, "atol": 1e-2 * float(theirs.abs().max()) if theirs.numel() else 0.0}


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    warn_once.forget()


@pytest.mark.parametrize("name", EVERY_TWELFTH)
def test_as_in_pytorch(name, cache):
    results = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for wrap in (Wrap(None, {}), Wrap("tilec", {"cache": cache})):
            torch.manual_seed(0)
            results.append([(each.detach().clone(), each.stride()) for each in SCENARIOS[name](wrap)])
    for n, ((theirs, strides), (ours, mine)) in enumerate(zip(*results, strict=True)):
        of_16_bits = torch.bfloat16 in (ours.dtype, theirs.dtype) or name in OF_16_BITS
        torch.testing.assert_close(ours, theirs, **(bits_16(theirs) if of_16_bits else BITS_32))
        assert mine == strides, f"result {n} has strides {mine}, in PyTorch {strides}"
    said = [str(each.message) for each in caught if re.search("PyTorch (runs|keeps)", str(each.message))]
    assert [each for each in said if GRADIENTS not in each and not re.search(LEAVES.get(name, "^$"), each)] == []
