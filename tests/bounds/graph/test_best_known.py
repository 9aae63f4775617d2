from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from bounds.graphs import attention, graph, mlp
from tilec.bounds.chain.segments import chain_curve, segmented_curve
from tilec.bounds.einsum.einsum import parse_einsum
from tilec.bounds.einsum.oro import oro
from tilec.bounds.einsum.oro_plus import oro_plus, parallel
from tilec.bounds.graph.best_known import Cut, GraphCurve, best_known, graph_curve, parallel_known
from tilec.bounds.graph.interval_curves import CurveCache
from tilec.bounds.graph.intervals import NodeInterval, Surroundings, intervals_from
from tilec.bounds.graph.resident import resident_from
from tilec.ir.graph import Graph

F32 = 4


def curve(found: Graph, *capacities: int) -> GraphCurve:
    return graph_curve(found, oro, ragged=False, capacities=capacities)


def traffic(found: GraphCurve, capacity: int) -> int | None:
    point = found.at(capacity)
    return point.traffic_bytes if point else None


def test_a_graph_of_one_product_has_its_curve() -> None:
    single = oro(parse_einsum("y[m,n] = sum(k, a[m,k] * b[k,n])", {"m": 12, "n": 18, "k": 8}, 32))
    sizes = [point.buffer_bytes for point in single.points]
    found = curve(graph({"a": (12, 8), "b": (8, 18)}, [("y[m, n] = sum(k, a[m, k] * b[k, n])",
                                                        {"m": 12, "n": 18, "k": 8})], ["y"]), *sizes)  # fmt: skip
    assert [traffic(found, size) for size in sizes] == [point.traffic_bytes for point in single.points]
    assert (found.compulsory, found.operations) == (F32 * (96 + 144 + 216), 2 * 12 * 18 * 8)


