"""Windows: moved inside their tensor, widened around a constant, hulls."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.lower.cases import MATMUL, evaluated
from tilec.ir.expr import Const, Expr, Var, substitute
from tilec.ir.text import parse_expr, text_of
from tilec.lower.windows import buffer, contains, cut, hull, inside, leaves, widened_window


def ends(s, interval: tuple[Expr, Expr], i: int) -> tuple[int, int]:
    lo, hi = (evaluated(substitute(s.sizes.resolve(e), {"i": Const(i)})) for e in interval)
    return lo, hi


@given(st.integers(1, 30), st.integers(-6, 6), st.integers(1, 12), st.integers(1, 5))
def test_inside_keeps_the_elements_and_the_width(extent: int, low: int, width: int, stride: int) -> None:
    s = MATMUL.setting()
    s.sizes.ranges["i"] = (Const(0), Const(5))
    wanted = (
        s.sizes.size(parse_expr(f"{stride}*i + ({low})")),
        s.sizes.size(parse_expr(f"{stride}*i + ({low + width})")),
    )
    moved = inside(s, wanted, Const(extent))
    around = widened_window(s, wanted, moved, Const(extent))
    for i in range(6):
        lo, hi = ends(s, moved, i)
        a, b = ends(s, wanted, i)
        assert lo >= 0
        assert hi <= extent
        assert hi - lo == min(width, extent)
        assert {x for x in range(a, b) if 0 <= x < extent} <= set(range(lo, hi))
        assert ends(s, around, i)[0] <= min(lo, a)
        assert ends(s, around, i)[1] >= max(hi, b)


def test_what_stays_inside_is_left_alone() -> None:
    s = MATMUL.setting()
    s.sizes.ranges["i"] = (Const(0), Const(3))
    interval = (parse_expr("i*8"), parse_expr("i*8 + 8"))
    assert inside(s, interval, Const(32)) == interval
    assert not leaves(s, (interval,), (Const(32),))
    assert leaves(s, (interval,), (Const(31),))


def test_symbolic_intervals_are_cut() -> None:
    s = MATMUL.setting()
    s.sizes.ranges["i"] = (Const(0), parse_expr("N // 8"))
    lo, hi = inside(s, (parse_expr("i*8 - 1"), parse_expr("i*8 + 9")), Var("N"))
    assert [text_of(lo), text_of(hi)] == ["maximum(i * 8 - 1, 0)", "minimum(N, i * 8 + 9)"]


def test_hull_leaves_out_what_is_empty() -> None:
    s = MATMUL.setting()
    one, none, other = ((Const(2), Const(5)),), ((Const(0), Const(0)),), ((Const(4), Const(9)),)
    assert hull(s, [none, one, none, other]) == ((Const(2), Const(9)),)
    assert hull(s, [none, none]) == none
    assert hull(s, []) is None


def test_contains_and_cut() -> None:
    s = MATMUL.setting()
    outer, inner = ((Const(0), Const(9)),), ((Const(2), Const(9)),)
    assert contains(s, outer, inner)
    assert not contains(s, inner, outer)
    assert cut(s, outer, inner) == inner


def test_a_buffer_is_as_wide_as_its_widest_window() -> None:
    s = MATMUL.setting()
    s.sizes.ranges["i"] = (Const(0), Const(3))
    held = buffer(s, "A", 1, ((parse_expr("i*6"), parse_expr("minimum(i*6 + 8, 21)")), (Const(4), Const(4))))
    assert (held.name, held.level, held.ttype, held.shape) == ("A_l2", "l2", "f32", (Const(8), Const(0)))
    assert buffer(s, "A", 1, ((Const(0), Const(1)), (Const(0), Const(1)))).name == "A_l2_2"
