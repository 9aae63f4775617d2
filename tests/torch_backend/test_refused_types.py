"""Calls that eager PyTorch refuses for the types of their arguments: its error, and nothing compiled."""

import pytest

torch = pytest.importorskip("torch", reason="pip install tilec[torch]")

from torch.nn import functional as F  # noqa: E402, N812

from tilec.torch_backend.refused_types import refusal  # noqa: E402

X = torch.randn(12, 5)

REFUSED = {
    "index_copy": lambda i: X.index_copy(0, i, X[:3]),
    "index_copy_": lambda i: X.clone().index_copy_(0, i, X[:3]),
    "index_fill": lambda i: X.index_fill(0, i, 2.0),
    "one_hot": lambda i: F.one_hot(i, 40),
    "nll_loss": lambda i: F.nll_loss(X[:3], i),
    "cross_entropy": lambda i: F.cross_entropy(X[:3], i),
    "margins": lambda i: F.multi_margin_loss(X[:3], i),
    "margins of several": lambda i: F.multilabel_margin_loss(X[:1, :3], i[None]),
    "an overload": lambda i: torch.ops.aten.index_copy.default(X, 0, i, X[:3]),
    "int16": lambda i: X.index_add(0, i.short(), X[:3]),
    "in a branch": lambda i: torch.cond(i.sum() > 2, lambda i: X.index_fill(0, i, 2.0), lambda i: X + 1, (i,)),
    "SiLU": lambda i: F.silu(i),
    "variance": lambda i: i.var(),
    "truth values": lambda i: (i > 0).argmax(),
}  # fmt: skip

TAKEN = {
    "index": lambda i: X[i] + X[i.long()] + X[:, i].sum(),
    "setitem": lambda i: X.clone().__setitem__(i, 1.0) or i,
    "gather": lambda i: X.gather(0, i[:, None]) + X.index_select(0, i),
    "embedding": lambda i: F.embedding(i, X) + F.embedding_bag(i[None], X),
    "index_add": lambda i: X.index_add(0, i, X[:3]),
    "arithmetic": lambda i: (i // (i + 1), i % 3, i << 2, ~i, i.bool() | True, i.float() / i, -i),
    "masks": lambda i: (torch.where(i > 0, X[:3, 0], 2.0), X[:3].masked_fill((i > 0)[:, None], 0.0), (i > 0).sum()),
    "one_hot": lambda i: F.one_hot(i.long(), 40),
    "cross_entropy": lambda i: F.cross_entropy(X[:3], i.long()),
    "of a size": lambda i: i.expand(X.shape[0], 3).reshape(-1, 9) + i.shape[0],
    "order": lambda i: (i.sort()[0], i.argmax(), i.cumsum(0), i.topk(2)[0]),
}


def graphs_of(function, *inputs, dynamic=False):
    """What is refused of each graph that Dynamo makes of a function of inputs."""
    found = []

    def keep(module, _inputs):
        found.append(refusal(module))
        return lambda *_: []

    torch._dynamo.reset()
    with torch.no_grad():
        try:
            torch.compile(function, backend=keep, dynamic=dynamic)(*inputs)
        except Exception:
            assert found  # results that there are not
    return found


@pytest.mark.parametrize("name", REFUSED)
def test_what_eager_refuses_is_refused(name):
    index = torch.tensor([0, 2, 1], dtype=torch.int32)
    with pytest.raises((RuntimeError, IndexError)):
        REFUSED[name](index)
    assert any(said.startswith("Eager PyTorch fails at") for said in graphs_of(REFUSED[name], index))


@pytest.mark.parametrize("name", TAKEN)
def test_what_eager_takes_is_not_refused(name):
    index = torch.tensor([0, 2, 1], dtype=torch.int32)
    TAKEN[name](index)
    assert graphs_of(TAKEN[name], index, dynamic=True) == [""]


def test_the_error_is_that_of_pytorch(tmp_path):
    index, options = torch.tensor([0, 2, 1], dtype=torch.int32), {"cache": str(tmp_path), "while_compiling": "wait"}
    torch._dynamo.reset()
    compiled = torch.compile(REFUSED["index_fill"], backend="tilec", options=options)

    def fails():
        with torch.no_grad(), pytest.raises(IndexError, match="Expected dtype int64 for index"):
            compiled(index)

    with pytest.warns(match="Eager PyTorch fails at index_fill of these types"):
        fails()


def test_random_numbers_stay_those_that_come_next():
    index = torch.tensor([0, 2, 1])
    torch.manual_seed(0)
    wanted = torch.rand(3)
    torch.manual_seed(0)
    graphs_of(lambda i: torch.randint_like(i, 9), index)
    assert torch.equal(torch.rand(3), wanted)
