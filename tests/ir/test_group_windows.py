"""Windows of a group: the rules one by one, and one walk in integers, arrays and expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.random_graphs import Model, models
from tilec.ir.expr import Const, Expr, Var, as_expr, substitute
from tilec.ir.graph import Graph
from tilec.ir.group_windows import GroupWindows, WindowNumbers, align, hull, is_partition, move_inside, widen
from tilec.ir.intervals import NUMPY, Numbers
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.propagate import propagate
from tilec.ir.text import parse_expr, parse_tensor, text_of
from tilec.lower.symbolic_bounds import SymbolicBounds
from tilec.scheduler.analysis.window_propagation import CandidateEnds
from tilec.scheduler.memory_levels.level_windows import PLACED

INTEGERS = CandidateEnds()
Ends = tuple[int, int]


def symbols(**last: int | Expr) -> SymbolicBounds:
    """Expressions over loop variables that run from 0 to their last values."""
    return SymbolicBounds(KnownRanges({name: (Const(0), as_expr(n)) for name, n in last.items()}))


def at(s: SymbolicBounds, interval: tuple[Expr, Expr], place: Mapping[str, int]) -> Ends:
    """An interval of expressions where the loop variables have these values."""
    values = {name: Const(n) for name, n in place.items()}
    lo, hi = (int(NUMPY.size(substitute(s.resolve(end), values))) for end in interval)
    return lo, hi


@given(st.integers(1, 30), st.integers(-6, 6), st.integers(1, 12), st.integers(1, 5))
def test_one_interval_moved_inside_and_widened_in_three_arithmetics(
    extent: int, low: int, width: int, stride: int
) -> None:
    s = symbols(i=5)
    wanted = tuple(s.size(parse_expr(f"{stride}*i + ({end})")) for end in (low, low + width))
    moved = move_inside((wanted[0], wanted[1]), Const(extent), s)
    around = widen((wanted[0], wanted[1]), moved, Const(extent), s)
    starts = stride * np.arange(6)[:, None] + low
    placed = move_inside((starts, starts + width), extent, PLACED)
    placed_around = widen((starts, starts + width), placed, extent, PLACED)
    for i in range(6):
        a = stride * i + low
        lo, hi = move_inside((a, a + width), extent, INTEGERS)
        assert at(s, moved, {"i": i}) == (lo, hi) == tuple(int(end[i, 0]) for end in placed)
        assert 0 <= lo <= hi <= extent
        assert hi - lo == min(width, extent)
        assert set(range(a, a + width)) & set(range(extent)) <= set(range(lo, hi))
        first, end = at(s, around, {"i": i})
        assert (first, end) == tuple(int(np.broadcast_to(e, (6, 1))[i, 0]) for e in placed_around)
        assert first <= min(lo, a)
        assert end >= max(hi, a + width)


def test_what_stays_inside_is_left_alone() -> None:
    interval = (parse_expr("i*8"), parse_expr("i*8 + 8"))
    assert move_inside(interval, Const(32), symbols(i=3)) == interval


def test_symbolic_intervals_are_cut() -> None:
    s = symbols(i=parse_expr("N // 8"))
    lo, hi = move_inside((parse_expr("i*8 - 1"), parse_expr("i*8 + 9")), Var("N"), s)
    assert [text_of(lo), text_of(hi)] == ["maximum(i * 8 - 1, 0)", "minimum(N, i * 8 + 9)"]


def test_hull_leaves_out_what_is_empty() -> None:
    one, none, other = ((2, 5),), ((0, 0),), ((4, 9),)
    for numbers, number in ((INTEGERS, int), (symbols(), Const), (PLACED, lambda n: np.asarray([[n, n]]))):
        windows = [tuple((number(lo), number(hi)) for lo, hi in w) for w in (none, one, none, other)]
        around = hull(windows, numbers)  # type: ignore[arg-type, var-annotated]
        assert around is not None
        assert [np.unique(getattr(end, "value", end)).tolist() for end in around[0]] == [[2], [9]]
    assert hull([none, none], INTEGERS) == none
    assert hull([], INTEGERS) is None


def test_an_empty_window_of_one_candidate_widens_that_of_the_other_only() -> None:
    lo, hi = np.asarray([0, 3]), np.asarray([0, 5])
    ((first, end),) = hull([((lo, hi),), ((4, 9),)], INTEGERS) or ()
    assert (np.asarray(first).tolist(), np.asarray(end).tolist()) == ([4, 3], [9, 9])


@pytest.mark.feature("W06")
def test_tile_loops_move_a_further_sink_by_name_then_by_position_if_equally_wide() -> None:
    final = parse_tensor("y[i, j, k] = x[i, j, k] * 2.0", {"i": 8, "j": 6, "k": 4})
    sink = parse_tensor("s[p, i, q] = x[i, p, q] + 1.0", {"p": 6, "i": 8, "q": 5})
    region = {"p": (0, 6), "i": (10, 18), "q": (0, 5)}
    whole = {"i": (0, 8), "j": (0, 6), "k": (0, 4)}
    box, moved = align(sink, region, final, whole, {"i": (2, 4), "j": (3, 6), "k": (0, 1)}, INTEGERS)
    assert box == {"p": (0, 6), "i": (12, 14), "q": (0, 5)}
    assert moved == {"i": "i"}, "j's place is taken by i, k is not as wide as q"


@pytest.mark.feature("W06")
def test_tiles_are_a_partition_by_one_running_loop_for_each_dimension_that_they_cut() -> None:
    assert is_partition([{"i"}, set(), {"j"}])
    assert not is_partition([{"i", "j"}])
    assert not is_partition([{"i"}, {"i"}])
    running = {"i": np.asarray([True, True, False]), "j": np.asarray([True, False, True])}
    assert np.asarray(is_partition([{"i", "j"}], running)).tolist() == [False, True, True]
    cut = [np.asarray([True, True, True]), np.asarray([True, False, True])]
    assert np.asarray(is_partition([{"i"}, {"i"}], running, cut)).tolist() == [False, True, True]


def boxes(
    graph: Graph,
    tile: Mapping[str, tuple[object, object]],
    ends: WindowNumbers,
    numbers: Numbers,
    number: Callable[[int], object] = int,
) -> dict[str, dict[str, tuple[object, object]]]:
    """Box of every node that the final one needs, at one tile."""
    shapes = {name: tensor.shape for name, tensor in graph.tensors.items()}
    walk: GroupWindows = GroupWindows(graph.nodes[-1].expr, tile, ends)
    result: dict[str, dict[str, tuple[object, object]]] = {}
    for node in reversed(graph.nodes):
        shape = [number(int(n.value)) for n in node.expr.shape]  # type: ignore[union-attr]
        window = walk.place(node.expr, shape)
        if window is None:
            continue
        box = dict(zip(node.expr.spatial, window, strict=True))
        result[node.name] = box
        reduce = {i: (numbers.size(Const(0)), numbers.size(node.expr.domain[i])) for i in node.expr.reduce}
        walk.request(propagate(node.expr, {**box, **reduce}, shapes, numbers))
    return result


@pytest.mark.feature("W04", "W05", "W08")
@examples(60, seed=4)
@given(models(), st.data())
def test_a_group_has_the_same_boxes_in_integers_arrays_and_expressions(model: Model, data: st.DataObject) -> None:
    """Tiles that are moved back at the end of each iterator, at every place."""
    graph = model.graph
    final = graph.nodes[-1].expr
    extents = {i: int(final.domain[i].value) for i in final.spatial}  # type: ignore[union-attr]
    sizes = {i: data.draw(st.integers(max(1, n // 4), n)) for i, n in extents.items()}
    counts = {i: -(-extents[i] // size) for i, size in sizes.items()}
    s = symbols(**{f"{i}_loop": count - 1 for i, count in counts.items()})
    tile: dict[str, tuple[Expr, Expr]] = {}
    for i, size in sizes.items():
        last = Const(extents[i] - size)
        start = s.anchor(s.minimum(s.scale(Var(f"{i}_loop"), size), last))
        tile[i] = start, s.add(start, Const(size))
    by_symbol = boxes(graph, tile, s, s, Const)
    steps = np.arange(max(counts.values(), default=1))[:, None]
    starts = {i: np.minimum(np.minimum(steps, counts[i] - 1) * size, extents[i] - size) for i, size in sizes.items()}
    by_array = boxes(graph, {i: (start, start + sizes[i]) for i, start in starts.items()}, PLACED, NUMPY)
    for place, step in enumerate(steps[:, 0]):
        at_place = {i: int(start[place, 0]) for i, start in starts.items()}
        by_integer = boxes(graph, {i: (lo, lo + sizes[i]) for i, lo in at_place.items()}, INTEGERS, NUMPY)
        assert by_integer.keys() == by_array.keys() == by_symbol.keys()
        position = {f"{i}_loop": min(int(step), count - 1) for i, count in counts.items()}
        for name, box in by_integer.items():
            for i, (lo, hi) in box.items():
                ends = tuple(int(np.broadcast_to(end, steps.shape)[place, 0]) for end in by_array[name][i])
                assert (int(lo), int(hi)) == ends, (name, i, place)
                assert at(s, by_symbol[name][i], position) == ends, (name, i, place)
