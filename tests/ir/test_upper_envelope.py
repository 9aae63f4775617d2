"""The largest of sizes: equal to the maximum at all sizes, flat, without operands that others dominate."""

from __future__ import annotations

import random

import pytest

from tilec.ir.evaluate import integer
from tilec.ir.expr import Const, Expr
from tilec.ir.text import parse_expr, text_of
from tilec.ir.upper_envelope import at_most, largest, operands_of, total


def parsed(*texts: str) -> list[Expr]:
    return [parse_expr(text) for text in texts]


@pytest.mark.feature("B24")
@pytest.mark.parametrize(
    ("a", "b", "holds"),
    [
        ("n * 3", "n * 4", True),
        ("n * 3 + 8", "n * 4", False),
        ("(n * 147 + 22) // 23 * 8", "(n * 588 + 22) // 23 * 8", True),
        ("(n * 588 + 22) // 23 * 8", "(n * 147 + 22) // 23 * 8", False),
        ("(n * 10 + 22) // 23 * 8 + (n * 125 + 367) // 368 * 8", "(n * 490 + 22) // 23 * 8 + 8", True),
        ("(n * 10 + 22) // 23 * 8 + (n * 125 + 367) // 368 * 8", "(n * 12 + 22) // 23 * 8 + 8", False),
        ("m * n", "m * n + (m + 7) // 8", True),
        ("m * n", "m * m + n * n", False),
        ("maximum(n, m)", "n + m", True),
        ("n", "maximum(n * 2, m)", True),
        ("n", "maximum(m, 7)", False),
        ("n * (m // n)", "m", False),
    ],
)
def test_order_at_all_sizes(a: str, b: str, holds: bool) -> None:
    assert at_most(*parsed(a, b)) == holds


@pytest.mark.slow_cases("0", "9")
@pytest.mark.feature("B24")
@pytest.mark.parametrize("seed", range(10))
def test_nested_maxima_of_sums_stay_short_and_keep_their_values(seed: int) -> None:
    """A chain of sums and maxima as long as the places of a whole network."""
    draw = random.Random(seed)
    sizes = (0, 1, 2, 5, 40, 999, 10**6)
    size: Expr = Const(0)
    values = dict.fromkeys(sizes, 0)
    for _ in range(200):
        block, other = parsed(
            f"(n * {draw.randint(1, 4000)} + 22) // 23 * 8", f"n * {draw.randint(0, 9) * 90} + {draw.randint(0, 9000)}"
        )
        summed, beside = draw.random() < 0.05, {n: int(integer(other, {"n": n})) for n in sizes}
        size = largest((total(size, block) if summed else size, other))
        for n in sizes:
            values[n] = max(values[n] + summed * int(integer(block, {"n": n})), beside[n])
    assert {n: integer(size, {"n": n}) for n in sizes} == values
    assert len(list(operands_of(size))) < 12


@pytest.mark.feature("B24")
def test_dominated_operands_are_left_out() -> None:
    sizes = parsed("n * 2 + 6", "maximum(n, n * 2 + 5)", "(n + 3) // 4 * 8", "100", "6 - n")
    assert text_of(largest(sizes)) == "maximum(n * 2 + 6, 100)"
