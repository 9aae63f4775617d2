import pytest

from tilec.codegen.cpu.simplify_ranges import at_least, extend_ranges, simplify_in_ranges
from tilec.ir.evaluate import integer
from tilec.ir.expr import Const
from tilec.ir.text import parse_expr, text_of

RANGES = extend_ranges({}, {"i": (Const(1), Const(6))})


def test_decided_conditions_are_folded():
    assert text_of(simplify_in_ranges(parse_expr("where(i == 0, 3, i) + where(i < 7, 1, 2)"), RANGES)) == "i + 1"
    assert text_of(simplify_in_ranges(parse_expr("where(i == 6, 3, 4) - 4"), RANGES)) == "where(i == 6, 3, 4) - 4"


def test_comparison_over_all_values():
    assert at_least(parse_expr("i * 2"), parse_expr("i + 1"), RANGES)
    assert not at_least(parse_expr("i * 2"), parse_expr("i + 2"), RANGES)


def test_sums_with_a_maximum_or_minimum_are_compared_case_by_case() -> None:
    ranges = extend_ranges({}, {"l": (Const(0), Const(3)), "k": (Const(0), Const(14))})
    first = parse_expr("maximum(l * 14 - 1, 0) + k")
    assert at_least(first, parse_expr("l * 14 - 1"), ranges)
    assert at_least(parse_expr("l * 14 + 15"), parse_expr("maximum(l * 14 - 1, 0) + k + 1"), ranges)
    assert not at_least(parse_expr("l * 14 + 13"), parse_expr("maximum(l * 14 - 1, 0) + k + 1"), ranges)
    assert at_least(parse_expr("l + 3"), parse_expr("minimum(l, 2) + 3"), ranges)
    assert not at_least(parse_expr("minimum(l, 2)"), parse_expr("l"), ranges)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Half of what is read together: rotary embeddings of heads whose tiles are half as wide.
        ("maximum(t * 64 + 63, (t % 2 + 1) % 2 * 64 + t // 2 * 128 + 63) + 1 - t // 2 * 128", "128"),
        ("minimum(t * 64, t // 2 * 128 + (t % 2) * 64)", "t * 64"),
        ("maximum(t % 2, t % 2 + 1)", "t % 2 + 1"),
        ("maximum(t % 2 * 5, 3)", "maximum(t % 2 * 5, 3)"),  # the remainders differ
        ("maximum(t, 7)", "maximum(t, 7)"),
    ],
)
def test_what_every_remainder_comes_to_is_the_value(text, expected):
    ranges = extend_ranges({}, {"t": (Const(0), Const(30))})
    found = simplify_in_ranges(parse_expr(text), ranges)
    assert text_of(found) == expected
    for t in range(31):
        assert integer(found, {"t": t}) == integer(parse_expr(text), {"t": t})
