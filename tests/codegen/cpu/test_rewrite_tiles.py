"""Tiles are rewritten in the ranges of the variables around them: versions of tasks, loops of any extents."""

from __future__ import annotations

from collections.abc import Mapping

from tests.codegen.cpu.test_verify_kernel import kernel, loop, tile
from tilec.codegen.cpu.kernel_ir import For, If, Step, Tile
from tilec.codegen.cpu.rewrite_tiles import rewrite_tiles
from tilec.ir.expr import Const, Var
from tilec.ir.text import parse_expr, text_of


def ranges_of(*steps: Step) -> list[dict[str, tuple[str, str]]]:
    """The ranges in which the tiles of a kernel are rewritten, in order."""
    ranges_of_tiles = []

    def note(each: Tile, ranges: Mapping) -> tuple[Step, ...]:
        ranges_of_tiles.append({name: (text_of(lo), text_of(hi)) for name, (lo, hi) in ranges.items()})
        return (each,)

    assert rewrite_tiles(kernel(*steps), note) == kernel(*steps)
    return ranges_of_tiles


def test_loops_of_the_task_and_of_numbers():
    assert ranges_of(loop(tile()), tile()) == [{"t": ("0", "1"), "i": ("0", "3")}, {"t": ("0", "1")}]


def test_versions_of_a_task_have_their_own_values():
    first = If(parse_expr("t <= 0"), (tile(),), (tile(),))
    assert ranges_of(first) == [{}, {}], "each is one value, which the version has in the variable's place"
    assert ranges_of(If(parse_expr("t <= n"), (tile(),), ())) == [{"t": ("0", "1")}]


def test_a_loop_as_long_as_an_outer_variable():
    inner = For("j", Const(0), Var("t"), (tile(),))
    assert ranges_of(inner) == [{"t": ("0", "1"), "j": ("0", "t - 1")}]


def test_a_tile_becomes_several_steps():
    doubled = rewrite_tiles(kernel(loop(tile())), lambda each, _ranges: (each, each))
    assert doubled == kernel(loop(tile(), tile()))
