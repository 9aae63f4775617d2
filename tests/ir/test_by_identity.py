"""What is remembered by identity is computed once for a value, and never mistaken for that of another."""

from tilec.ir.by_identity import by_identity


def test_a_value_is_looked_at_once_and_equal_ones_each() -> None:
    seen: list[list[int]] = []

    @by_identity(2)
    def total(values: list[int]) -> int:
        seen.append(values)
        return sum(values)

    one, other, third = [1, 2], [1, 2], [3]
    assert [total(one), total(one), total(other)] == [3, 3, 3]
    assert len(seen) == 2
    assert [total(third), total(third), total(one)] == [3, 3, 3]
    assert len(seen) == 4, "no more values are kept than were asked for"


def test_a_number_that_was_given_again_is_not_taken_for_the_value_before() -> None:
    total = by_identity(1)(lambda values: sum(values))
    assert [total([n]) for n in range(100)] == list(range(100))
