"""Accesses with the conditions under which they happen."""

from tilec.bounds.einsum.guards import guarded
from tilec.ir.text import parse_expr, text_of


def told(text: str) -> list[tuple[str, list[str]]]:
    return [(text_of(access), [text_of(guard) for guard in guards]) for access, guards in guarded(parse_expr(text))]


def test_conjunctions_are_taken_apart_and_the_other_branch_has_the_opposite():
    found = told("where(i >= 0 and i < n and j < 2, A[i], B[i]) * C[i]")
    assert found == [
        ("A[i]", ["i >= 0", "i < n", "j < 2"]),
        ("B[i]", ["not (i >= 0 and i < n and (j < 2))"]),
        ("C[i]", []),
    ]


def test_conditions_that_read_and_nesting():
    found = told("where(M[i] > 0, where(i < 3, A[I[i]], 0), 1)")
    assert found == [
        ("M[i]", []),
        ("A[I[i]]", ["M[i] > 0", "i < 3"]),
        ("I[i]", ["M[i] > 0", "i < 3"]),
    ]
