from __future__ import annotations

from bounds.graphs import attention, graph, mlp
from tilec.bounds.graph.compulsory import compulsory

F32 = 4


def test_inputs_and_outputs_count_once_and_nothing_between() -> None:
    assert compulsory(mlp(32, 16, 64, 8)) == F32 * (32 * 16 + 16 * 64 + 64 + 64 * 8 + 32 * 8)


def test_what_several_nodes_read_enters_once() -> None:
    nodes = [("y[i] = x[i] * 2.0", {"i": 8}), ("z[i] = x[i + 2]", {"i": 6}), ("u[i] = x[i] + y[i]", {"i": 4})]
    assert compulsory(graph({"x": (8,)}, nodes, ["y", "z", "u"])) == F32 * (8 + 8 + 6 + 4)


def test_reshapes_that_are_not_affine_still_need_everything() -> None:
    size = 2 * 8 * 12
    assert compulsory(attention(2, 3, 8, 4)) == F32 * (4 * size + 2 * 12 * 12)


def test_what_is_cut_away_counts_no_more() -> None:
    nodes = [("z[i] = x[i] * 2.0", {"i": 8}), ("y[i] = z[i + 4]", {"i": 4})]
    # Of z only a half is needed, hence of x.
    assert compulsory(graph({"x": (8,)}, nodes, ["y"])) == F32 * 8
    assert compulsory(graph({"x": (8,)}, nodes[:1], ["z"])) == F32 * 16
    assert compulsory(graph({"x": (8,)}, [("y[i] = x[i*2]", {"i": 4})], ["y"])) == F32 * 8


def test_elements_that_data_choose_are_not_sure() -> None:
    nodes = [("y[i, j] = table[index[i], j]", {"i": 3, "j": 5})]
    found = graph({"table": (100, 5), "index": (3,)}, nodes, ["y"], {"index": "i64"})
    assert compulsory(found) == F32 * 15 + 8 * 3
    where = [("y[i] = where(c[i // 2] > 0, a[i // 2], b[i // 2])", {"i": 6})]
    assert compulsory(graph({"a": (3,), "b": (3,), "c": (3,)}, where, ["y"])) == F32 * (6 + 3)


def test_one_row_of_a_product_needs_all_of_the_other_operand() -> None:
    sizes = {"m": 6, "n": 4, "k": 5}
    nodes = [("c[m, n] = sum(k, a[m, k] * b[k, n])", sizes), ("y[n] = c[2, n]", {"n": 4})]
    assert compulsory(graph({"a": (6, 5), "b": (5, 4)}, nodes, ["y"])) == F32 * (5 + 20 + 4)


def test_padding_is_not_read() -> None:
    # A row of zeros on top: of x everything but the last row is needed, of z all of it.
    nodes = [("z[i, j] = where(i >= 1, x[i - 1, j], 0.0)", {"i": 4, "j": 3}), ("y[i, j] = z[i, j]", {"i": 3, "j": 3})]
    assert compulsory(graph({"x": (4, 3)}, nodes, ["y"])) == F32 * (2 * 3 + 9)
    window = [("y[h] = sum(r, where(h*2 + r - 1 >= 0 and h*2 + r - 1 < 7, x[h*2 + r - 1], 0.0) * w[r])",
               {"h": 4, "r": 3})]  # fmt: skip
    assert compulsory(graph({"x": (7,), "w": (3,)}, window, ["y"])) == F32 * (7 + 3 + 4)


def test_what_is_no_box_is_counted_where_it_enters_and_not_followed() -> None:
    apart = [("z[i] = x[i] * 2.0", {"i": 9}), ("y[i, j] = z[i*4 + j*2]", {"i": 2, "j": 2})]
    assert compulsory(graph({"z": (9,)}, apart[1:], ["y"])) == F32 * 8
    assert compulsory(graph({"x": (9,)}, apart, ["y"])) == F32 * 4


def test_an_input_that_is_an_output_stays_where_it_is() -> None:
    assert compulsory(graph({"x": (4,)}, [("y[i] = x[i] + 1.0", {"i": 4})], ["x", "y"])) == F32 * 8


def test_nothing_is_read_for_no_results() -> None:
    assert compulsory(graph({"x": (0,), "b": (3,)}, [("y[i, j] = x[i] + b[j // 2]", {"i": 0, "j": 3})], ["y"])) == 0


def test_elements_far_apart_and_side_by_side_count_once_each() -> None:
    nodes = [("y[i] = sum(r, x[i * 1000003 + r % 2])", {"i": 8, "r": 5}),
             ("z[i] = sum(r, y[i + r] * y[i * 2])", {"i": 3, "r": 4})]  # fmt: skip
    found = graph({"x": (9_000_000,)}, nodes, ["z"])
    assert compulsory(found) == 4 * (3 + 2 * 6)
    assert compulsory(graph({"x": (9_000_000,)}, nodes[:1], ["y"])) == 4 * (8 + 16)
