"""Bytes drawn past a shared cache: as the cache model counts them on the program, and without cliffs."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scheduler.graphs import make_graph
from scheduler.running import device, problem_of

from tilec.ir.expr import Const
from tilec.ir.graph import Graph
from tilec.scheduler.schedule import recounted_plan, schedule
from tilec.scheduler.target_model import target_model_of
from tilec.scheduler.tiling.cache_reuse import TaskWalk
from tilec.scheduler.tiling.cost_model import cost_terms, drawn_from_below
from tilec.scheduler.tiling.tiling_problem import TilingProblem

MIB = 1 << 20


def product(rows: int, columns: int, depth: int) -> Graph:
    e = {"m": rows, "n": columns, "k": depth}
    text = "C[m, n] = sum(k, A[m, k] * B[k, n])"
    return make_graph({"A": (rows, depth), "B": (depth, columns)}, [(text, e)], ["C"])


@pytest.mark.feature("W22", "W23")
def test_the_search_sees_what_the_program_draws() -> None:
    """A 4096^3 product on a GPU whose cache holds neither operand: bytes by the search's model beside those counted on
    the program, for rasters of every width; the raster that the plan has draws least."""
    spec = device("a100[levels.l2.capacity=24MiB]")
    graph, target = product(4096, 4096, 4096), target_model_of(spec)
    plan = schedule(graph, spec)
    (group,) = plan.groups
    (variant,) = group.variants
    fusion = problem_of(graph, target)
    problem = fusion.tiling_problem((0,), ("C",), fusion.usual((0,)))
    sizes = {i: np.asarray(n) for i, n in variant.tiles["smem"]["C"].items()}
    steps = {"C": {i: np.asarray(n) for i, n in variant.steps["smem"]["C"].items()}}
    counted: dict[int, int] = {}
    chosen = variant.raster["smem"]["C"]
    for stripe in {1, 4, 8, 16, chosen}:
        walked = replace(variant, raster={"smem": {"C": stripe}})
        cost = recounted_plan(replace(plan, groups=(replace(group, variants=(walked,)),)), spec).groups[0].cost
        read, written = cost.read["l2"], cost.written["l2"]
        assert isinstance(read, Const)
        assert isinstance(written, Const)
        counted[stripe] = int(read.value) + int(written.value)
        seen = drawn_from_below(problem, sizes, steps, TaskWalk(variant.order["smem"]["C"], stripe))
        assert float(np.max(seen)) == pytest.approx(counted[stripe], rel=0.15 if stripe <= 16 else 0.2), stripe
    assert counted[chosen] == min(counted.values()) < 0.7 * counted[1]


@pytest.mark.feature("W22")
@pytest.mark.parametrize("name", ["a100", "zen5-avx512"])
def test_costs_of_caches_have_no_cliffs(name: str) -> None:
    """An elementwise network over ever larger tensors: bytes from memory grow with them, never by a jump."""
    target = target_model_of(device(name))
    drawn: list[float] = []
    sizes = range(1, 129)
    for mib in sizes:
        e = {"m": mib * 256, "n": 1024}
        graph = make_graph({"x": (mib * 256, 1024)}, [("y[m, n] = x[m, n] + 1", e)], ["y"])
        fusion = problem_of(graph, target)
        problem = fusion.tiling_problem((0,), ("y",), fusion.usual((0,)))
        drawn.append(float(np.max(cost_terms(problem, {"m": np.asarray(16), "n": np.asarray(1024)}, {}).drawn)))
    rate = [seconds / (2 * mib * MIB) for seconds, mib in zip(drawn, sizes, strict=True)]
    assert rate[0] == 0, "a small tensor stays in the cache between its producer and its reader"
    assert rate[-1] == pytest.approx(rate[-2])
    steps = [after - before for before, after in itertools.pairwise(rate)]
    assert min(steps) > -1e-3 * rate[-1]
    assert max(steps) < 0.2 * rate[-1]


@pytest.mark.feature("W22")
def test_constants_are_never_free() -> None:
    """Weights that no kernel computed come from memory once, however small they are; activations need not."""
    graph, target = product(128, 512, 512), target_model_of(device("a100"))
    fusion = problem_of(graph, target)
    whole = fusion.tiling_problem((0,), ("C",), fusion.usual((0,)))
    weights = replace(whole.storage, group=replace(whole.group, constants=frozenset("B")))

    def drawn(problem: TilingProblem) -> float:
        return float(np.max(drawn_from_below(problem, {"m": np.asarray(64), "n": np.asarray(64)}, {})))

    assert drawn(whole) == 0
    assert drawn(replace(whole, storage=weights)) == 512 * 512 * 4


def test_an_operand_that_no_loop_moves_counts_in_walks_with_different_rasters() -> None:
    graph = make_graph({"x": (8192, 4096), "s": (1,)}, [("y[m, n] = x[m, n] * s[0]", {"m": 8192, "n": 4096})], ["y"])
    target = target_model_of(device("a100[levels.l2.capacity=1MiB]"))
    fusion = problem_of(graph, target)
    problem = fusion.tiling_problem((0,), ("y",), fusion.usual((0,)))
    rows, columns = np.asarray([[[2048]], [[1024]], [[512]]]), np.asarray([[[64], [128], [256]]])
    both = cost_terms(problem, {"m": rows, "n": columns}, {}, None)
    one = cost_terms(problem, {"m": rows[:1], "n": columns[:, :1]}, {}, None)
    assert both is not None
    assert one is not None
