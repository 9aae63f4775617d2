"""Partial evaluation of constants and of integers that depend on symbols."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tilec.importer.fold import MAX_FOLDED_BYTES, fold_constant, fold_elements
from tilec.importer.value import Value, extents
from tilec.ir.expr import Binary, Const, Expr, TensorExpr, Var
from tilec.ir.size_facts import SizeFacts, assumed, divides
from tilec.ir.sizes import SymbolRange
from tilec.ir.text import parse_expr, parse_tensor, text_of


def constant(array: NDArray[np.generic], ttype: str) -> Value:
    return Value("c", extents(array.shape), ttype, array=array)


def tensor(text: str, **sizes: int | str) -> TensorExpr:
    return parse_tensor(text, {n: parse_expr(s) if isinstance(s, str) else s for n, s in sizes.items()})


@pytest.mark.feature("W43")
def test_exact_results_are_folded() -> None:
    c = constant(np.array([1.0, 2.0, 3.0], np.float32), "f32")
    found = fold_constant(tensor("y[i] = c[2 - i] * 0.1", i=3), {"c": c}, "f32")
    np.testing.assert_array_equal(found, np.array([3, 2, 1], np.float32) * np.float32(0.1))


@pytest.mark.parametrize(
    "text", ["y[i] = exp(c[i])", "y[i] = tanh(c[i])", "y[i] = sum(j, c[i] * c[j])", "y[i] = pow(c[i], 1.5)"]
)
def test_what_machines_round_differently_stays_a_node(text: str) -> None:
    c = constant(np.array([1.0, 2.0], np.float32), "f32")
    assert fold_constant(tensor(text, i=2, j=2), {"c": c}, "f32") is None


def test_integer_reductions_are_folded() -> None:
    c = constant(np.array([2, 3, 4]), "i64")
    assert fold_constant(tensor("y[()] = prod(i, c[i])", i=3), {"c": c}, "i64") == 24


def test_large_results_and_symbols_stay_nodes() -> None:
    c = constant(np.zeros(1, np.float32), "f32")
    assert fold_constant(tensor("y[i] = c[0]", i=MAX_FOLDED_BYTES // 4 + 1), {"c": c}, "f32") is None
    assert fold_constant(tensor("y[i] = c[0]", i="n"), {"c": c}, "f32") is None
    assert fold_constant(tensor("y[i] = c[n]", i=1), {"c": c}, "f32") is None
    unknown = Value("c", (Const(1),), "f32")
    assert fold_constant(tensor("y[i] = c[0]", i=1), {"c": unknown}, "f32") is None


CHOICE = "where(n == 0 or not (n == 5 and n > 1), 1, 2)"
NOTHING = SizeFacts()


def elements(text: str, *known: str, facts: SizeFacts = NOTHING, **sizes: int) -> list[str] | None:
    values: tuple[Expr, ...] = tuple(parse_expr(k) for k in known)
    c = Value("c", (Const(len(values)),), "i64", elements=values)
    found = fold_elements(tensor(text, **sizes), {"c": c}, facts)
    return None if found is None else [text_of(e) for e in found]


@pytest.mark.feature("B04")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y[i] = c[i] * 2 + 1", ["n * 2 + 1", "7"]),
        ("y[i] = truncdiv(c[i], 2)", ["n // 2", "1"]),
        ("y[i] = truncdiv(-7, c[1]) + i", ["-2", "-1"]),
        ("y[i] = fmod(-7, c[1]) + i", ["-1", "0"]),
        ("y[i] = c[i] % 2", ["n % 2", "1"]),
        ("y[i] = where(c[i] == -1, 1, c[i])", ["n", "3"]),
        ("y[i] = where(i < 1, c[0], c[1] - 3)", ["n", "0"]),
        ("y[i] = maximum(c[i], 0)", ["n", "3"]),
        ("y[i] = where(not (c[i] < 0) and c[0] >= 0, abs(c[i]), 0)", ["n", "3"]),
        ("y[i] = i64(i32(c[i]))", ["n", "3"]),
        ("y[i] = where(bool(c[1]), c[i], 0)", ["n", "3"]),
        ("y[i] = i64(i == 0 or c[1] == 3)", ["1", "1"]),
        ("y[i] = neg(c[i])", ["n * -1", "-3"]),
        ("y[i] = where(c[i] > 4, 1, 0)", ["where(n > 4, 1, 0)", "0"]),
        ("y[i] = where(not (c[i] > 4), 1, c[i])", ["where(n <= 4, 1, n)", "1"]),
        ("y[i] = where(c[i] == 0 or not (c[i] == 5 and c[0] > 1), 1, 2)", [CHOICE, "1"]),
        ("y[i] = i64(c[i] == 3)", ["where(n == 3, 1, 0)", "1"]),
        ("y[i] = where(c[i] > 4, c[i], c[i])", ["n", "3"]),
    ],
)
def test_elements_are_expressions_of_the_symbols(text: str, expected: list[str]) -> None:
    assert elements(text, "n", "3", i=2) == expected


@pytest.mark.parametrize(("reducer", "expected"), [("sum", "n + 3"), ("prod", "n * 3"), ("max", "maximum(n, 3)")])
def test_reductions_of_elements(reducer: str, expected: str) -> None:
    assert elements(f"y[()] = {reducer}(i, c[i])", "n", "3", i=2) == [expected]


@pytest.mark.parametrize(
    "text",
    ["y[i] = i64(f32(c[i]) * 0.5)", "y[i] = c[c[0]]", "y[i] = truncdiv(c[i] - 9, 2)"],
)
def test_what_has_no_such_form(text: str) -> None:
    assert elements(text, "n", "3", i=2) is None


def test_facts_decide_the_signs_of_quotients() -> None:
    facts = SizeFacts(("n",), {"n": SymbolRange(9)})
    assert elements("y[i] = truncdiv(c[i] - 9, 2)", "n", i=1, facts=facts) == ["(n + 1) // 2 - 5"]
    assert elements("y[i] = fmod(c[i] - 9, 2)", "n", i=1, facts=facts) == ["(n + 1) % 2"]


def test_facts_decide_conditions() -> None:
    text = "y[i] = where(c[0] != c[1] and c[0] % c[1] == 0, truncdiv(c[0], c[1]), 1)"
    facts = SizeFacts(("a", "b"))
    assert elements(text, "a", "b", i=1) == ["where(a != b and a % b == 0, a // b, 1)"]
    assert elements(text, "a", "b", facts=assumed(facts, divides(Var("b"), Var("a")), "n"), i=1) == ["a // b"]
    assert elements(text, "b", "b", facts=facts, i=1) == ["1"]
    below = assumed(facts, Binary("<", Var("a"), Const(4)), "n")
    assert elements("y[i] = where(c[0] < 4 or c[1] == 0, c[1], 7)", "a", "b", facts=below, i=1) == ["b"]


def test_long_conditions_are_no_form() -> None:
    test = " or ".join(f"c[0] == {number}" for number in range(5, 25))
    assert elements(f"y[i] = where({test}, c[0], 1)", "n", i=1) is None


def test_empty_tensors_have_no_elements() -> None:
    assert elements("y[i] = c[0]", "n", i=0) == []
    assert elements("y[()] = sum(i, c[i])", i=0) == ["0"]
