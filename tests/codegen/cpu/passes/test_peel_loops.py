from tests.programs import buffer, loop, tensor
from tilec.codegen.cpu.passes.peel_loops import Interval, peel_loops
from tilec.ir.expr import Const
from tilec.ir.program import Allocate, ComputeTile
from tilec.ir.text import parse_expr


def intervals(extent: int, lo: str, hi: str, **ranges: int) -> list[tuple[int, int]]:
    """How a loop over `i` around a window [lo, hi) is cut."""
    inside = Allocate(buffer("X_r", "reg", f"X[{lo}:{hi}]", shape=[8]))
    known = {name: (Const(0), Const(n - 1)) for name, n in ranges.items()}
    found = peel_loops(loop("i", extent, inside), extent, known, {})
    assert all(isinstance(each, Interval) for each in found)
    return [(each.first, each.last) for each in found]


def test_a_constant_width_needs_one_version():
    assert intervals(5, "i*4", "i*4 + 4") == [(0, 4)]
    assert intervals(5, "minimum(i*4, 14)", "minimum(i*4, 14) + 4") == [(0, 4)]


def test_a_clipped_last_tile_is_a_version_of_its_own():
    assert intervals(5, "i*4", "minimum(i*4 + 4, 18)") == [(0, 3), (4, 4)]


def test_a_clipped_first_tile():
    assert intervals(5, "maximum(i*4 - 1, 0)", "i*4 + 5") == [(0, 0), (1, 4)]


def test_both_ends():
    assert intervals(5, "maximum(i*4 - 1, 0)", "minimum(i*4 + 5, 18)") == [(0, 0), (1, 3), (4, 4)]
    assert intervals(2, "maximum(i*4 - 1, 0)", "minimum(i*4 + 5, 8)") == [(0, 0), (1, 1)]


def test_conditions_on_the_variable_are_decided():
    assert intervals(8, "where(i == 0, 0, 4)", "4 + where(i == 7, 4, 0)") == [(0, 0), (1, 6), (7, 7)]


def test_widths_that_depend_on_every_iteration_stay_dynamic():
    assert intervals(5, "0", "i + 1") == [(0, 4)]


def test_nothing_and_one():
    assert intervals(0, "i", "i + 1") == []
    assert intervals(1, "i*4", "minimum(i*4 + 4, 3)") == [(0, 0)]


def test_boxes_and_trip_counts_count_as_well():
    expr = tensor("Y[a] = X[a]", {"a": 18})
    box = (("a", parse_expr("i*4"), parse_expr("minimum(i*4 + 4, 18)")),)
    inside = ComputeTile(expr, box, "Y_r", (("X", "X_r"),))
    assert len(peel_loops(loop("i", 5, inside), 5, {}, {})) == 2
    assert len(peel_loops(loop("i", 5, loop("j", "minimum(i*4 + 4, 18) - i*4", inside)), 5, {}, {})) == 2
