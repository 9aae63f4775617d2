"""What is known of a group is computed once: for other register tiles, not for other sizes."""

from dataclasses import replace

import numpy as np
import pytest
from scheduler.graphs import make_graph
from scheduler.running import device
from scheduler.tiling_problems import tiling_problem

from tilec.ir.intervals import Candidates
from tilec.scheduler.graph_passes.fuse_registers import fuse_registers
from tilec.scheduler.target_model import target_model_of
from tilec.scheduler.tiling.cost_model import estimate
from tilec.scheduler.tiling.register_tiles import register_tile
from tilec.scheduler.tiling.tile_candidates import candidates
from tilec.scheduler.tiling.tile_footprints import tile_footprints
from tilec.scheduler.tiling.tiling_problem import FEW_CANDIDATES, TilingProblem

ZEN5 = target_model_of(device("zen5-avx512"))


@pytest.fixture
def problem() -> TilingProblem:
    """A sum of rows, and the rows over it."""
    e = {"m": 48, "n": 96}
    graph = make_graph({"x": (48, 96)}, [("s[m] = sum(n, x[m, n])", e), ("y[m, n] = x[m, n] / s[m]", e)], ["y", "s"])
    parts = fuse_registers(graph).parts
    tiles = [register_tile(part, graph, frozenset(), ZEN5, Candidates()) for part in parts]
    return tiling_problem(parts, tiles, graph, ZEN5, Candidates(), ("s", "y"))


def test_windows_of_candidates_are_computed_once(problem: TilingProblem) -> None:
    sizes = candidates(problem)
    found = problem.footprints(sizes, {})
    assert problem.footprints({i: n.copy() for i, n in sizes.items()}, {}) is found
    plain = tile_footprints(problem.group.nodes, sizes, {}, problem.group.shapes, problem.numbers)
    for tensor, elements in plain.elements.items():
        np.testing.assert_array_equal(found.elements[tensor], elements)
    assert problem.footprints({i: n + 1 for i, n in sizes.items()}, {}) is not found
    assert problem.footprints(sizes, {"s": np.asarray(1)}) is not found


def test_other_register_tiles_share_windows_and_no_estimates(problem: TilingProblem) -> None:
    sizes = candidates(problem)
    here = estimate(problem, sizes, {})
    assert estimate(problem, sizes, {}) is here
    slower = [replace(tile, cycles=100 * tile.cycles) for tile in problem.tiles]
    other = problem.with_tiles(slower)
    assert other.footprints(sizes, {}) is problem.footprints(sizes, {})
    assert np.all(estimate(other, sizes, {}).seconds > here.seconds)
    assert other.group is problem.group


def test_other_sizes_share_none(problem: TilingProblem) -> None:
    sizes = candidates(problem)
    found, here = problem.footprints(sizes, {}), estimate(problem, sizes, {})
    other = problem.at(Candidates())
    assert other.storage is problem.storage
    assert other.footprints(sizes, {}) is not found
    assert estimate(other, sizes, {}) is not here


def test_windows_of_many_candidates_are_not_kept(problem: TilingProblem) -> None:
    many = {"m": np.ones((FEW_CANDIDATES + 1, 1), np.int64), "n": np.ones((1, 1), np.int64)}
    assert problem.footprints(many, {}) is not problem.footprints(many, {})
