"""Numbers to decide by in the place of open sizes, and what is certain for all of them."""

from tilec.codegen.cpu.blocking import best_choice
from tilec.codegen.cpu.extents import equal_extents, extent_of, product, total_of
from tilec.codegen.cpu.kernel_ir import Dim, Tile
from tilec.codegen.cpu.open_sizes import NO_OPEN_SIZES, OpenSizes
from tilec.codegen.cpu.stride_analysis import form_of
from tilec.codegen.cpu.target import CpuTarget
from tilec.ir.expr import Access, Binary, Const, Var
from tilec.ir.sizes import SymbolRange
from tilec.ir.text import parse_expr, text_of

SIZES = OpenSizes.of(("n", "m"), {"n": SymbolRange(1, 512, 8, (64,))})


def test_usual_extents_are_those_at_the_pivot_and_rests_are_as_large_as_they_get():
    assert SIZES.usual(parse_expr("n * 3")) == 192
    assert SIZES.usual(Var("m")) == 128
    assert SIZES.usual(parse_expr("m % 16")) == 15
    assert SIZES.usual(parse_expr("m - m // 16 * 16")) == 15
    assert SIZES.usual(7) == 7
    assert SIZES.usual(parse_expr("i + 1")) is None
    assert SIZES.usual(parse_expr("n + i")) is None


def test_largest_extents_and_those_that_are_empty():
    assert SIZES.largest(parse_expr("n + 1")) == 513
    assert SIZES.largest(Var("m")) is None
    assert SIZES.is_empty(parse_expr("n % 8"))
    assert SIZES.is_empty(parse_expr("(n + 7) // 8 - n // 8"))
    assert not SIZES.is_empty(parse_expr("n % 16"))
    assert not SIZES.is_empty(parse_expr("m % 8"))


def test_a_typical_tile_has_numbers():
    tile = Tile(
        (Dim("%i", Var("n")), Dim("%j", parse_expr("m % 16"))),
        (Dim("%k", parse_expr("n - 1")),),
        "sum",
        Access("X", (parse_expr("n*m*2 + n*k"),)),
        Access("Y", (parse_expr("m*i"),)),
        "f32",
    )
    typical = SIZES.typical(tile)
    assert [dim.size for dim in typical.dims] == [64, 8, 64]
    assert text_of(typical.value) == "X[k * 64 + 16384]"
    assert text_of(typical.target) == "Y[128 * i]"
    assert NO_OPEN_SIZES.typical(tile) is tile


def test_rows_that_are_of_one_element_at_usual_sizes_alone_are_long_ones():
    """No vectors run across them, for at other sizes they do not lie side by side."""
    target = Access("Y", (parse_expr("i * (m // 128) + k"),))
    tile = Tile((Dim("i", Var("n")),), (), None, Access("X", (Var("i"),)), target, "f32")
    assert form_of(SIZES.typical(tile).target.index[0], ["i"]).stride("i") == 1024
    assert best_choice(tile, CpuTarget(64, 32), {"X": "f32"}, False, sizes=SIZES).vector is None


def test_rows_that_are_of_one_element_at_all_sizes_are_long_ones():
    """A row of 0 or 1: vectors across rows would lie side by side at every size but 0."""
    target = Access("Y", (parse_expr("i * minimum(m, 1) + k"),))
    tile = Tile((Dim("i", Var("n")),), (), None, Access("X", (Var("i"),)), target, "f32")
    assert best_choice(tile, CpuTarget(64, 32), {"X": "f32"}, False, sizes=SIZES).vector is None


def test_extents_stay_numbers_where_they_are_known():
    n = Var("n")
    assert product((2, 3, 4)) == 24
    assert product(()) == 1
    assert text_of(product((2, n, 3))) == "n * 6"  # type: ignore[arg-type]
    assert product((0, n)) == 0
    assert total_of((1, 2)) == 3
    assert text_of(total_of((1, n, n))) == "n * 2 + 1"  # type: ignore[arg-type]
    assert equal_extents(product((n, 4)), parse_expr("2*n + n*2"))
    assert not equal_extents(n, 4)
    assert extent_of(Const(3)) == 3


def test_one_of_several_open_reductions_is_unrolled() -> None:
    """The windows of a kernel of open sizes: with rests of both, 67,652 lines of code became 17,724."""
    image = Access("X", (parse_expr("(c*n + h + r)*m + w + s"),))
    product = Binary("*", image, Access("K", (parse_expr("(c*n + r)*m + s"),)))
    spatial, reduce = (
        tuple(Dim(name, Var(size)) for name, size in each) for each in (("hn", "wm"), ("cn", "rn", "sm"))
    )
    tile = Tile(spatial, reduce, "sum", product, Access("Y", (parse_expr("h*m + w"),)), "f32")
    small = OpenSizes.of(("n", "m"), dict.fromkeys("nm", SymbolRange(0, None, likely=(3,))))
    choice = best_choice(tile, CpuTarget(64, 32), {"X": "f32", "K": "f32"}, False, sizes=small)
    assert [choice.widths[name] > 1 for name in "crs"] == [False, False, True]
