"""Arguments that a graph writes have the values of eager PyTorch, whatever else is written."""

import pytest

torch = pytest.importorskip("torch", reason="pip install tilec[torch]")

from torch.testing import assert_close  # noqa: E402


def swapped(a, b):
    kept = a.clone()
    a.copy_(b)
    b.copy_(kept)


def shifted(a, b):
    a.copy_(b)
    b.add_(1)


def shifted_back(a, b):
    b.copy_(a)
    a.add_(1)
    return a


def transposed(a, b):
    a.copy_(b.T)
    b.mul_(2)
    return a.sum(), b


def of_another_type(a, b):
    a.copy_((b * 3).to(torch.float64))
    return b[0]


def rows(a, b):
    a[1:] = b[:-1]
    b[0] += a[0]
    return a, b[0]


def twice(a, b):
    a.add_(b).mul_(2)
    return a * 2, a


FUNCTIONS = [swapped, shifted, shifted_back, transposed, of_another_type, rows, twice]


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.filterwarnings("ignore:PyTorch runs")
def test_what_is_written_is_what_pytorch_writes(function, fails, monkeypatch, tmp_path):
    """Also where PyTorch runs the graph in the place of compiled code."""
    if fails:
        from tilec.torch_backend import partition

        monkeypatch.setattr(partition, "CompiledGraph", None)
    torch._dynamo.reset()
    given = [torch.randn(3, 3), torch.randn(3, 3)]
    ours, theirs = ([each.clone() for each in given] for _ in range(2))
    options = {"cache": str(tmp_path), "while_compiling": "wait"}
    compiled = torch.compile(function, backend="tilec", options=options)
    with torch.no_grad():
        for _ in range(2):
            assert_close(compiled(*ours), function(*theirs), rtol=1e-6, atol=1e-6)
            assert_close(ours, theirs, rtol=1e-6, atol=1e-6)
