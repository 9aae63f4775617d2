import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.codegen.cpu.passes.test_flatten_statements import rows
from tests.programs import compute, tensor
from tilec.codegen.cpu.kernel_ir import If, Step, Tile, tiles
from tilec.codegen.cpu.passes.flatten_statements import compute_tile
from tilec.codegen.cpu.passes.specialize_guards import (
    everywhere,
    guard_alternatives,
    specialize_guards,
    split_straddling,
)
from tilec.ir.expr import Const
from tilec.ir.text import parse_expr, text_of

OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
RANGES = {"p": (Const(0), Const(9))}


def tile(text: str, **box: str) -> Tile:
    expr = tensor(text, {"h": 40, "c": 20, "r": 3})
    operands = {name: rows(name, 40, 20) for name in "XZ"} | {"W": rows("W", 3)}
    made = compute_tile(compute(expr, "Y_b", "_b", **box), rows("Y", 40, 20), operands, RANGES)
    assert made is not None
    return made


def outline(steps: tuple[Step, ...]) -> list:
    """Conditions and values of the versions."""
    found: list = []
    for step in steps:
        if isinstance(step, If):
            found.append((text_of(step.condition), outline(step.yes), outline(step.no)))
        elif isinstance(step, Tile):
            found.append(text_of(step.value).replace("%", ""))
    return found


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("h + r - 1 < 40", "p * 4 - 36 < 0"),
        ("0 <= h + r - 1", "p * -4 + 1 <= 0"),
        ("h * 2 - r >= 0", "p * 8 - 2 >= 0"),
        ("p < 3", "p - 3 < 0"),
        ("h % 2 < 1", None),
        ("h == 1", None),
        ("not h < 1", None),
        ("0.9 > 0.0", None),
    ],
)
def test_conditions_at_the_worst_point_of_a_box(condition, expected):
    """h runs over p*4 .. p*4 + 3, r over 0 .. 2."""
    text = condition.replace("h", "(p*4 + i)")
    found = everywhere(parse_expr(text), {"i": Const(4), "r": Const(3)}, RANGES)
    assert (text_of(found) if found is not None else None) == expected


def test_a_guard_is_tested_once_for_a_tile():
    guarded = tile("Y[h, c] = sum(r, where(0 <= h + r - 1, X[h + r - 1, c], 0.0) * W[r])", h="p*4:p*4 + 4")
    (choose,) = specialize_guards(guarded, RANGES)
    assert isinstance(choose, If)
    (inside,) = choose.yes
    assert "where" not in text_of(inside.value)
    assert any("where" in text_of(t.value) for t in tiles(choose.no))


def test_both_guards_of_a_window_hold_or_the_tile_stays_as_it_is():
    both = "where(0 <= h + r - 1 and h + r - 1 < 40, X[h + r - 1, c], 0.0)"
    guarded = tile(f"Y[h, c] = sum(r, {both} * W[r])", h="p*4:p*4 + 4")
    (choose,) = specialize_guards(guarded, RANGES)
    assert text_of(choose.condition) == "p * -4 + 1 <= 0 and p * 4 - 36 < 0"
    assert choose.no == (guarded,)


def test_parts_of_a_concatenation_are_copies():
    parts = tile("Y[h, c] = where(h < 13, X[h, c], Z[h - 13, c])", h="p*4:p*4 + 4")
    ((first, yes, no),) = outline(specialize_guards(parts, RANGES))
    assert first == "p * 4 - 10 < 0"
    assert [text.split("[")[0] for text in yes] == ["X"]
    ((second, other, rest),) = no
    assert second == "p * 4 - 13 >= 0"
    assert [text.split("[")[0] for text in other] == ["Z"]
    assert rest[0].startswith("where(")


def test_every_part_of_a_long_concatenation_is_a_copy():
    """Ten parts of four rows, tiles of four rows: none is straddled."""
    text = "X[h - 36, c]"
    for part in range(9, 0, -1):
        text = f"where(h < {4 * part}, X[h - {4 * part - 4}, c] * {part}.0, {text})"
    parts = tile(f"Y[h, c] = {text}", h="p*4:p*4 + 4")
    made = [text_of(each.value) for each in tiles(specialize_guards(parts, RANGES))]
    assert len(made) == 10
    assert not any("where" in each for each in made)


