"""reindex and fold: what stands behind a movement moves in front of it; a last movement becomes its producer's."""

from scheduler.graphs import assert_same, make_graph
from scheduler.models import attention

from tilec.ir.expr import Access, Const
from tilec.ir.graph import Graph
from tilec.ir.text import parse_tensor, tensor_text, text_of
from tilec.scheduler.graph_passes.align_iterators import align_iterators, inverse
from tilec.scheduler.graph_passes.compose import compose
from tilec.scheduler.graph_passes.fold_movement import fold_movement, through
from tilec.scheduler.refusals import RewrittenGraph


def texts(graph: Graph) -> dict[str, str]:
    return {node.name: tensor_text(node.expr) for node in graph.nodes}


def test_a_factor_behind_the_head_split_joins_the_product() -> None:
    before = compose(RewrittenGraph(attention())).graph
    after = align_iterators(RewrittenGraph(before)).graph
    assert_same(before, after)
    assert texts(after)["q_scaled"] == "q_scaled[b, s, n] = q_sum[b, s, n] * root[()]"
    assert "q_scaled[b, s, d + h * 8]" in texts(after)["score"]


def test_a_table_by_position_in_the_head_keeps_its_space() -> None:
    e = {"s": 4, "h": 2, "d": 3, "n": 6, "k": 5}
    graph = make_graph(
        {"x": (4, 5), "w": (5, 6), "table": (4, 3)},
        [
            ("p[s, n] = sum(k, x[s, k] * w[k, n])", e),
            ("y[h, s, d] = p[s, h*3 + d] * table[s, d]", e),
            ("z[h, s] = sum(d, y[h, s, d])", e),
        ],
        ["z"],
    )
    assert align_iterators(RewrittenGraph(graph)).graph == graph


def test_inverse_reads_mixed_radix_numbers_only() -> None:
    producer = parse_tensor("P[s, n] = X[s, n]", {"s": 4, "n": 24})

    def values(index: str, **extents: int) -> dict[str, str] | None:
        reader = parse_tensor(f"E[{', '.join(extents)}] = P[s, {index}]", extents)
        assert isinstance(reader.body, Access)
        found = inverse(reader.body.index, reader, producer)
        return None if found is None else {i: text_of(e) for i, e in found.items()}

    assert values("h*6 + d", s=4, h=4, d=6) == {"s": "s", "h": "n // 6", "d": "n % 6"}
    assert values("h*6 + g*2 + d", s=4, h=4, g=3, d=2) == {"s": "s", "h": "n // 6", "g": "n // 2 % 3", "d": "n % 2"}
    assert values("h*6 + d", s=4, h=3, d=6) is None
    assert values("h*8 + d", s=4, h=3, d=6) is None
    assert values("h*6 + d + 1", s=4, h=4, d=6) is None
    assert values("h*6 + d", s=4, h=4, d=6, u=2) is None


def test_the_last_transpose_is_stored_by_its_producer() -> None:
    e = {"s": 4, "h": 2, "d": 3, "n": 6, "k": 5}
    graph = make_graph(
        {"x": (4, 5), "w": (5, 6)},
        [("p[s, n] = sum(k, x[s, k] * w[k, n])", e), ("y[h, s, d] = p[s, h*3 + d]", e)],
        ["y"],
    )
    after = fold_movement(RewrittenGraph(graph)).graph
    assert_same(graph, after)
    assert texts(after) == {"y": "y[h, s, d] = sum(k, x[s, k] * w[k, d + h * 3])"}


def test_a_producer_that_others_read_keeps_its_copy() -> None:
    e = {"s": 4, "n": 6, "k": 5}
    graph = make_graph(
        {"x": (4, 5), "w": (5, 6)},
        [
            ("p[s, n] = sum(k, x[s, k] * w[k, n])", e),
            ("y[n, s] = p[s, n]", e),
            ("z[s, n] = p[s, n] + 1.0", e),
        ],
        ["y", "z"],
    )
    assert fold_movement(RewrittenGraph(graph)).graph == graph


def test_nothing_is_computed_more_often_or_with_worse_indices() -> None:
    product = parse_tensor("P[s, n] = sum(k, X[s, k] * W[k, n])", {"s": 4, "n": 6, "k": 5})
    repeated = parse_tensor("Y[r, s, n] = P[s, n]", {"r": 3, "s": 4, "n": 6})
    split = parse_tensor("Y[s, n] = P[n // 6, n % 6]", {"s": 1, "n": 24})
    part = parse_tensor("Y[s, n] = P[s, n + 2]", {"s": 4, "n": 3})
    assert through(product, repeated) is None
    assert through(product, split) is None
    merged = through(product, part)
    assert merged is not None
    assert merged.extents == (Const(4), Const(3), Const(5))
