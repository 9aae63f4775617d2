"""Registers limit the tasks of a core, and what does not fit takes far longer."""

import numpy as np
import pytest
from scheduler.graphs import make_graph
from scheduler.running import device, problem_of
from scheduler.tiling.test_matrix_blocking import product as halves_product

from tilec.scheduler.target_model import target_model_of
from tilec.scheduler.tiling.cost_model import cost_terms
from tilec.scheduler.tiling.reduce_loops import ReduceLoops
from tilec.scheduler.tiling.register_use import task_registers
from tilec.scheduler.tiling.tile_footprints import tile_footprints


def product(name):
    e = {"m": 4096, "n": 4096, "k": 768}
    graph = make_graph({"x": (4096, 768), "w": (768, 4096)}, [("y[m, n] = sum(k, x[m, k] * w[k, n])", e)], ["y"])
    fusion = problem_of(graph, target_model_of(device(name)))
    return fusion.tiling_problem((0,), ("y",), fusion.usual((0,)))


def footprints(problem, sizes):
    return tile_footprints(problem.group.nodes, sizes, problem.group.spread({}), problem.group.shapes, problem.numbers)


@pytest.mark.feature("W23")
def test_units_of_a_part_have_their_sums_and_operands_in_registers():
    problem = product("a100")
    costs = problem.target.costs
    points = problem.tiles[0].sizes["m"] * problem.tiles[0].sizes["n"]
    warps = (64 // problem.tiles[0].sizes["m"]) * (256 // problem.tiles[0].sizes["n"])
    assert warps % 4 == 0, "as they share a core's four schedulers"
    sizes = {"m": np.asarray(64), "n": np.asarray(256)}
    assert task_registers(problem, footprints(problem, sizes), ReduceLoops(problem, {})).taken == warps * (
        points * 4 + costs.beside_sums * 128
    )
    assert costs.beside_points < costs.beside_sums


def test_a_task_that_needs_more_registers_than_a_core_has_spills():
    """Sixteen warps with 64 x 64 sums each, and four of them."""
    steps = {"c": {"k": np.asarray(32)}}
    for size, spills in ((256, True), (128, False)):
        sizes = {"m": np.asarray(size), "n": np.asarray(size)}
        few, many = (halves(name, sizes, steps) for name in ("a100", "a100[pools.registers=64MiB]"))
        assert (few.compute > 3 * many.compute) == spills


def test_units_around_a_reduce_loop_have_registers_for_parts_of_fewer_units():
    """Two products: the first in tiles of 16 x 16, the second, beside it, in tiles of 64 x 64."""
    e = {"m": 512, "n": 128, "k": 768}
    nodes = [
        ("c[m, k] = sum(r, x[m, r] * w[r, k])", {"m": 512, "k": 128, "r": 768}),
        ("y[m, n] = sum(k, c[m, k] * v[k, n])", {**e, "k": 128}),
    ]
    shapes = {"x": (512, 768), "w": (768, 128), "v": (128, 128)}
    graph = make_graph(shapes, nodes, ["y"], ttypes=dict.fromkeys(["x", "w", "v", "c"], "f16"))
    fusion = problem_of(graph, target_model_of(device("a100")))
    small, large = (
        next(t for t in fusion.tiles(part) if t.unit and set(t.sizes.values()) == {size})
        for part, size in ((0, 16), (1, 64))
    )
    problem = fusion.tiling_problem((0, 1), ("y",), [small, large])
    sizes = {"m": np.asarray(64), "n": np.asarray(128)}
    costs = problem.target.costs
    for steps, units in (({}, 4), ({"c": {"r": np.asarray(32)}}, 32)):
        seen = tile_footprints(
            problem.group.nodes, sizes, problem.group.spread(steps), problem.group.shapes, problem.numbers
        )
        found = task_registers(problem, seen, ReduceLoops(problem, steps))
        assert found.least >= units * (64 * 64 * 4 + costs.beside_points * 128)
        assert (found.least > problem.target.register_bytes) == (units == 32)


def test_reduce_loops_have_no_more_units_around_them_than_compute_a_task():
    """At the barriers of the loop all meet; without it units take turns."""
    fusion = problem_of(halves_product(4096, 4096, 4096, after=False), target_model_of(device("a100")))
    tile = next(tile for tile in fusion.tiles(0) if set(tile.sizes.values()) == {64})
    problem, steps = fusion.tiling_problem((0,), ("c",), [tile]), {"c": {"k": np.asarray(32)}}
    some, more = ({"m": np.asarray(units * 64), "n": np.asarray(64)} for units in (32, 33))
    assert cost_terms(problem, more, steps).compute > 1000 * cost_terms(problem, some, steps).compute
    assert cost_terms(problem, more, {}).compute < 2 * cost_terms(problem, some, {}).compute


def halves(name, sizes, steps):
    fusion = problem_of(halves_product(4096, 4096, 4096, after=False), target_model_of(device(name)))
    tile = next(tile for tile in fusion.tiles(0) if tile.unit and set(tile.sizes.values()) == {64})
    return cost_terms(fusion.tiling_problem((0,), ("c",), [tile]), sizes, steps)
