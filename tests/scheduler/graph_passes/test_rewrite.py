"""rewrite: guards of guards."""

import pytest

from tilec.ir.text import parse_tensor, tensor_text
from tilec.scheduler.graph_passes.rewrite import merge_guards


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