@pytest.mark.parametrize(
    ("condition", "box", "expected"),
    [
        ("h < 12", "p*8:p*8 + 8", ("h", 4)),
        ("h <= 11", "p*8:p*8 + 8", ("h", 4)),
        ("12 > h", "p*8:p*8 + 8", ("h", 4)),
        ("11 >= h", "p*8:p*8 + 8", ("h", 4)),
        ("not h < 12", "p*8:p*8 + 8", None),
        ("h < 12 + p*2", "p*8:p*8 + 8", ("h", 2)),
        ("h < 12", "p*8 + 2:p*8 + 10", ("h", 2)),
        ("h < 11", "p*8:p*8 + 8", ("h", 1)),
        ("h < 16", "p*8:p*8 + 8", None),
        ("h < 12", "p:p + 1", None),
        ("c < 8", "p*8:p*8 + 8", ("c", 4)),
        ("c < 7", "p*8:p*8 + 8", None),
        ("h + c < 12", "p*8:p*8 + 8", None),
        ("h * 2 < 12", "p*8:p*8 + 8", None),
        ("h % 2 < 1", "p*8:p*8 + 8", None),
        ("h == 12", "p*8:p*8 + 8", None),
        ("h < 12 and h < 20", "p*8:p*8 + 8", None),
        ("X[h, c] < 12.0", "p*8:p*8 + 8", None),
    ],
)
def test_pieces_that_lie_on_one_side(condition, box, expected):
    """Twenty elements in a row: pieces of rows may be of one, pieces of a row have four or more."""
    expr = tensor(f"Y[h, c] = where({condition}, X[h, c], Z[h, c])", {"h": 40, "c": 20})
    assert split_straddling(compute(expr, "Y_b", "_b", h=box), "c", RANGES) == expected


def test_all_conditions_of_a_concatenation_have_a_say():
    expr = tensor("Y[h, c] = where(h < 4, X[h, c], where(h < 10, X[h, c], Z[h, c]))", {"h": 40, "c": 20})
    assert split_straddling(compute(expr, "Y_b", "_b", h="p*8:p*8 + 8"), "c", RANGES) == ("h", 2)


def test_pieces_are_not_narrow_in_memory():
    expr = tensor("Y[h, c] = where(h < 11, X[h, c], Z[h, c])", {"h": 40, "c": 20})
    assert split_straddling(compute(expr, "Y_b", "_b", h="p*8:p*8 + 8", c="0:3"), "c", RANGES) is None
    assert split_straddling(compute(expr, "Y_b", "_b", h="p*8:p*8 + 8"), "h", RANGES) is None


def test_reductions_are_not_cut():
    expr = tensor("Y[h] = sum(c, where(c < 8, X[h, c], Z[h, c]))", {"h": 40, "c": 20})
    assert split_straddling(compute(expr, "Y_b", "_b", h="p*8:p*8 + 8"), "h", RANGES) is None


def test_conditions_that_meet_in_a_tile_are_decided_four_deep():
    text = " + ".join(f"where(h < {3 + 5 * n}, X[h, c], Z[h, c])" for n in range(7))
    made = list(tiles(specialize_guards(tile(f"Y[h, c] = {text}", h="p*4:p*4 + 4"), RANGES)))
    assert 0 < len(made) <= 3**4


@given(st.sampled_from(["<", "<=", ">", ">="]), st.integers(-9, 9), st.integers(1, 6), st.integers(-20, 20))
def test_what_is_no_alternative_is_met(op, step, size, limit):
    """A loop over p and a dimension of some size against a limit: without a gap no p has points on both sides."""
    condition = parse_expr(f"p * {step} + i {op} {limit}")
    opposite = parse_expr(f"p * {step} + i {OPPOSITE[op]} {limit}")
    extents = {"i": Const(size)}
    holds, fails = everywhere(condition, extents, {}), everywhere(opposite, extents, {})
    assert holds is not None
    assert fails is not None

    compared = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[op]
    straddled = any(len({compared(p * step + i, limit) for i in range(size)}) == 2 for p in range(-40, 41))
    assert not (straddled and guard_alternatives(holds, fails))
    if step and abs(limit) < 20:
        assert straddled or guard_alternatives(holds, fails)


def test_conditions_on_data_are_left_alone():
    chosen = tile("Y[h, c] = where(X[h, c] > 0.0, X[h, c], Z[h, c])", h="p*4:p*4 + 4")
    assert specialize_guards(chosen, RANGES) == (chosen,)
