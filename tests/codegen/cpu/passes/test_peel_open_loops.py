"""Loops of open extents: which iterations are full, which one is the rest, for all sizes."""

from tests.programs import buffer, loop
from tilec.codegen.cpu.passes.peel_open_loops import peel_open_loop
from tilec.ir.evaluate import integer
from tilec.ir.expr import Const, Var
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.program import Allocate
from tilec.ir.text import parse_expr, text_of


def cut(extent: str, lo: str, hi: str, low: int = 0) -> list[tuple[str, str, str | None]]:
    """How a loop over `i` around a window [lo, hi) is cut: begin, end and only value of its parts."""
    inside = Allocate(buffer("X_r", "reg", f"X[{lo}:{hi}]", shape=[8]))
    known = KnownRanges({"n": (Const(low), Var("n"))})
    parts = peel_open_loop(loop("i", extent, inside), parse_expr(extent), known, {})
    for n in range(low, 70):
        covered = [
            (value, None if part.value is None else integer(part.value, {"n": n}))
            for part in parts
            for value in range(integer(part.first, {"n": n}), integer(part.end, {"n": n}))
        ]
        assert [value for value, _ in covered] == list(range(max(0, integer(parse_expr(extent), {"n": n}))))
        assert all(only in (None, value) for value, only in covered)
    return [(text_of(p.first), text_of(p.end), None if p.value is None else text_of(p.value)) for p in parts]


def test_a_constant_width_needs_one_version():
    assert cut("n", "i*4", "i*4 + 4") == [("0", "n", None)]
    assert cut("(n + 15)//16", "minimum(i*16, n - 16)", "minimum(i*16, n - 16) + 16", 16) == [
        ("0", "(n + 15) // 16", None)
    ]


def test_full_tiles_come_first_and_a_rest_is_one_iteration():
    assert cut("(n + 15)//16", "i*16", "minimum(i*16 + 16, n)") == [
        ("0", "n // 16", None),
        ("n // 16", "(n + 15) // 16", "n // 16"),
    ]


def test_a_clipped_first_tile_is_a_version_of_its_own():
    first, middle, last = cut("(n + 7)//8", "maximum(i*8 - 1, 0)", "minimum(i*8 + 8, n)")
    assert (first[0], first[2]) == ("0", "0")
    assert middle[0] == "1"
    assert last[2] is not None


def test_a_width_of_every_iteration_is_left_alone():
    assert cut("n", "i", "i + i") == [("0", "n", None)]
