"""Windows: whether they leave a tensor, intersections, and the buffers that store them."""

from __future__ import annotations

from dataclasses import replace

from tests.lower.cases import MATMUL
from tilec.ir.evaluate import integer
from tilec.ir.expr import Const, Var
from tilec.ir.text import parse_expr
from tilec.lower.windows import buffer, contains, cut, leaves


def test_windows_leave_a_tensor_that_they_may_reach_beyond() -> None:
    s = MATMUL.setting()
    s.sizes.ranges["i"] = (Const(0), Const(3))
    interval = (parse_expr("i*8"), parse_expr("i*8 + 8"))
    assert not leaves(s, (interval,), (Const(32),))
    assert leaves(s, (interval,), (Const(31),))


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


def test_a_buffer_of_an_open_size_holds_no_more_than_the_tensor() -> None:
    s = replace(MATMUL, symbols=("n",), inputs={**MATMUL.inputs, "A": (Var("n"), 8)}).setting()
    s.sizes.ranges["i"] = (Const(0), Var("n"))
    back, past = parse_expr("maximum(i - 1000000, 0)"), parse_expr("i - 1000000")
    end = parse_expr("minimum(n, i + 4)")
    held = buffer(s, "A", 1, ((back, end), (Const(0), Const(8))))
    assert [integer(held.shape[0], {"n": n}) for n in (5, 70)] == [5, 70]
    outside = buffer(s, "A", 1, ((past, end), (Const(0), Const(8))))
    assert integer(outside.shape[0], {"n": 5}) > 5
