"""The loops of a lane over an interval."""

import pytest

from tilec.codegen.gpu.axes import axis
from tilec.codegen.gpu.lanes import Lanes
from tilec.codegen.gpu.ranges import with_ranges
from tilec.ir.expr import Const
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.text import parse_expr

LO = "u*32 + maximum(c*40 + where(b == 0, 0, b*10 + 20) - 40, 0)"
"""The begin of a tile of which no limit of its width is known."""


@pytest.mark.parametrize(
    ("hi", "most", "rounds"), [(f"minimum({LO} + 32, b*10 + c*40 - 10)", 32, 1), ("b*8 + 40", 64, 2)]
)
def test_a_tile_has_no_more_points_than_its_buffer(hi, most, rounds):
    ranges = with_ranges(KnownRanges(), {"u": 3, "b": 2, "c": 2})
    found = axis("n", parse_expr(LO), parse_expr(hi), ranges, Lanes("n", 1, 32), fixed=True, most=most)
    assert found.outer[1] == Const(rounds)
    assert found.inside is not None
