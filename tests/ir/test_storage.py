"""Where elements of swizzled buffers lie: panel after panel, each row by row."""

from itertools import product

import numpy as np
import pytest

from tests.programs import buffer
from tilec.ir.evaluate import integer
from tilec.ir.expr import Var
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.storage import panel_stride, panel_width, position, strides

ROWS = 4


@pytest.mark.parametrize(
    ("ttype", "swizzle", "layout"),
    [("f16", 128, (0, 1)), ("f16", 64, (0, 1)), ("i8", 32, (0, 1)), ("f32", 128, (1, 0))],
)
@pytest.mark.feature("W37")
def test_panels_of_swizzled_rows_follow_one_another(ttype, swizzle, layout):
    width = panel_width(buffer("x_s", "shared", "x[0:1, 0:1]", ttype, shape=(1, 1), swizzle=swizzle))
    shape = [ROWS, 3 * width]
    if layout == (1, 0):
        shape.reverse()
    spans = ", ".join(f"5:{5 + n}" for n in shape)
    made = buffer("x_s", "shared", f"x[{spans}]", ttype, shape=shape, layout=layout, swizzle=swizzle)
    at = [Var("row"), Var("column")] if layout == (0, 1) else [Var("column"), Var("row")]
    place = position(made, at, KnownRanges())
    found = np.empty((ROWS, 3 * width), int)
    for row, column in product(range(ROWS), range(3 * width)):
        found[row, column] = integer(place, {"row": 5 + row, "column": 5 + column})
    panels = np.arange(found.size).reshape(3, ROWS, width)
    np.testing.assert_array_equal(found, panels.transpose(1, 0, 2).reshape(found.shape))
    assert integer(panel_stride(made), {}) == ROWS * width
    assert [integer(step, {}) for step in strides(made)] == [width if d == layout[0] else 1 for d in range(2)]
