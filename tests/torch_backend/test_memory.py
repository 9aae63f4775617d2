"""Operators that move elements, beside PyTorch."""

import pytest

torch = pytest.importorskip("torch", reason="pip install tilec[torch]")

from tilec.torch_backend.operators.memory import without_gaps  # noqa: E402


def test_memory_without_gaps_has_an_order():
    assert without_gaps((2, 3, 4), (12, 4, 1)) == [0, 1, 2]
    assert without_gaps((2, 3, 4), (1, 8, 2)) == [1, 2, 0]
    assert without_gaps((2, 1, 4), (4, 99, 1)) in ([0, 2, 1], [0, 1, 2], [1, 0, 2])
    assert without_gaps((2, 3), (4, 1)) is None
    assert without_gaps((2, 3), (0, 1)) is None


def test_all_of_memory_in_another_order_at_open_sizes(native):
    def turned(x, y):
        rows = x.shape[0] * x.shape[1]
        wide = torch.as_strided(y, (y.shape[0], y.shape[1], 1, 1), (y.shape[1], 1, y.shape[1], y.shape[1]))
        return wide * 2, torch.as_strided(x * 2, (x.shape[2], rows), (1, x.shape[2])) + 1

    native(turned, *((torch.randn(n, m, 5), torch.randn(n, m)) for n, m in ((2, 3), (4, 3), (5, 7))), varies=True)


def test_memory_is_read_in_its_own_order(native):
    images = torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    native(lambda x: torch.as_strided(x.relu(), (2, 3, 4, 4), (60, 1, 15, 3), 2) * 2, (images,))
