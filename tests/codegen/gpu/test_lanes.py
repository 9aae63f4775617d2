"""Lane maps: one rule, and what tiles that read another lane's elements make of it."""

from tests.codegen.gpu.kernels import rows_program
from tilec.codegen.gpu.kernel_context import KernelContext
from tilec.codegen.gpu.kernel_ir import tiles as tiles_of
from tilec.codegen.gpu.lanes import Lanes, idle_lanes
from tilec.codegen.gpu.passes.assign_lanes import assign_lanes
from tilec.codegen.gpu.passes.lower_program import lower_program
from tilec.ir.known_ranges import KnownRanges


def maps(texts, n, lanes=32, **sizes):
    names = ["x", *(text.split("[")[0] for text in texts)]
    made = rows_program(texts, {"m": 2, "n": n, "r": n, **sizes}, dict.fromkeys(names, "f32"))
    found = assign_lanes(lower_program(made), KernelContext(made, lanes, KnownRanges()))
    return [tile.lanes for tile in tiles_of(found.body)], found.held


def test_lanes_lie_along_the_last_spatial_iterator_that_has_enough_points_else_the_last_reduce_iterator():
    tiles, buffers = maps(["y[m, n] = x[m, n] + 1.0", "s[m] = sum(r, y[m, r])"], 256)
    assert tiles == [(Lanes("n", 4, 32),), (Lanes("r", 4, 32),)]
    assert buffers == {"x_r": (Lanes(1, 4, 32),), "y_r": (Lanes(1, 4, 32),), "s_r": ()}


def test_a_part_of_a_vector_is_shared_by_lanes_of_one_element():
    tiles, _ = maps(["y[m, n] = x[m, n] + 1.0"], 33)
    assert tiles == [(Lanes("n", 1, 32),)]


def test_where_no_iterator_is_wide_enough_lanes_lie_along_the_last_ones_together():
    texts = ["y[m, p, n] = x[m, p] + x[m, n]", "z[m, p, n] = y[m, p, n] * 2.0"]
    tiles, buffers = maps(texts, 6, p=5)
    assert tiles == [(Lanes("n", 1, 8), Lanes("p", 1, 4, 8))] * 2
    assert buffers["y_r"] == (Lanes(2, 1, 8), Lanes(1, 1, 4, 8))
    assert buffers["x_r"] == (), "one row is read along either"
    assert idle_lanes(buffers["y_r"], 32) == 0
    assert idle_lanes((Lanes(0, 1, 4),), 32) == 28


def test_a_thread_has_all_of_its_tile():
    tiles, buffers = maps(["y[m, n] = x[m, n] + 1.0", "s[m] = sum(r, y[m, r])"], 256, lanes=1)
    assert not any(tiles)
    assert not any(buffers.values())


def test_what_lanes_read_from_others_each_by_itself_all_lanes_compute():
    texts = ["y[m, n] = x[m, n] + 1.0", "z[m, n] = y[m, 255 - n]"]
    tiles, buffers = maps(texts, 256)
    assert tiles == [(), (Lanes("n", 4, 32),)]
    assert buffers["y_r"] == ()
    tiles, buffers = maps([texts[0], "z[m, n] = x[m, n] - y[m, 7]"], 256)
    assert tiles == [(Lanes("n", 4, 32),), (Lanes("n", 4, 32),)]


def test_lanes_follow_a_buffer_that_they_could_not_read_otherwise():
    texts = ["y[m, p, n] = x[m, p] + x[m, n]", "z[m, n, p] = y[m, p, n] * 2.0"]
    tiles, buffers = maps(texts, 32, p=32)
    assert tiles == [(Lanes("n", 1, 32),)] * 2
    assert buffers["y_r"] == (Lanes(2, 1, 32),)
