"""Results that share memory: which calls make them, beside the graph that is compiled."""

import pytest

torch = pytest.importorskip("torch", reason="pip install tilec[torch]")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from tilec.torch_backend.shared_memory import with_views  # noqa: E402

X = torch.linspace(-1, 1, 24).reshape(4, 6)


def traced(function, *inputs, mode="fake"):
    return make_fx(function, tracing_mode=mode)(*inputs)


def views_of(function, *inputs, mode="fake"):
    """The calls that are made apart, the graph's results with them, and whether it has any."""
    given = with_views(traced(function, *inputs, mode=mode))
    calls = [node.target._opname for node in given.module.graph.nodes if node.name in given.views]
    return calls, given.some


@pytest.mark.parametrize(
    ("function", "calls", "some"),
    [
        (lambda x: (x * 2, x + 1), [], False),
        (lambda x: (x * 2).t(), [], False),
        (lambda x: (x * 2, x[1:]), ["slice"], True),
        (lambda x: (x * 2, x), [], True),
        (lambda x: ((x * 2).t(), x[1].view(2, 3)), ["select", "view"], True),
        (lambda x: [y := x * 2, y[1]], ["select"], True),
        (lambda x: [(y := x * 2)[0], y[1], y * 3], ["select", "select"], True),
        (lambda x: (x[1:] * 2, x[1:].clone()), [], False),
    ],
)
def test_views_of_arguments_and_of_other_results_are_made_apart(function, calls, some):
    assert views_of(function, X) == (calls, some)


def test_a_view_that_is_read_stays_in_the_graph_too():
    given = with_views(traced(lambda x: [y := x[1:], y * 2], X))
    slices = [node.name for node in given.module.graph.nodes if "slice" in node.name]
    assert len(slices) == 2
    assert given.views == {slices[1]}
    results = given.module(X)
    assert results[0].data_ptr() == X[1:].data_ptr()
    assert torch.equal(results[1], X[1:] * 2)


def test_what_only_views_read_is_theirs():
    given = with_views(traced(lambda x, n: (x.narrow(1, n - 1, 2), x.roll(n, 1)), X, 3, mode="symbolic"))
    assert any("sub" in name for name in given.views)
    assert any("slice" in name for name in given.views)
