"""Ratios count what floats count: chains of operations on sizes, beside NumPy's f32 at many sizes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product as every
from typing import Any

import numpy as np
import pytest

from tilec.importer.ratio import (
    EXACT,
    Ratio,
    as_real,
    ceil,
    extreme,
    floor,
    nearest,
    product,
    quotient,
    ratio_of,
    root,
    total,
    truncated,
)
from tilec.ir.evaluate import integer
from tilec.ir.expr import Binary, Const, Var

N = Var("n")
F32 = np.float32

Step = tuple[Callable[[Ratio], Ratio | None], Callable[[Any], Any]]


def number(value: float) -> Ratio:
    found = ratio_of(value)
    assert found is not None
    return found


STEPS: dict[str, Step] = {
    "times 2": (lambda a: product(a, number(2.0)), lambda x: x * F32(2)),
    "times 0.75": (lambda a: product(a, number(0.75)), lambda x: x * F32(0.75)),
    "plus 0.5": (lambda a: total(a, number(0.5)), lambda x: x + F32(0.5)),
    "minus 3": (lambda a: total(a, number(3.0), -1), lambda x: x - F32(3)),
    "by 3": (lambda a: quotient(a, number(3.0)), lambda x: x / F32(3)),
    "by 8": (lambda a: quotient(a, number(8.0)), lambda x: x / F32(8)),
    "by 0.5": (lambda a: quotient(a, number(0.5)), lambda x: x / F32(0.5)),
    "at least 5": (lambda a: extreme("maximum", a, number(5.0)), lambda x: np.maximum(x, F32(5))),
}
ENDS: dict[str, Step] = {
    "floor": (floor, np.floor),
    "ceil": (ceil, np.ceil),
    "round": (nearest, np.round),
    "cast": (truncated, np.trunc),
}


@pytest.mark.feature("B05")
@pytest.mark.parametrize("end", ENDS)
def test_chains_are_what_floats_compute(end: str) -> None:
    known = 0
    last, rounding = ENDS[end]
    for first, second in every(STEPS.values(), repeat=2):
        ratio: Ratio | None = as_real(Ratio(N))
        for step, _ in (first, second):
            ratio = None if ratio is None else step(ratio)
        found = None if ratio is None else last(ratio)
        if found is None:
            continue
        known += 1
        assert found.integer is not None
        for n in (*range(200), 1021, 4095, 65537):
            wanted = rounding(second[1](first[1](F32(n))))
            assert integer(found.integer, {"n": n}) == int(wanted), (found.integer, n)
    assert known >= 25


def test_quotients_of_sizes_are_exact_where_they_are_the_same_at_all_sizes() -> None:
    twice = product(as_real(Ratio(N)), number(2.0))
    assert twice is not None
    found = quotient(twice, as_real(Ratio(N)))
    assert found is not None
    assert (found.literal, found.rounded) == (2.0, False)
    third = quotient(as_real(Ratio(N)), number(3.0))
    assert third is not None
    assert third.rounded
    assert product(third, number(3.0)) is None
    assert total(third, number(1.0)) is None
    assert quotient(number(1.0), number(-3.0)) is None


def test_what_floats_count_is_limited() -> None:
    ratio = product(as_real(Ratio(N)), as_real(Ratio(Var("m"))))
    assert ratio is not None
    assert ratio.limits == (N, Var("m"), Binary("*", Var("m"), N))
    assert ratio_of(float(EXACT)) is None
    assert ratio_of(0.1) is None
    assert ratio_of(float("nan")) is None


def test_roots_of_squares() -> None:
    square = product(Ratio(Binary("*", N, Const(3))), Ratio(Binary("*", N, Const(3))))
    assert square is not None
    found = root(square)
    assert found is not None
    assert found.integer == Binary("*", N, Const(3))
    assert root(Ratio(N)) is None
    assert root(Ratio(Binary("*", Binary("*", N, N), Const(2)))) is None
