"""compose and split: movement becomes index algebra, or stays with a reason."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler.graphs import assert_same, make_graph
from scheduler.models import attention

from tilec.ir.graph import Graph
from tilec.ir.text import parse_tensor, tensor_text
from tilec.scheduler.graph_passes.compose import compose
from tilec.scheduler.graph_passes.split_reductions import split_reductions
from tilec.scheduler.refusals import RewrittenGraph


def texts(graph: Graph) -> dict[str, str]:
    return {node.name: tensor_text(node.expr) for node in graph.nodes}


def composed(graph: Graph) -> RewrittenGraph:
    draft = compose(RewrittenGraph(graph))
    assert_same(graph, draft.graph)
    return draft


@pytest.mark.feature("W42")
def test_head_splits_and_merges_cost_nothing() -> None:
    draft = composed(attention())
    found = texts(draft.graph)
    assert "q_split" not in found
    assert "joined" not in found
    assert found["score"].startswith("score[b, h, s, t] = sum(d, q_scaled[b, h, s, d] * k_sum[b, t, d + h * 8])")
    assert found["o_product"] == "o_product[b, s, n] = sum(k1, k2, mix[b, k1, s, k2] * o_weight[k1 * 8 + k2, n])"
    assert not draft.refused


def test_reduce_iterators_split_at_every_divisor() -> None:
    before = parse_tensor("Y[s] = sum(k, C[k // 12, k // 4 % 3, s, k % 4])", {"s": 5, "k": 24})
    assert tensor_text(split_reductions(before)) == "Y[s] = sum(k1, k21, k22, C[k1, k21, s, k22])"


def test_a_divisor_that_does_not_divide_stays() -> None:
    before = parse_tensor("Y[s] = sum(k, C[k // 5, k % 5, s])", {"s": 5, "k": 24})
    assert split_reductions(before) == before


@pytest.mark.feature("W42")
def test_pads_become_one_guard() -> None:
    graph = make_graph(
        {"x": (6,)},
        [
            ("p[i] = where(i >= 1 and i < 7, x[i - 1], 0.0)", {"i": 8}),
            ("q[i] = where(i >= 2 and i < 10, p[i - 2], 0.0)", {"i": 12}),
            ("y[i] = sum(r, q[i + r])", {"i": 10, "r": 3}),
        ],
        ["y"],
    )
    found = texts(composed(graph).graph)
    assert list(found) == ["y"]
    assert found["y"].count("where") == 1


def test_a_choice_between_tensors_stays_out_of_products() -> None:
    e = {"i": 4, "k": 6, "n": 3}
    graph = make_graph(
        {"a": (4, 3), "b": (4, 3), "w": (6, 3)},
        [("c[i, k] = where(k < 3, a[i, k], b[i, k - 3])", e), ("y[i, n] = sum(k, c[i, k] * w[k, n])", e)],
        ["y"],
    )
    draft = composed(graph)
    assert list(texts(draft.graph)) == ["c", "y"]
    assert draft.refused["c->y"].code == "choice"


def test_a_choice_that_several_read_or_that_leaves_the_model_is_stored_once() -> None:
    e = {"i": 4, "k": 8, "m": 4, "n": 2}
    nodes = [
        ("c[i, k] = where(k < 4, a[i, k], b[i, k - 4])", e),
        ("s[i, k] = c[i, k % 2 * 4 + k // 2]", e),
        ("first[i, m] = s[i, m]", e),
        ("second[i, m] = s[i, m + 4]", e),
        ("y[i, n] = sum(m, second[i, m] * w[m, n])", e),
        ("z[i, m] = first[i, m] * 2.0", e),
    ]
    graph = make_graph({"a": (4, 4), "b": (4, 4), "w": (4, 2)}, nodes, ["y", "z", "c"])
    assert set(texts(composed(graph).graph)) == {"c", "y", "z"}


def test_an_index_that_mixes_iterators_stays_out_of_reductions() -> None:
    graph = make_graph(
        {"x": (12,)},
        [
            ("s[i, j] = x[(i + j) // 2 + i]", {"i": 6, "j": 4}),
            ("y[i] = sum(j, s[i, j])", {"i": 6, "j": 4}),
        ],
        ["y"],
    )
    draft = composed(graph)
    assert draft.refused["s->y"].code == "not-affine"
    assert "s" in texts(draft.graph)


def test_repeated_heads_are_read_through_a_division() -> None:
    e = {"h": 6, "t": 4, "d": 3, "s": 5}
    graph = make_graph(
        {"q": (6, 5, 3), "k": (2, 4, 3)},
        [("r[h, t, d] = k[h // 3, t, d]", e), ("y[h, s, t] = sum(d, q[h, s, d] * r[h, t, d])", e)],
        ["y"],
    )
    assert texts(composed(graph).graph)["y"] == "y[h, s, t] = sum(d, q[h, s, d] * k[h // 3, t, d])"


def test_a_movement_that_is_an_output_stays_and_is_read_through() -> None:
    graph = make_graph(
        {"x": (3, 4)},
        [("t[j, i] = x[i, j]", {"i": 3, "j": 4}), ("y[j, i] = t[j, i] + 1.0", {"i": 3, "j": 4})],
        ["t", "y"],
    )
    assert texts(composed(graph).graph)["y"] == "y[j, i] = x[i, j] + 1.0"


def test_no_choice_is_made_by_data() -> None:
    e = {"i": 4, "j": 5, "k": 8}
    graph = make_graph(
        {"a": (3, 5), "b": (5, 5), "index": (4,)},
        [("c[k, j] = where(k < 3, a[k, j], b[k - 3, j])", e), ("y[i, j] = c[index[i], j] * 2.0", e)],
        ["y"],
        ttypes={"index": "i64"},
    )
    assert compose(RewrittenGraph(graph)).refused["c->y"].code == "choice"


MOVES = {
    "transpose": "{y}[i, j, k] = {x}[k, i, j]",
    "reshape": "{y}[i, j, k] = {x}[(i*12 + j*3 + k) // 12, (i*12 + j*3 + k) // 3 % 4, (i*12 + j*3 + k) % 3]",
    "flip": "{y}[i, j, k] = {x}[i, 3 - j, k]",
    "pad": "{y}[i, j, k] = where(j >= 1, {x}[i, j - 1, k], 0.0)",
    "slice": "{y}[i, j, k] = {x}[i, j // 2, k]",
    "join": "{y}[i, j, k] = where(j < 2, {x}[i, j, k], x[i, j - 2, k])",
}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(sorted(MOVES)), min_size=1, max_size=4), st.booleans())
def test_chains_of_movements_keep_their_meaning(chain: list[str], reduce: bool) -> None:
    nodes, name = [], "x"
    for number, kind in enumerate(chain):
        shape = {"i": 2, "j": 4, "k": 3}
        if kind == "transpose":
            kind = "flip"
        nodes.append((MOVES[kind].format(x=name, y=f"t{number}"), shape))
        name = f"t{number}"
    nodes.append(("y[i, k] = sum(j, {0}[i, j, k] * w[j])" if reduce else "y[i, j, k] = {0}[i, j, k] + w[j]", {}))
    text, _ = nodes.pop()
    nodes.append((text.format(name), {"i": 2, "j": 4, "k": 3}))
    composed(make_graph({"x": (2, 4, 3), "w": (4,)}, nodes, ["y"]))
