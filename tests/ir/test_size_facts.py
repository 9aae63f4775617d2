"""Facts about symbolic sizes, against every assignment of small sizes."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilec.ir.evaluate import integer
from tilec.ir.expr import Binary, Expr, Var
from tilec.ir.size_facts import (
    ContradictionError,
    SizeFacts,
    accepted_divisor,
    assumed,
    decided,
    divides,
    range_of,
    same,
    settled,
    with_range,
)
from tilec.ir.sizes import SymbolRange, SymbolValue
from tilec.ir.text import parse_expr, text_of

SYMBOLS = ("a", "b", "c")
SIZES = [dict(zip(SYMBOLS, sizes, strict=True)) for sizes in product(range(9), repeat=3)]


def fulfilled(facts: SizeFacts, sizes: dict[str, int]) -> bool:
    """Whether sizes of all symbols fulfil every fact."""
    return (
        all(entry.holds(sizes[symbol]) for symbol, entry in facts.ranges.items())
        and all(integer(each.value, sizes) == sizes[symbol] for symbol, each in facts.values.items())
        and all(integer(each.holds, sizes) for each in facts.constraints)
    )


def facts_from(*conditions: str) -> SizeFacts:
    facts = SizeFacts(SYMBOLS)
    for number, condition in enumerate(conditions):
        facts = assumed(facts, parse_expr(condition), f"node {number}")
    return facts


PLAIN = ["a", "b", "c", "a + 1", "b + c", "a * b", "a * 2", "b * 3 + 1", "2", "3", "4", "6"]
QUOTIENTS = ["(a + 1) // 2", "c // 2 * 2", "a // 2", "b // 3", "c // 2 * 3"]
extents = st.sampled_from([*PLAIN, *QUOTIENTS])
conditions = st.one_of(
    st.tuples(extents, st.sampled_from(["==", "<=", ">=", "<", ">"]), extents).map(
        lambda parts: parse_expr(f"({parts[0]}) {parts[1]} ({parts[2]})")
    ),
    st.tuples(st.sampled_from([1, 2, 3, 4, 6]), extents).map(
        lambda p: divides(parse_expr(str(p[0])), parse_expr(p[1]))
    ),
)


@pytest.mark.feature("B06")
@given(st.lists(conditions, max_size=4), conditions)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_facts_hold_for_exactly_the_sizes_that_fulfil_all_conditions(given_: list[Expr], asked: Expr) -> None:
    facts = SizeFacts(SYMBOLS)
    taken: list[Expr] = []
    for condition in given_:
        try:
            facts = assumed(facts, condition, "node")
        except ContradictionError:
            assert not any(all(integer(each, sizes) for each in (*taken, condition)) for sizes in SIZES)
            return
        taken.append(condition)
    legal = [sizes for sizes in SIZES if all(integer(each, sizes) for each in taken)]
    assert [sizes for sizes in SIZES if fulfilled(facts, sizes)] == legal
    assert not set(facts.ranges) & set(facts.values)
    answer = decided(facts, asked)
    if answer is not None:
        assert all(bool(integer(asked, sizes)) == answer for sizes in legal), text_of(asked)
    for condition in taken:
        assert decided(facts, condition) is not False


@pytest.mark.feature("B06")
def test_equal_symbols_become_the_first() -> None:
    facts = facts_from("c == b", "a == b")
    assert {s: text_of(each.value) for s, each in facts.values.items()} == {"b": "a", "c": "a"}
    assert same(facts, *map(parse_expr, ("b * 2", "c + a"))) is True
    facts = facts_from("c == a + 1", "b + 1 == c")
    assert {s: text_of(each.value) for s, each in facts.values.items()} == {"b": "a", "c": "a + 1"}
    assert facts.values["b"].origin == "node 1"
    assert facts_from("b == 4").values == {"b": SymbolValue(parse_expr("4"), "node 0")}


@pytest.mark.feature("B06")
def test_ranges_follow_symbols_that_are_replaced() -> None:
    facts = facts_from("b >= 2", "b <= 7", "a <= 5", "a == b")
    assert [(s, r.text) for s, r in facts.ranges.items()] == [("a", "2..5")]
    facts = with_range(facts_from("c == a + 1"), "c", SymbolRange(2, 9, 2, origin="recipe"))
    assert facts.ranges["a"].text == "1..8"
    assert [text_of(each.holds) for each in facts.constraints] == ["(a + 1) % 2 == 0"]
    with pytest.raises(ContradictionError, match="a == b holds for no sizes"):
        facts_from("a <= 5", "b >= 6", "a == b")


@pytest.mark.feature("B06")
def test_divisibility_is_remembered() -> None:
    condition = divides(parse_expr("384"), parse_expr("a * b * 32"))
    assert text_of(condition) == "a * b % 12 == 0"
    facts = assumed(SizeFacts(SYMBOLS), condition, "node r (Reshape)")
    assert same(facts, parse_expr("a * b // 12 * 12"), parse_expr("a * b")) is True
    assert same(facts, parse_expr("a * b // 12 * 24 * c"), parse_expr("a * c * b * 2")) is True
    assert same(facts, parse_expr("a * b // 12 * 12"), parse_expr("a * c")) is None
    assert facts_from("a >= 1", "b % 3 == 0").ranges["b"] == SymbolRange(divisor=3, origin="node 1")


@pytest.mark.feature("B06")
def test_a_declared_divisor_decides() -> None:
    concat = parse_expr("((a + 1) // 2 + 1) // 2 * 2 == (a + 1) // 2")
    assert decided(SizeFacts(SYMBOLS), concat) is None
    assert decided(SizeFacts(SYMBOLS, {"a": SymbolRange(divisor=2)}), concat) is None
    assert decided(SizeFacts(SYMBOLS, {"a": SymbolRange(divisor=4)}), concat) is True
    assert accepted_divisor(concat) == ("a", 4)
    assert accepted_divisor(parse_expr("a % 12 == 0")) == ("a", 12)
    assert accepted_divisor(parse_expr("a <= 12")) is None
    assert accepted_divisor(parse_expr("a == b")) is None
    facts = assumed(SizeFacts(SYMBOLS), concat, "node cat (Concat)")
    assert with_range(facts, "a", SymbolRange(divisor=8)).constraints == ()


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ("a <= 512", "0..512"),
        ("a < 512", "0..511"),
        ("2 * a + 1 <= 512", "0..255"),
        ("512 >= a + 1", "0..511"),
        ("a >= 3", "3.."),
        ("3 * a > 7", "3.."),
        ("a % 8 == 0", "0.., a multiple of 8"),
        ("(a + 3) // 4 >= 8", "29.."),
        ("8 > a // 4 + 1", "0..27"),
        ("((a - 1) // 2 - 3) // 5 * 2 >= 3", "27.."),
        ("(a + 15) // 48 == 1", "33..80"),
        ("6 - a // 7 * 2 == 1", None),
        ("a // 16777216 == 0", None),
        ("(a + b) // 4 >= 8", None),
        ("a * b <= 8", None),
        ("a <= b", None),
        ("a != 3", None),
    ],
)
def test_ranges_of_conditions(condition: str, text: str | None) -> None:
    limited = range_of(parse_expr(condition))
    assert (None if limited is None else limited[1].text) == text
    if limited is not None:
        for size in range(600):
            assert limited[1].holds(size) == bool(integer(parse_expr(condition), {"a": size}))


@pytest.mark.feature("B06")
def test_an_equality_of_quotients_is_a_divisor() -> None:
    """Halving and doubling a side gives it back: what two levels of a U-Net demand of pixels."""
    facts = assumed(SizeFacts(("h",)), parse_expr("h == h // 2 * 2"), "down1")
    assert facts.ranges["h"].divisor == 2
    facts = assumed(facts, parse_expr("h // 2 == h // 2 // 2 * 2"), "down2")
    assert (facts.ranges["h"].divisor, facts.constraints) == (4, ())
    late = assumed(SizeFacts(("h",)), parse_expr("h // 2 == h // 4 * 2"), "up1")
    late = settled(assumed(late, parse_expr("h == h // 2 * 2"), "up2"))
    assert (late.ranges["h"].divisor, late.constraints) == (4, ())
    other = assumed(SizeFacts(("h",)), parse_expr("h // 2 == h // 4 * 2"), "holds for 1 as well")
    assert other.ranges == {}
    assert len(other.constraints) == 1


def test_a_symbol_that_is_not_solvable_stays() -> None:
    facts = assumed(SizeFacts(("a",)), Binary("==", Var("a"), Var("found")), "node")
    assert facts.values == {}
    assert [text_of(each.holds) for each in facts.constraints] == ["a == found"]
    assert same(facts, Var("found"), Var("a")) is True


@pytest.mark.feature("B06")
@pytest.mark.parametrize("condition", ["a * 32 == b * 32", "a * 4 + 4 == b * 4 + 4"])
def test_an_equality_of_multiples_is_one_of_symbols(condition: str) -> None:
    """Two reshapes into heads and channels: the batches are equal, not only their products with the channels."""
    facts = facts_from(condition)
    assert facts.values == {"b": SymbolValue(Var("a"), "node 0")}
    assert facts.constraints == ()


@pytest.mark.feature("B06")
def test_quotients_without_a_rest_are_solved() -> None:
    """Heads of queries and keys with the same size: 9 query heads and 3 key heads."""
    facts = facts_from("a % 9 == 0", "b % 3 == 0", "a // 9 == b // 3")
    assert facts.values == {"a": SymbolValue(parse_expr("b * 3"), "node 2")}
    assert facts.constraints == ()
    left = facts_from("a // 9 == b // 3")
    assert [text_of(each.holds) for each in left.constraints] == ["a // 9 == b // 3"]


def test_a_size_that_fits_another_one() -> None:
    either = "a == b or a == 1 or b == 1"
    known = facts_from(either)
    assert [text_of(each.holds) for each in known.constraints] == [either]
    assert decided(known, parse_expr("b == 1 or b == a or a == 1"))
    assert decided(known, parse_expr("a == b or a == 1")) is None
    for told in ("where(a == 1, b, a) == b", "c * where(a == 1, b, a) * 8 == b * c * 8"):
        more = assumed(known, parse_expr(told), "product")
        assert [(text_of(each.holds), each.origin) for each in more.constraints] == [("a == b or a == 1", "product")]
        assert more.says_more_than(known)
        assert not more.says_more_than(more)
    assert not known.says_more_than(SizeFacts(SYMBOLS))
    other = assumed(SizeFacts(SYMBOLS), parse_expr("where(a == 1, b, a) == b"), "computed")
    assert [text_of(each.holds) for each in other.constraints] == ["where(a == 1, b, a) == b"]
