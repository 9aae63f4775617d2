"""Graphs inside of operators: branches and loops, which PyTorch chooses from, and regions."""

import pytest

torch = pytest.importorskip("torch", reason="pip install tilec[torch]")

from torch._higher_order_ops.while_loop import while_loop  # noqa: E402

from tilec.torch_backend import compiled_graph, partition  # noqa: E402


class Blocks(torch.nn.Module):
    """A region for each of three layers."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))

    @staticmethod
    @torch.compiler.nested_compile_region
    def block(layer, x):
        return layer(x).relu() * 2

    def forward(self, x):
        for layer in self.layers:
            x = self.block(layer, x)
        return x


@pytest.fixture
def seen(monkeypatch):
    """For every graph the calls, those that tilec runs, and why PyTorch keeps others; what was translated."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    told, translated = [], []
    tell, translate = partition.tell, compiled_graph.translate

    def listen(report, strict):
        told.append((report.calls, report.native, [each.operator for each in report.kept.values()]))
        tell(report, strict)

    def look(*given):
        translated.append(given)
        return translate(*given)

    monkeypatch.setattr(partition, "tell", listen)
    monkeypatch.setattr(compiled_graph, "translate", look)
    return told, translated


def agree(function, *inputs, cache):
    compiled = torch.compile(function, backend="tilec", options={"cache": str(cache)})
    with torch.no_grad():
        for x in inputs:
            torch.testing.assert_close(compiled(x), function(x))


@pytest.mark.filterwarnings("ignore:PyTorch runs")
def test_branches_are_compiled(seen, tmp_path):
    layer = torch.nn.Linear(4, 4)

    def either(x):
        return torch.cond(x.sum() > 0, lambda x: layer(x).sin() * 2, lambda x: x.cos() + 1, (x * 2,)) + 1

    agree(either, torch.ones(3, 4), -torch.ones(3, 4), cache=tmp_path)
    assert seen[0] == [(11, 9, ["cond"])]
    assert max(len(constants) for _, constants, _ in seen[1]) == 2


@pytest.mark.filterwarnings("ignore:PyTorch runs")
def test_bodies_of_loops_are_compiled(seen, tmp_path):
    def repeated(x):
        return while_loop(lambda n, x: n < 5, lambda n, x: (n + 1, x.sin() * 2 + n), (torch.tensor(0), x))

    agree(repeated, torch.ones(3, 4), cache=tmp_path)
    assert seen[0] == [(7, 4, ["while_loop"])]


def test_a_region_is_compiled_once_and_has_the_weights_of_each_call(seen, tmp_path):
    with torch.no_grad():
        agree(Blocks(), torch.ones(3, 4), -torch.ones(3, 4), cache=tmp_path)
    assert seen[0] == [(4, 4, [])]
    assert [len(constants) for _, constants, _ in seen[1]] == [2, 2, 2]
