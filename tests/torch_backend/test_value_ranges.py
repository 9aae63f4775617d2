"""Ranges of integers hold what a run computes."""

import pytest

torch = pytest.importorskip("torch", reason="pip install tilec[torch]")

from torch import Tensor, fx  # noqa: E402

from tilec.torch_backend.value_ranges import ranges_of  # noqa: E402
from torch_backend.traced import traced  # noqa: E402

FUNCTIONS = {
    "sums": lambda x, i: (i + 3 - i.clamp(0, 9) * 2, torch.add(i % 7, i & 5, alpha=3)),
    "products": lambda x, i: ((i % 7 - 3) * (i % 5 - 4), (i.clamp(-3, 2) * -4)),
    "bounds": lambda x, i: (i.clamp(min=2), i.clamp(max=-1), torch.minimum(i, i % 3), torch.maximum(i % 4, i & 1)),
    "remainders": lambda x, i: (i % 4, i % -4, torch.remainder(i, i.abs() + 1), torch.remainder(i, i.clamp(1, 3))),
    "masks": lambda x, i: (i & 6, (i & -8), (i % 8) & (i % 3), i & i),
    "places": lambda x, i: (x.argmax(), x.argmin(1), x.topk(2, 1)[1], x.sort(0)[1], x.max(0)[1], x.min(1, True)[1]),
    "positions": lambda x, i: (torch.arange(2, 9, 3), torch.arange(x.shape[0]) * 2 - 1, torch.arange(5, -5, -2)),
    "narrow": lambda x, i: ((i % 300).to(torch.uint8), i.to(torch.int8) + 1, (i > 0).long(), (i * 3).int()),
    "parts": lambda x, i: torch.where(i > 1, i % 3, 9),
    "joined": lambda x, i: (torch.cat([i % 3, i % 9 - 20]), torch.stack([i % 2, i & 1])),
    "padded": lambda x, i: torch.nn.functional.pad(i % 3, (1, 2), value=-4),
    "moved": lambda x, i: ((i % 9)[None].expand(3, -1).reshape(-1)[2:], (i % 5).flip(0), (i % 5)[i % 2]),
    "from numbers": lambda x, i: (x.long(), (x * 100).int() % 11, x.long().clamp(0, x.shape[0] - 1)),
    "filled": lambda x, i: (torch.full((3,), 7) + 1, torch.full_like(i, -2), torch.zeros_like(i)),
}  # fmt: skip


class Watched(fx.Interpreter):
    """Compares each integer tensor of a run with its range."""

    def __init__(self, module):
        super().__init__(module)
        self.ranges = ranges_of(module.graph)
        self.narrowed = 0

    def run_node(self, n):
        made = super().run_node(n)
        if n in self.ranges and isinstance(made, Tensor) and made.numel():
            low, high = (int(each) for each in self.ranges[n])  # a size is that of the trace
            assert low <= int(made.min()) <= int(made.max()) <= high, n.format_node()
            self.narrowed += high - low < 1000
        return made


@pytest.mark.parametrize("varies", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_range_holds_what_is_computed(name, varies):
    torch.manual_seed(0)
    for extreme in (9, 2**31 - 2, 2**63 - 1):
        i = torch.tensor([-extreme, -9, -1, 0, 1, 2, 8, 255, extreme])
        x = torch.randn(6, 4)
        watched = Watched(traced(FUNCTIONS[name], x, i, varies=varies))
        watched.run(x, i)
        assert watched.narrowed