@pytest.mark.feature("O01")
def test_a_large_product_moves_what_was_published() -> None:
    """The points of the paper's tool for a product of 4096 x 4096 x 4096 elements, counted in words."""
    e = {"m": 4096, "n": 4096, "k": 4096}
    found = graph({"a": (4096, 4096), "b": (4096, 4096)}, [("y[m, n] = sum(k, a[m, k] * b[k, n])", e)], ["y"])
    with (Path(__file__).parents[1] / "golden" / "gemm_4k.csv").open(encoding="utf-8") as file:
        published = {int(row["buffer_bytes"]): int(row["accesses_words"]) for row in csv.DictReader(file)}
    for buffer in list(published)[:: len(published) // 5]:
        point = best_known(found, oro, F32 * buffer)
        assert point is not None
        assert point.traffic_bytes == F32 * published[buffer]


def test_small_graphs_move_what_is_counted_by_hand() -> None:
    """One element of each tensor at a time, and all that is read again at its largest."""
    e = {"m": 4, "n": 4, "k": 4}
    product = ("h[m, n] = sum(k, a[m, k] * b[k, n])", e)
    behind = ("y[m, n] = maximum(h[m, n], 0.0)", {"m": 4, "n": 4})
    inputs = {"a": (4, 4), "b": (4, 4)}
    # Sums stay: every product reads two elements, 16 results leave.
    words = {"product": 64 + 64 + 16, "both": 16 + 16 + 16, "element by element": 16 + 16}
    assert traffic(curve(graph(inputs, [product], ["h"]), F32 * 3), F32 * 3) == F32 * words["product"]
    assert traffic(curve(graph(inputs, [product, behind], ["y"]), F32 * 3), F32 * 3) == F32 * words["product"]
    assert traffic(curve(graph(inputs, [product, behind], ["y"])), 1 << 20) == F32 * words["both"]
    plain = graph({"h": (4, 4)}, [behind], ["y"])
    assert traffic(curve(plain), 1 << 20) == F32 * words["element by element"]


def test_what_stays_between_nodes_that_are_no_chain_moves_once() -> None:
    """x is summed up, and read again behind a product with the sums; with room for it, x, v and y move once each."""
    nodes = [("s[i] = sum(r, x[i, r])", {"i": 4, "r": 16}),
             ("w[i, j] = sum(r, s[i] * v[r, j])", {"i": 4, "j": 2, "r": 8}),
             ("y[i, j] = x[i, j] * s[i] + w[i, j % 2]", {"i": 4, "j": 16})]  # fmt: skip
    found = graph({"x": (4, 16), "v": (8, 2)}, nodes, ["y"])
    assert curve(found).points[-1].traffic_bytes == F32 * (64 + 16 + 64)
    room = F32 * 2 * 64
    assert traffic(curve(found, room), room) == F32 * (64 + 16 + 64)


def covers(found: Graph) -> Iterator[tuple[NodeInterval, ...]]:
    """All ways to cut a graph whose nodes stand in the order of its chains into runs."""
    around = Surroundings(found, found.nodes)

    def rest(first: int) -> Iterator[tuple[NodeInterval, ...]]:
        if first == len(found.nodes):
            yield ()
        for ways in (intervals_from, resident_from):
            for run in ways(first, around):
                yield from ((run, *others) for others in rest(run.end))

    return rest(0)


def moved(run: NodeInterval, capacity: int) -> float:
    if run.resident or not run.readers:
        return run.side if capacity >= run.least else np.inf
    if run.chain is None:
        point = oro(run.readers[0].einsum).at(capacity)
        return run.side + point.traffic_bytes if point else np.inf
    fused = chain_curve(run.chain).at(capacity)
    return run.side + fused.traffic_bytes if fused else np.inf


def test_the_best_cut_is_that_of_all_cuts() -> None:
    found = mlp(16, 8, 24, 4)
    capacities = [64, 200, 600, 1000, 1700, 3000, 10_000]
    best = [min(sum(moved(run, size) for run in runs) for runs in covers(found)) for size in capacities]
    assert [traffic(curve(found, *capacities), size) for size in capacities] == best
    assert best[-1] == curve(found).compulsory


def test_more_buffer_never_moves_more_and_nothing_moves_less_than_must() -> None:
    found = curve(attention(2, 3, 8, 4))
    moves = [point.traffic_bytes for point in found.points]
    assert moves == sorted(set(moves), reverse=True)
    assert moves[-1] == found.compulsory
    assert found.lower(1).traffic_bytes == found.compulsory
    assert found.at(1) is None


def test_cuts_say_what_is_fused() -> None:
    found = curve(mlp(64, 32, 48, 32))
    kinds = [str(point.mapping) for point in found.points]
    assert kinds[0] == "2 runs"
    assert kinds[-1] == "1 run, 1 chain of up to 2 contractions"
    kept = (NodeInterval(0, 4, 0, resident=True), NodeInterval(4, 5, 0), NodeInterval(5, 9, 0, resident=True))
    assert str(Cut(kept)) == "3 runs, 2 with whole tensors kept"
    assert sum(run.end - run.first for run in found.points[0].mapping.runs) == 4


def test_a_chain_alone_is_never_worse_than_its_segments() -> None:
    plain = graph({"x": (64, 32), "v": (32, 48), "w": (48, 32)},
                  [("h[m, n] = sum(k, x[m, k] * v[k, n])", {"m": 64, "n": 48, "k": 32}),
                   ("y[m, n] = sum(k, h[m, k] * w[k, n])", {"m": 64, "n": 32, "k": 48})], ["y"])  # fmt: skip
    around = Surroundings(plain, plain.nodes)
    (run,) = (run for run in intervals_from(0, around) if run.chain is not None)
    assert run.chain is not None
    segments = segmented_curve(run.chain).points
    found = curve(plain, *(point.buffer_bytes for point in segments))
    for point in segments:
        reached = traffic(found, point.buffer_bytes)
        assert reached is not None
        assert reached <= point.traffic_bytes


@pytest.mark.feature("O25")
def test_a_norm_behind_a_product_is_fused_where_rows_are_whole() -> None:
    nodes = [("h[m, n] = sum(k, x[m, k] * v[k, n])", {"m": 16, "n": 8, "k": 8}),
             ("u[m] = sum(r, h[m, r])", {"m": 16, "r": 8}),
             ("y[m, n] = h[m, n] / u[m]", {"m": 16, "n": 8})]  # fmt: skip
    normed = graph({"x": (16, 8), "v": (8, 8)}, nodes, ["y"])
    plain = graph({"x": (16, 8), "v": (8, 8)}, nodes[:1], ["h"])
    whole = F32 * (64 + 8 + 8)  # weights and one row of each
    assert traffic(curve(normed, whole), whole) == traffic(curve(plain, whole), whole) == F32 * (128 + 64 + 128)
    # Where tiles have parts of rows only, the result goes out and comes in again.
    small = F32 * 3
    assert traffic(curve(normed, small), small) == (traffic(curve(plain, small), small) or 0) + F32 * (
        128 + 128 + 128 + 16 + 16
    )


def test_an_empty_graph_and_nodes_without_elements() -> None:
    nothing = curve(graph({"x": (4,)}, [], ["x"]))
    assert (nothing.points[-1].traffic_bytes, nothing.operations) == (0, 0)
    empty = curve(graph({"x": (0, 3), "w": (3, 2)}, [("y[m, n] = sum(k, x[m, k] * w[k, n])",
                                                     {"m": 0, "n": 2, "k": 3})], ["y"]))  # fmt: skip
    assert (empty.compulsory, empty.points[-1].traffic_bytes) == (0, 0)


@pytest.mark.parametrize("capacity", [16, 200, 700, 3000, 50_000])
@pytest.mark.parametrize("made", [mlp, attention])
def test_the_best_known_at_one_capacity_is_the_point_of_the_curve(made: Callable[[], Graph], capacity: int) -> None:
    found, known = made(), CurveCache()
    point = graph_curve(found, oro_plus, capacities=[capacity]).at(capacity)
    for _ in range(2):
        best = best_known(found, oro_plus, capacity, known)
        assert (best and best.traffic_bytes) == (point and point.traffic_bytes)
    assert bool(known.singles) is bool(known.runs) is True


@pytest.mark.feature("O10")
def test_units_need_tasks_of_every_contraction() -> None:
    """One product moves what it does alone; what has fewer elements than units is cut as far as it can be."""
    text, e = "y[m, n] = sum(k, a[m, k] * b[k, n])", {"m": 12, "n": 18, "k": 8}
    product, einsum = graph({"a": (12, 8), "b": (8, 18)}, [(text, e)], ["y"]), parse_einsum(text, e, 32)
    for units, capacity in ((4, 400), (10, 900), (10**6, 64)):
        point = parallel_known(product, parallel, capacity, units)
        (alone,) = parallel(einsum, min(units, 12 * 18 * 8), capacity).points
        assert point is not None
        assert point.traffic_bytes == alone.traffic_bytes


@pytest.mark.quick_cases("mlp")
@pytest.mark.feature("O10")
@pytest.mark.parametrize("made", [mlp, attention])
def test_no_graph_moves_less_in_more_tasks(made: Callable[[], Graph]) -> None:
    found = made()
    for capacity in (512, 4096, 1 << 20):
        one = best_known(found, oro_plus, capacity)
        points = [parallel_known(found, parallel, capacity, units) for units in (2, 4, 8)]
        moved = [each.traffic_bytes if each is not None else 10**9 for each in (one, *points)]
        assert moved == sorted(moved)
