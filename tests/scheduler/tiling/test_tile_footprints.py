"""windows: what a tile needs of every tensor, wherever it lies: hulls of all reads, shares of guarded ones."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheduler.graphs import make_graph
from scheduler.models import attention, convolutions

from tests.lower.cases import Case
from tilec.ir.expr import Const
from tilec.ir.graph import Graph
from tilec.ir.intervals import Candidates
from tilec.ir.lifetimes import statements
from tilec.ir.program import Allocate
from tilec.ir.propagate import propagate
from tilec.scheduler.analysis.window_propagation import extents_of, propagate_windows
from tilec.scheduler.tiling import tile_footprints as footprints
from tilec.scheduler.tiling.tile_footprints import TileFootprints, shapes_of, tile_footprints


def seen_of(graph: Graph, stored: dict[str, list[int]] | None = None, **sizes: int | list[int]) -> TileFootprints:
    tiles = {i: np.asarray(n, np.int64) for i, n in sizes.items()}
    least = {tensor: np.asarray(n, np.int64) for tensor, n in (stored or {}).items()}
    return tile_footprints(graph.nodes, tiles, {}, shapes_of((n.expr for n in graph.nodes), graph), Candidates(), least)


@pytest.mark.feature("W08")
def test_reads_of_several_nodes_are_one_window() -> None:
    """A gate reads one half of the channels, what it multiplies the other: one window around both."""
    nodes = [("g[j, k] = exp(x[j, k])", {"j": 100, "k": 8}), ("y[j, k] = g[j, k] * x[j + 100, k]", {"j": 100, "k": 8})]
    seen = seen_of(make_graph({"x": (200, 8)}, nodes, ["y"]), j=[1, 10, 100], k=[4, 4, 8])
    assert seen.elements["x"].tolist() == [101 * 4, 110 * 4, 200 * 8]


@pytest.mark.feature("W08")
def test_every_input_of_a_concatenation_is_needed_by_its_share_of_tiles() -> None:
    nodes = [("y[j] = where(j < 96, a[j], b[j - 96])", {"j": 128})]
    seen = seen_of(make_graph({"a": (96,), "b": (32,)}, nodes, ["y"]), j=[16, 64, 128])
    assert seen.elements["a"].tolist() == [16, 64, 96]
    assert seen.elements["b"].tolist() == [16, 32, 32]
    assert np.allclose(seen.share("a"), [0.75, 0.75, 1])
    assert np.allclose(seen.share("b"), [0.25, 0.5, 1])


@pytest.mark.feature("W06", "W08")
def test_a_tensor_that_leaves_is_held_as_a_whole_where_one_loop_moves_two_of_its_dimensions() -> None:
    """Rows of 8 that are summed in flat order: pieces of a row are no tiles of the map, one row or more are."""
    nodes = [
        ("a[h, w, c] = exp(x[h, w, c])", {"h": 4, "w": 8, "c": 6}),
        ("y[j] = sum(r, a[j // 8, j % 8, r])", {"j": 32, "r": 6}),
    ]
    graph = make_graph({"x": (4, 8, 6)}, nodes, ["a", "y"])
    tiles = [1, 2, 4, 8, 16, 32]
    seen = seen_of(graph, {"a": [6 * j for j in tiles]}, j=tiles)
    assert seen.elements["a"].tolist() == [192, 192, 192, 48, 96, 192]
    assert seen_of(graph, j=tiles).elements["a"].tolist() == [6, 12, 24, 48, 96, 192]


@pytest.mark.feature("W06", "W08")
@pytest.mark.parametrize(("h", "w", "held"), [(1, 8, 8), (2, 8, 16), (1, 4, 32), (4, 8, 32)])
def test_a_tensor_that_leaves_is_held_as_a_whole_where_two_loops_move_one_of_its_dimensions(
    h: int, w: int, held: int
) -> None:
    nodes = [("a[j] = exp(x[j])", {"j": 32}), ("y[h, w] = a[8 * h + w] + 1.0", {"h": 4, "w": 8})]
    graph = make_graph({"x": (32,)}, nodes, ["a", "y"])
    assert seen_of(graph, {"a": [h * w]}, h=[h], w=[w]).elements["a"].tolist() == [held]


@pytest.mark.feature("W06", "W08")
def test_a_tensor_that_leaves_is_computed_whole_along_what_no_loop_moves() -> None:
    """Every task computes all rows of the states, of which its columns of the pooled row read the first."""
    nodes = [
        ("a[s, k] = exp(x[s, k])", {"s": 7, "k": 24}),
        ("y[j] = sum(r, a[0, r] * w[r, j])", {"j": 24, "r": 24}),
    ]
    graph = make_graph({"x": (7, 24), "w": (24, 24)}, nodes, ["a", "y"])
    assert seen_of(graph, {"a": [7, 84, 168]}, j=[1, 12, 24]).elements["a"].tolist() == [168, 168, 168]


@pytest.mark.feature("W08")
def test_a_row_behind_others_is_computed_by_every_tile() -> None:
    """Nothing in what it reads says in which tiles it is not needed."""
    nodes = [
        ("s[k] = sum(r, w[k, r] * b[r])", {"k": 8, "r": 64}),
        ("y[j, k] = where(j < 127, a[j, k], s[k])", {"j": 128, "k": 8}),
    ]
    seen = seen_of(make_graph({"a": (127, 8), "b": (64,), "w": (8, 64)}, nodes, ["y"]), j=[1, 64], k=[8, 8])
    assert [float(np.max(seen.share(tensor))) for tensor in ("s", "w", "b")] == [1, 1, 1]
    assert np.min(seen.share("s")) == 1
    assert seen.elements["w"].tolist() == [8 * 64, 8 * 64]


@pytest.mark.feature("W08")
def test_what_runs_behind_one_input_has_its_share() -> None:
    nodes = [
        ("s[j, k] = sum(r, w[k, r] * b[j, r])", {"j": 32, "k": 8, "r": 64}),
        ("y[j, k] = where(j < 96, a[j, k], s[j - 96, k])", {"j": 128, "k": 8}),
    ]
    graph = make_graph({"a": (96, 8), "b": (32, 64), "w": (8, 64)}, nodes, ["y"])
    seen = seen_of(graph, j=[8], k=[8])
    lo, hi = seen.boxes["s"]["j"]
    assert (hi - lo).tolist() == [8], "a tile of s, not none because the first tile reads only a"
    assert [float(np.max(seen.share(t))) for t in ("a", "s", "b", "w")] == [0.75, 0.25, 0.25, 0.25]
    # Where there are no rows of s nothing is read of b; w has nothing to do with rows, and no level is told to wait.
    assert [float(np.max(seen.share(t, filled=True))) for t in ("a", "b", "w")] == [0.75, 0.25, 1]


@pytest.mark.feature("W08")
def test_rows_that_a_tile_has_none_of_fill_nothing_however_far_back() -> None:
    nodes = [
        ("h[p, r] = sum(q, u[q, r] * x[p, q])", {"p": 32, "r": 64, "q": 16}),
        ("s[j, k] = sum(r, w[k, r] * h[j, r])", {"j": 32, "k": 8, "r": 64}),
        ("y[j, k] = where(j < 96, a[j, k], s[j - 96, k])", {"j": 128, "k": 8}),
    ]
    graph = make_graph({"a": (96, 8), "x": (32, 16), "u": (16, 64), "w": (8, 64)}, nodes, ["y"])
    seen = seen_of(graph, j=[8], k=[8])
    assert [float(np.max(seen.share(t))) for t in ("x", "u", "w")] == [0.25, 0.25, 0.25]
    assert [float(np.max(seen.share(t, filled=True))) for t in ("x", "u", "w")] == [0.25, 1, 1]


@pytest.mark.feature("W08")
def test_what_is_not_moved_by_the_rows_that_a_tile_has_none_of_is_computed_by_every_tile() -> None:
    """A guard leaves most tiles without a row of s, and so without points; h, which has no rows, is computed."""
    nodes = [
        ("h[r] = sum(q, u[q, r] * x[q])", {"r": 8, "q": 64}),
        ("s[j, k] = h[k] * c[j]", {"j": 1, "k": 8}),
        ("y[j, k] = where(j < 127, a[j, k], s[j - 127, k])", {"j": 128, "k": 8}),
    ]
    graph = make_graph({"a": (127, 8), "x": (64,), "u": (64, 8), "c": (1,)}, nodes, ["y"])
    seen = seen_of(graph, j=[8], k=[8])
    assert [float(np.max(seen.share(t))) for t in ("s", "h", "u")] == [0.0625, 1, 1]


@pytest.mark.feature("W08")
def test_two_reads_of_one_tensor_share_all_tiles() -> None:
    seen = seen_of(make_graph({"x": (12,)}, [("y[i] = where(i < 9, x[i + 3], x[i - 9])", {"i": 12})], ["y"]), i=[3, 12])
    assert np.allclose(seen.share("x"), 1)
    assert seen.elements["x"].tolist()[1] == 12


@pytest.mark.feature("W04", "W08")
def test_shares_add_up_for_a_box_of_plain_integers() -> None:
    graph = make_graph({"x": (12,)}, [("y[i] = where(i < 9, x[i + 3], x[i - 9])", {"i": 12})], ["y"])
    (node,) = graph.nodes
    need = propagate_windows(node.expr, {"i": (0, 3)}, shapes_of([node.expr], graph), Candidates())["x"]
    assert np.allclose(need.share, 1)


@pytest.mark.feature("W04", "W08")
@given(cut=st.integers(1, 23), tile=st.sampled_from([1, 2, 3, 4, 6, 8, 12, 24]))
def test_shares_are_the_mean_over_all_tiles(cut: int, tile: int) -> None:
    """What a tile holds, times its share, is what tiles read on average, where none lies across the cut; more else."""
    graph = make_graph(
        {"a": (cut,), "b": (24 - cut,)}, [(f"y[i] = where(i < {cut}, a[i], b[i - {cut}])", {"i": 24})], ["y"]
    )
    seen = seen_of(graph, i=[tile])
    (node,) = graph.nodes
    shapes = {"a": (Const(cut),), "b": (Const(24 - cut),)}
    for tensor in ("a", "b"):
        read = []
        for first in range(0, 24, tile):
            box = {"i": (np.asarray(first), np.asarray(first + tile))}
            ((lo, hi),) = propagate(node.expr, box, shapes, Candidates(), clip=True)[tensor]
            read.append(max(0, int(hi - lo)))
        assert int(seen.elements[tensor][0]) >= max(read)
        assert np.isclose(float(np.max(seen.elements[tensor] * seen.share(tensor))), sum(read) / len(read))


@pytest.mark.feature("W22")
def test_runs_are_what_lies_in_a_row() -> None:
    """Whole inner dimensions and the part of the one around them, of operands and of the result."""
    nodes = [("y[h, w, c] = x[h + 1, w, c] + b[c]", {"h": 9, "w": 8, "c": 6})]
    graph = make_graph({"x": (10, 8, 6), "b": (6,)}, nodes, ["y"])
    seen = seen_of(graph, h=[3, 3, 3, 9], w=[4, 4, 8, 8], c=[2, 6, 6, 6])
    expected = {"x": [2, 4 * 6, 3 * 8 * 6, 9 * 8 * 6], "y": [2, 4 * 6, 3 * 8 * 6, 9 * 8 * 6], "b": [2, 6, 6, 6]}
    for tensor, runs in expected.items():
        assert np.asarray(seen.run(tensor, graph.tensors[tensor].shape, Candidates())).tolist() == runs


@pytest.mark.feature("W08")
@pytest.mark.parametrize("tile", [1, 2, 4, 8])
def test_windows_of_several_readers_are_joined_before_they_are_moved_inside(tile: int) -> None:
    """As lowering does: tiles in the middle need what lies before them and what lies behind."""
    extents = {"i": 16, "r": 3}
    texts = [
        "p[i] = exp(x[i])",
        "a[i] = sum(r, where(i + r >= 2 and i + r < 18, p[i + r - 2], 0.0))",
        "y[i] = a[i] + where(i + 1 < 16, p[i + 1], 0.0)",
    ]
    graph = make_graph({"x": (16,)}, [(text, extents) for text in texts], ["y"])
    lo, hi = seen_of(graph, i=[tile]).boxes["p"]["i"]
    assert np.max(hi - lo) == tile + 3
    # Lowering computes as much; its buffer, which stands for both guards, has the overhang of either side too.
    case = Case(texts, extents, {"x": (16,)}, {"l2": {"y": {"i": tile}}})
    buffers = [s.buffer for s in statements(case.program().body) if isinstance(s, Allocate)]
    assert [b.shape for b in buffers if (b.tensor, b.level) == ("p", "l2")] == [(Const(tile + 6),)]


@pytest.mark.parametrize("graph", [attention(), attention("batch", "tokens"), convolutions()])
@given(data=st.data())
def test_nodes_that_read_at_their_own_point_are_seen_as_any_other(graph: Graph, data: st.DataObject) -> None:
    """They take the box of their reader without arithmetic: the numbers are those of the arithmetic."""
    numbers = Candidates({symbol: data.draw(st.integers(1, 9)) for symbol in graph.symbols})
    last = data.draw(st.integers(1, len(graph.nodes)))
    nodes = graph.nodes[:last]
    final, shapes = nodes[-1].expr, shapes_of((n.expr for n in nodes), graph)
    extents = extents_of(final, numbers)
    tiles = {
        i: np.asarray(data.draw(st.lists(st.integers(1, extents[i]), min_size=3, max_size=3))) for i in final.spatial
    }
    one = tile_footprints(nodes, tiles, {}, shapes, numbers)
    with mock.patch.object(footprints, "plain_reads", return_value=None):
        other = tile_footprints(nodes, tiles, {}, shapes, numbers)
    for field in ("elements", "shares", "fills"):
        found, wanted = getattr(one, field), getattr(other, field)
        assert found.keys() == wanted.keys()
        for tensor in found:
            assert np.array_equal(*np.broadcast_arrays(found[tensor], wanted[tensor])), tensor
    assert one.boxes.keys() == other.boxes.keys()
    for node, box in one.boxes.items():
        for iterator, ends in box.items():
            for end, expected in zip(ends, other.boxes[node][iterator], strict=True):
                assert np.array_equal(*np.broadcast_arrays(end, expected))
