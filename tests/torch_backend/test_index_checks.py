"""Indices outside of their dimensions: PyTorch's error, whatever they come from, and nothing compared in vain."""

import pytest

torch = pytest.importorskip("torch", reason="pip install tilec[torch]")

from torch import Tensor, nn  # noqa: E402

from tilec.torch_backend.index_checks import with_checks  # noqa: E402
from torch_backend.traced import traced  # noqa: E402

ROWS = 5

LOOKUPS = {
    "index": lambda x, i: x[i],
    "index of the last": lambda x, i: x.T[:, i],
    "indices": lambda x, i: x[i, i],
    "take": lambda x, i: torch.take(x[:, 0], i),
    "embedding": lambda x, i: nn.functional.embedding(i, x),
    "bag": lambda x, i: nn.functional.embedding_bag(i[None], x),
    "index_select": lambda x, i: x.index_select(0, i),
    "gather": lambda x, i: x.gather(0, i[:, None]),
    "scatter": lambda x, i: x.scatter(0, i[:, None], 1.0),
    "scatter_add": lambda x, i: x.scatter_add(0, i[:, None].expand(3, 4), x[:3]),
    "scatter_reduce": lambda x, i: x.scatter_reduce(0, i[:, None], x[:3], "amax"),
    "index_put": lambda x, i: x.index_put((i,), x[0]),
    "index_put of two": lambda x, i: x.index_put((i, i), x[0, 0], accumulate=True),
    "index_add": lambda x, i: x.index_add(0, i, x[:3]),
    "index_copy": lambda x, i: x.index_copy(0, i, x[:3]),
    "index_fill": lambda x, i: x.index_fill(0, i, 2.0),
    "loss": lambda x, i: nn.functional.cross_entropy(x[:3], i),
}  # fmt: skip

SOURCES = {
    "given": lambda i: i,
    "computed": lambda i: (i - 1) + torch.ones_like(i),
    "as int32": lambda i: i.int() * 1,
}

LONG = {"index_copy", "index_fill", "loss"}
"""Lookups that eager PyTorch has for int64 alone."""

ENDS = {"index of the last": ROWS, "indices": 4, "index_put of two": 4, "loss": 4}
"""Of dimensions that are looked up in; others have all rows."""


OFTEN = {"index of the last", "indices", "embedding", "scatter_add", "index_copy"}

CASES = [
    pytest.param(name, source, marks=[] if source == "computed" and name in OFTEN else pytest.mark.slow)
    for name in LOOKUPS
    for source in SOURCES
    if name not in LONG or source != "as int32"
]


def outcome(function, *inputs):
    try:
        return function(*inputs)
    except (IndexError, RuntimeError) as error:
        return type(error)


@pytest.mark.parametrize("varies", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "source"), CASES)
@pytest.mark.filterwarnings("ignore:PyTorch runs")
def test_an_index_outside_is_the_error_of_pytorch(name, source, varies, tmp_path):
    def function(x: Tensor, i: Tensor) -> Tensor:
        return LOOKUPS[name](x, SOURCES[source](i))

    torch._dynamo.reset()
    x, end = torch.arange(4.0 * ROWS).reshape(ROWS, 4), ENDS.get(name, ROWS)
    compiled = torch.compile(
        function, backend="tilec", dynamic=varies, options={"cache": str(tmp_path), "while_compiling": "wait"}
    )
    with torch.no_grad():
        for last in (end - 1, end, -1, -end, -end - 1, 1000, end - 1):
            given = torch.tensor([0, last, 1])
            expected, found = outcome(function, x, given), outcome(compiled, x, given)
            if isinstance(expected, Tensor):
                torch.testing.assert_close(found, expected, msg=f"{last}: {found}")
            else:
                assert isinstance(found, type), f"{last}: {found} for {expected}"


NEEDLESS = {
    "positions": lambda x, i: x[torch.arange(i.shape[0])],
    "positions from behind": lambda x, i: x[x.shape[0] - 1 - torch.arange(x.shape[0])],
    "remainder": lambda x, i: x[i % x.shape[0]],
    "clamped": lambda x, i: x[i.clamp(-2, 100).clamp(max=x.shape[0] - 1).unsqueeze(1)],
    "the largest": lambda x, i: x[x.argmax(0)],
    "the first ones": lambda x, i: x.gather(0, x.topk(2, 0)[1]),
    "sorted": lambda x, i: x.gather(1, x.sort(dim=1, stable=True)[1]),
    "truth values": lambda x, i: x[(i > 2).long()],
    "one of two": lambda x, i: x.index_select(0, torch.where(i > 2, 1, i & 3)),
    "a constant": lambda x, i: x[torch.tensor([1, -3, 2])],
}  # fmt: skip


@pytest.mark.parametrize("name", NEEDLESS)
def test_an_index_that_is_always_inside_is_not_compared(name):
    assert not with_checks(traced(NEEDLESS[name], torch.randn(5, 4), torch.tensor([0, 3, 1])), {}).is_checked


def test_an_index_is_compared_once():
    def function(x: Tensor, i: Tensor) -> Tensor:
        j = i + 1
        return x[j] + nn.functional.embedding(j, x) + x[j] * 2 + x.gather(0, j[:, None].expand(3, 4))

    checked = with_checks(traced(function, torch.randn(5, 4), torch.tensor([0, 3, 1])), {})
    compared = [node for node in checked.module.graph.nodes if node.target is torch.ops.aten.any.default]
    assert len(compared) == 2  # a negative one counts from the end, or does not


def test_a_table_of_the_model_is_looked_at_when_it_is_compiled():
    def function(x: Tensor, i: Tensor) -> Tensor:
        return x[i.reshape(-1)]

    graph, table = traced(function, torch.randn(5, 4), torch.tensor([[0, 4], [1, 2]])), torch.tensor([[0, 4], [1, 2]])
    assert not with_checks(graph, {1: table}).is_checked
    assert with_checks(graph, {1: table + 1}).is_checked
    assert with_checks(graph, {}).is_checked
