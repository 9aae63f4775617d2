import pytest

from tilec.codegen.cpu.emit.expand_pow import expand_pow
from tilec.ir.text import parse_expr, text_of

FLOAT, INTEGER = {"x": "f32"}, {"x": "i32"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("pow(x[i], 2)", "x[i] * x[i]"),
        ("pow(x[i], 2.0)", "x[i] * x[i]"),
        ("pow(x[i], 3)", "x[i] * x[i] * x[i]"),
        ("pow(x[i], 0.5)", "where(x[i] == -inf, inf, abs(sqrt(x[i])))"),
        ("pow(x[i], -1)", "1.0 / x[i]"),
        ("pow(x[i], 1.5)", "pow(x[i], 1.5)"),
        ("pow(2.0, x[i])", "pow(2.0, x[i])"),
        ("exp(pow(x[i] + 1.0, 1.0))", "exp(x[i] + 1.0)"),
    ],
)
def test_powers_by_constants(before, after):
    assert text_of(expand_pow(parse_expr(before), FLOAT)) == after


def test_only_positive_powers_of_integers():
    assert text_of(expand_pow(parse_expr("pow(x[i], 2)"), INTEGER)) == "x[i] * x[i]"
    assert text_of(expand_pow(parse_expr("pow(x[i], -1)"), INTEGER)) == "pow(x[i], -1)"
