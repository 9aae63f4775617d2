"""rewrite: guards of guards, what is known at compile time."""

import pytest
from scheduler.graphs import make_graph

from tilec.ir.text import parse_tensor, tensor_text
from tilec.scheduler.graph_passes.rewrite import constant_tensors, merge_guards


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("where(i < 3, where(i >= 1, x[i - 1], 0.0), 0.0)", "where(i < 3 and i >= 1, x[i - 1], 0.0)"),
        ("where(i < 3, where(z[i] > 1.0, x[i], 0.0), 0.0)", "where(i < 3, where(z[i] > 1.0, x[i], 0.0), 0.0)"),
        ("where(i < 3, where(i >= 1, x[i - 1], 1.0), 0.0)", "where(i < 3, where(i >= 1, x[i - 1], 1.0), 0.0)"),
    ],
)
def test_guards_around_one_value_are_one_unless_they_read_behind_each_other(text: str, expected: str) -> None:
    made = merge_guards(parse_tensor(f"y[i] = {text}", {"i": 5}))
    assert tensor_text(made) == f"y[i] = {expected}"


def test_what_depends_on_sizes_is_not_known_at_compile_time() -> None:
    nodes = [
        ("A[i] = c[i] * 2.0", {"i": 4}),
        ("B[i, j] = c[j]", {"i": "n", "j": 4}),
        ("C[i] = where(i < n, c[i], 0.0)", {"i": 4}),
        ("Y[i, j] = A[j] + B[i, j] * C[j] * x[i, j]", {"i": "n", "j": 4}),
    ]
    graph = make_graph({"x": ("n", 4)}, nodes, ["Y"], {"c": (4,)}, ["n"])
    assert constant_tensors(graph) == {"c", "A"}
