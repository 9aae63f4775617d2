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


@pytest.mark.parametrize(("rows", "gaps"), [(3, True), (200, False)])
def test_one_value_goes_to_arguments_of_other_orders(rows, gaps, tmp_path):
    """Few bytes beside one with gaps, and many."""

    def spread(a, b, c):
        value = a + b + c
        for each in (a, b, c):
            each.copy_(value)
        return value[0]

    torch._dynamo.reset()
    given = [torch.randn(rows, 50), torch.randn(50, rows).T, torch.randn(rows, 50)]
    ours, theirs = ([each.clone() for each in given] for _ in range(2))
    if gaps:
        for each in (ours, theirs):
            each[2] = each[2].repeat(1, 2)[:, ::2]
    compiled = torch.compile(spread, backend="tilec", options={"cache": str(tmp_path), "while_compiling": "wait"})
    with torch.no_grad():
        for _ in range(3):
            assert_close(compiled(*ours), spread(*theirs), rtol=1e-5, atol=1e-5)
            assert_close(ours, theirs, rtol=1e-5, atol=1e-5, check_stride=True)


def test_a_result_that_is_a_written_argument_is_it(tmp_path):
    """And a value that is written and returned, too, has memory of its own."""

    def update(a, b):
        a.add_(b)
        value = b * 2
        b.copy_(value)
        return a, value

    torch._dynamo.reset()
    compiled = torch.compile(update, backend="tilec", options={"cache": str(tmp_path), "while_compiling": "wait"})
    a, b = torch.zeros(3), torch.ones(3)
    with torch.no_grad():
        for n in range(1, 4):
            same, value = compiled(a, b)
            assert same is a
            value.zero_()
            assert a.tolist() == [2.0**n - 1] * 3
            assert b.tolist() == [2.0**n] * 3
