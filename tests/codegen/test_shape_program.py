import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilec.codegen.shape_program import Number, NumberBuilder, largest, position_of, symbols_as_numbers
from tilec.ir.evaluate import integer
from tilec.ir.expr import Access, Const, Expr, Var, rebuild
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.text import parse_expr, text_of

SYMBOLS = ("batch", "seq", "past")


def builder(parts: tuple[int, ...] = (0, 0, 0)) -> NumberBuilder:
    return NumberBuilder(symbols_as_numbers(SYMBOLS, dict(zip(SYMBOLS, parts, strict=True))), KnownRanges())


def values_of(numbers: NumberBuilder, sizes: dict[str, int]) -> list[int]:
    """The numbers one after the other, with the references of each replaced by their values."""
    values: list[int] = []

    def known(expr: Expr) -> Expr:
        return Const(values[position_of(expr)]) if isinstance(expr, Access) else rebuild(expr, known)

    for expr in numbers.numbers.exprs:
        values += [int(integer(known(expr), sizes))]
    return values


LEAVES = st.one_of(st.sampled_from(["batch", "seq", "past"]), st.integers(-3, 70).map(str))
CONDITIONS = ("<", "<=", ">", ">=", "==", "!=")


def _combined(inner):
    return st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*"]), inner),
        st.builds("({} {} maximum(1, {}))".format, inner, st.sampled_from(["//", "%"]), inner),
        st.builds("{}({}, {})".format, st.sampled_from(["minimum", "maximum"]), inner, inner),
        st.builds("where({} {} {}, {}, {})".format, inner, st.sampled_from(CONDITIONS), inner, inner, inner),
    )


EXPRESSIONS = st.recursive(LEAVES, _combined, max_leaves=8)
SIZES = st.fixed_dictionaries({name: st.integers(0, 40) for name in SYMBOLS})


@pytest.mark.feature("B04")
@settings(max_examples=150, deadline=None)
@given(st.lists(EXPRESSIONS, min_size=1, max_size=6), SIZES)
def test_numbers_have_the_values_of_their_expressions(texts, sizes):
    numbers = builder()
    exprs = [parse_expr(text) for text in texts]
    positions = [numbers.position(expr) for expr in exprs]
    values = values_of(numbers, sizes)
    assert [values[p] for p in positions] == [int(integer(e, sizes)) for e in exprs]


def test_what_is_needed_twice_is_one_number():
    numbers = builder()
    first = numbers.add(parse_expr("(seq + 15) // 16"))
    assert numbers.add(parse_expr("(15 + seq) // 16")) == first
    assert text_of(numbers.add(parse_expr("where(past > 3, (seq + 15) // 16, 0)"))) == "numbers[4]"
    assert [text_of(expr) for expr in numbers.numbers.exprs[3:]] == [
        "(seq + 15) // 16",
        "where(past > 3, numbers[3], 0)",
    ]


def test_symbols_and_constants_need_no_number_of_their_own():
    numbers = builder()
    assert numbers.size(Var("seq")) == Number(1)
    assert numbers.size(parse_expr("3 * 4 + 0 * seq")) == 12
    assert len(numbers.numbers.exprs) == 3
    assert numbers.position(12) == numbers.position(parse_expr("6 + 6")) == 3


def test_a_builder_goes_on_behind_the_numbers_of_another():
    first = builder()
    first.add(parse_expr("seq * 4"))
    second = NumberBuilder(first.numbers, KnownRanges())
    assert second.size(parse_expr("seq * 4")) == Number(3)
    assert second.size(parse_expr("seq * 8")) == Number(4)


def test_a_number_belongs_to_the_last_part_that_it_needs():
    numbers = builder(parts=(0, 1, 2))
    assert [numbers.part(parse_expr(text)) for text in ("7", "batch + 1", "batch * seq", "seq + past")] == [0, 0, 1, 2]


def test_the_largest_of_leaves():
    assert largest([]) == Const(0)
    assert largest([Const(3), Const(9)]) == Const(9)
    expr = largest([Const(3), Var("seq"), Var("batch"), Var("seq")])
    assert int(integer(expr, {"seq": 2, "batch": 1})) == 3
    assert int(integer(expr, {"seq": 2, "batch": 11})) == 11
