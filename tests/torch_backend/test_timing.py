"""The command that times modules: which results count as right, and its line."""

import pytest

torch = pytest.importorskip("torch", reason="pip install tilec[torch]")

from tests.torch_backend.timing.__main__ import Result, line  # noqa: E402
from tests.torch_backend.timing.cost import Cost  # noqa: E402
from tests.torch_backend.timing.costs import line as cost_line  # noqa: E402
from tests.torch_backend.timing.timed import Made, difference  # noqa: E402


def test_differences_are_relative_and_infinite_where_results_differ_in_kind():
    exact = torch.tensor([1.0, -4.0], dtype=torch.float64)
    assert difference(torch.tensor([1.0, -4.5]), exact) == 0.125
    assert difference(torch.tensor([1.0, float("nan")]), exact) == float("inf")
    assert difference(torch.tensor([[1.0, -4.0]]), exact) == float("inf")
    assert difference(torch.tensor([1, 2]), torch.tensor([1, 2])) == 0
    assert difference(torch.tensor([1, 2]), torch.tensor([1, 3])) == float("inf")


def test_costs_are_told_of_what_they_are_measured_of():
    ours, theirs = Cost(3.0, 110, 100, 2), Cost(2.0, 10, 100, 1)
    assert cost_line("bert", {"tilec": ours, "inductor": theirs}) == "| bert | 3.0, 2.0 | 1.50 | 2, 1 |  |"
    assert cost_line("large words", {"tilec": ours, "inductor": theirs}) == "| large words |  |  | 2, 1 | 1.10, 0.10 |"
    assert cost_line("bert", {"tilec": ours, "inductor": "no"}) == "| bert | 3.0, - |  | 2, - |  |\n\ninductor: no\n"


def test_a_peer_that_is_wrong_does_not_count():
    made = {"tilec": Made(2, 1e-7), "inductor": Made(3, 1e-7), "openvino": Made(1, 0.1)}
    result = Result("m", made, {"tilec": [2e-6, 1e-6, 3e-6], "inductor": [5e-6], "openvino": [1e-6]})
    assert result.ratio == pytest.approx(2.5)
    assert line(result) == "| m | 2, 5, 1 | 2.50 | 2.0, 3.0, 1.0 | 1e-07, 1e-07, 1e-01 |"
    alone = Result("m", {"tilec": Made(2, 0), "inductor": Made(trouble="no")}, {"tilec": [1e-6]})
    assert alone.ratio is None
    assert line(alone).endswith("|\n\ninductor: no\n")
