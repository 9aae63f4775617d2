"""What accesses look like: movement, affinity, strides, pointwise reads."""

import pytest

from tilec.ir.expr import Access, Const, Expr, TensorExpr, Var, accesses
from tilec.ir.text import parse_expr, parse_tensor
from tilec.scheduler.analysis.access import (
    choices,
    divisions,
    is_affine,
    is_movement,
    reads_pointwise,
    recomputed,
    runs_along,
    smoothness,
    stride,
)
from tilec.spec.machine_costs import CpuCosts

E = {"i": 6, "j": 4, "k": 8, "u": 1, "t": 10}


def expression(text: str) -> TensorExpr:
    return parse_tensor(text, E)


def only(text: str) -> Access:
    return accesses(expression(text))[0]


def shape(*extents: int) -> tuple[Expr, ...]:
    return tuple(Const(e) for e in extents)


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("Y[i, j] = X[j, i]", True),
        ("Y[i, j] = X[i*4 + j]", True),
        ("Y[i, j] = where(i < 3, X[i, j], Z[i - 3, j])", True),
        ("Y[i, j] = where(i < 3, X[i, j], 0.0)", True),
        ("Y[i, j] = X[i, j] + 1.0", False),
        ("Y[i] = sum(j, X[i, j])", False),
        ("Y[i, j] = X[I[i], j]", False),
        ("Y[i, j] = where(X[i, j] > 0.0, Z[i, j], 0.0)", False),
        ("Y[i, j] = 0.0", False),
    ],
)
def test_movement_is_accesses_and_choices_by_iterators(text: str, moves: bool) -> None:
    assert is_movement(expression(text)) is moves


@pytest.mark.parametrize(
    ("text", "affine"),
    [("i*4 + j - 1", True), ("i*n + j", True), ("i // 2", False), ("i*j", False), ("i % 4 + j", False), ("7", True)],
)
def test_affine(text: str, affine: bool) -> None:
    assert is_affine(parse_expr(text), frozenset({"i", "j"})) is affine


@pytest.mark.parametrize(
    ("access", "extents", "iterator", "expected"),
    [
        ("X[i, j]", (6, 4), "j", 1),
        ("X[i, j]", (6, 4), "i", 4),
        ("X[i, j]", (6, 4), "k", 0),
        ("X[j, i]", (4, 6), "j", 6),
        ("X[i*2 + 1, j]", (13, 4), "i", 8),
        ("X[t // 5, t % 5]", (2, 5), "t", 1),
        ("X[(t + 3) // 5, (t + 3) % 5]", (3, 5), "t", 1),
        ("X[t // 5, 0]", (2, 5), "t", None),
        ("X[I[i], j]", (9, 4), "j", 1),
        ("X[I[i], j]", (9, 4), "i", None),
    ],
)
def test_stride_is_the_distance_in_memory(
    access: str, extents: tuple[int, ...], iterator: str, expected: int | None
) -> None:
    found = stride(only(f"Y[i, j, k, t] = {access}"), shape(*extents), iterator, Const(E[iterator]))
    assert found == (None if expected is None else Const(expected))
    assert runs_along(only(f"Y[i, j, k, t] = {access}"), shape(*extents), iterator, Const(E[iterator])) is (
        expected in (0, 1)
    )


def test_symbolic_strides() -> None:
    access = Access("X", (Var("i"), Var("j")))
    assert stride(access, (Const(6), Var("n")), "i", Const(6)) == Var("n")
    assert stride(access, (Const(6), Var("n")), "j", Var("n")) == Const(1)


@pytest.mark.parametrize(
    ("text", "extents", "expected"),
    [
        ("Y[i, j] = X[i, j] + 1.0", (6, 4), {0: "i", 1: "j"}),
        ("Y[i, j] = X[j, i] + 1.0", (4, 6), {0: "j", 1: "i"}),
        ("Y[u, i, j] = X[i, 0, j] + 1.0", (6, 1, 4), {0: "i", 2: "j"}),
        ("Y[i, j] = X[i] + 1.0", (6,), None),
        ("Y[i, j] = X[i, j + 1] + 1.0", (6, 5), None),
        ("Y[i, j] = X[i, j] + 1.0", (6, 5), None),
        ("Y[i, j] = X[i, i] + Z[j]", (6, 6), None),
    ],
)
def test_pointwise_reads_cover_both_sides(text: str, extents: tuple[int, ...], expected: dict[int, str] | None) -> None:
    assert reads_pointwise(only(text), expression(text), shape(*extents)) == expected


def test_recomputation_counts_the_points_that_read_an_element() -> None:
    product = expression("Y[i, j] = sum(k, A[i, k] * B[k, j])")
    a, b = accesses(product)
    assert recomputed(product, a) == E["j"]
    assert recomputed(product, b) == E["i"]


def test_choices_and_divisions_are_counted() -> None:
    text = "Y[t] = where(t < 3, X[t % 5], where(t < 5, Z[t // 2], 0.0))"
    assert choices(expression(text).value) == 1
    assert divisions(expression(text).value) == 2


@pytest.mark.parametrize(
    ("index", "worth"),
    [
        ("j", 1.0),
        ("3", 1.0),
        ("j * 2 + 1", 0.5),
        ("j % 2 * 29 + j // 2", 0.5),
        ("j // 2", 0.5),
        ("j // 3", 0.5),
        ("j * 7", 0.2),
        ("j // 5", 0.2),
        ("I[j]", 0.2),
    ],
)
def test_lanes_are_worth_less_where_they_are_shuffled_or_gathered(index: str, worth: float) -> None:
    assert smoothness(Access("X", (parse_expr(index),)), shape(60), "j", Const(58), CpuCosts()) == worth
