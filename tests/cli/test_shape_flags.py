"""The flag --shape: sizes, ranges, divisors, and what is wrong with others."""

import pytest

from tilec.cli.options import flags
from tilec.cli.shape_flags import SizeRange, parse_shapes, parse_size_sets, parse_sizes
from tilec.errors import UsageError
from tilec.pipeline.request import declared_ranges
from tilec.spec.effective import recipe_without_device


@pytest.mark.feature("B07")
def test_sizes_and_ranges() -> None:
    assert parse_sizes(["batch=1, seq=8..512/8", "past=0..", "n=4..9", "n=4..9"]) == {
        "batch": 1,
        "seq": SizeRange(8, 512, 8),
        "past": SizeRange(0, None),
        "n": SizeRange(4, 9),
    }
    assert parse_shapes(["batch=1,seq=128"]) == {"batch": 1, "seq": 128}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seq=512..1", "--shape 'seq=512..1' holds no size\n  The smaller end comes first: 1..512."),
        ("seq=9..15/8", "--shape 'seq=9..15/8' holds no size divisible by 8\n  Widen the range."),
        ("seq=1..9/0", "--shape 'seq=1..9/0' is divided by 0"),
        ("seq=..9", "--shape 'seq=..9' does not bind a size"),
        ("seq=8/8", "--shape 'seq=8/8' does not bind a size"),
        ("seq=1..9,seq=1..8", "--shape binds seq to 1..9 and to 1..8"),
        ("seq=1..9/2,seq=4", "--shape binds seq to 1..9/2 and to 4"),
    ],
)
def test_malformed_ones(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_sizes([text])
    assert str(error.value).startswith(message)


def test_a_verb_that_needs_one_size_refuses_a_range() -> None:
    with pytest.raises(UsageError, match=r"seq=1..9 binds no size"):
        parse_shapes(["seq=1..9"])


def test_sets_of_sizes() -> None:
    assert parse_size_sets([]) == [{}]
    assert parse_size_sets(["batch=1", "seq=2"]) == [{"batch": 1, "seq": 2}]
    assert parse_size_sets(["batch=1,seq=2", "seq=3", "batch=4", "batch=5"]) == [
        {"batch": 1, "seq": 2},
        {"batch": 4, "seq": 3},
        {"batch": 5, "seq": 3},
    ]


def test_messages_name_the_flag() -> None:
    with pytest.raises(UsageError, match=r"--bind 'n' does not bind a size\n  Write it like --bind batch=1"):
        parse_sizes(["n"], "--bind")


def test_likely_sizes_give_way_to_bound_ones() -> None:
    given = flags(shapes=["batch=1,seq=1..64"], likely={"batch": [1, 2], "seq": [8, 16], "n": [3]})
    assert "shapes.batch.likely" not in given
    assert given["shapes.seq.likely"] == ("--shapes-from", [8, 16])


@pytest.mark.feature("B07")
def test_a_flag_goes_over_the_recipe(tmp_path) -> None:
    file = tmp_path / "recipe.yaml"
    file.write_text("shapes: {seq: 128, past: {divisor: 4, likely: [8]}}")
    merged = recipe_without_device(str(file), flags(shapes=["seq=1..64,past=4..64"]), {})
    ranges = declared_ranges(merged)
    assert merged.shapes["seq"].value is None
    assert {s: (r.text, r.likely) for s, r in ranges.items()} == {
        "seq": ("1..64", ()),
        "past": ("4..64, a multiple of 4", (8,)),
    }
