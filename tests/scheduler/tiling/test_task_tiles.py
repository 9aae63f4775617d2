"""Register and core tiles: what the models of a core prefer, and what they never choose."""

from dataclasses import replace
from itertools import product as combinations
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler.graphs import make_graph
from scheduler.running import device, problem_of, tiny
from scheduler.tiling_problems import tiling_problem

from tilec.ir.expr import Const, accesses
from tilec.ir.graph import Graph
from tilec.ir.intervals import Candidates
from tilec.ir.vector_pieces import vector_count
from tilec.scheduler.analysis.vector_iterator import vector_of
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.graph_passes.fuse_registers import fuse_registers
from tilec.scheduler.graph_passes.rewrite import constant_tensors
from tilec.scheduler.schedule import schedule
from tilec.scheduler.target_model import TargetModel, target_model_of
from tilec.scheduler.tiling.cost_model import estimate, lower_bounds
from tilec.scheduler.tiling.register_blocking import register_blocking
from tilec.scheduler.tiling.register_tiles import RegisterTile, register_tile
from tilec.scheduler.tiling.task_tiles import task_tile, task_tiles
from tilec.scheduler.tiling.tile_candidates import MAX_CANDIDATES, candidates
from tilec.scheduler.tiling.tile_footprints import leaves, tile_footprints
from tilec.scheduler.tiling.tiling_problem import TilingProblem
from tilec.spec.machine_costs import GpuCosts

ZEN5 = target_model_of(device("zen5-avx512"))
AVX2 = target_model_of(device("avx2"))
SMALL = target_model_of(tiny())
NUMBERS = Candidates()


def product(m: int, n: int, k: int) -> Graph:
    """A product whose weight is an input, for its values do not matter."""
    return make_graph(
        {"a": (m, k), "w": (k, n)}, [("y[m, n] = sum(k, a[m, k] * w[k, n])", {"m": m, "n": n, "k": k})], ["y"]
    )


def tile_of(graph: Graph, target: TargetModel = ZEN5, constants: frozenset[str] = frozenset({"w"})) -> RegisterTile:
    return register_tile(graph.nodes, graph, constants, target, NUMBERS)


def core_of(graph: Graph, target: TargetModel, **options: object) -> dict[str, int]:
    parts = fuse_registers(graph).parts
    constants = constant_tensors(graph) | {"w"}
    tiles = [register_tile(part, graph, constants, target, NUMBERS) for part in parts]
    outputs = (graph.outputs[0].tensor,)
    problem = tiling_problem(parts, tiles, graph, target, NUMBERS, outputs, constants=constants, **options)  # type: ignore[arg-type]
    return dict(task_tile(problem).sizes)


def accumulators(sizes: dict[str, int], vector: str, lanes: int, extents: dict[str, int]) -> int:
    whole = {i: sizes.get(i, n) for i, n in extents.items()}
    return prod(vector_count(n, lanes) if i == vector else n for i, n in whole.items())


@pytest.mark.feature("W24")
@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(1, 200), st.integers(1, 300), st.integers(1, 60), st.sampled_from([ZEN5, AVX2, SMALL]))
def test_accumulators_fit_the_registers(m: int, n: int, k: int, target: TargetModel) -> None:
    graph = product(m, n, k)
    tile = tile_of(graph, target)
    lanes = target.lanes(4)
    extents = {"m": m, "n": n}
    held = accumulators(dict(tile.sizes), tile.along, lanes, extents)
    assert held <= target.accumulators
    width = tile.sizes.get(tile.along, extents.get(tile.along, 1))
    assert held + vector_count(width, lanes) + 1 <= target.registers or held == 1
    if n > 1:
        assert tile.along == "n"


@pytest.mark.feature("W19")
@pytest.mark.parametrize(("m", "n", "k"), [(128, 768, 768), (50, 384, 384), (196, 256, 1024), (49, 512, 4608)])
def test_large_products_get_tiles_without_waste(m: int, n: int, k: int) -> None:
    sizes = tile_of(product(m, n, k)).sizes
    rows, width = sizes["m"], sizes["n"]
    assert n % width == 0
    assert width % 16 == 0
    assert -(-m // rows) * rows <= m * 1.05
    assert rows * width // 16 >= 8, "as many chains as additions take cycles, twice"


def test_two_vectors_of_few_rows_are_better_than_one_of_many() -> None:
    """Seven rows of one vector load more than they multiply; four of two, of which one is computed twice, do not."""
    e = {"h": 7, "w": 7, "o": 512, "c": 2048}
    nodes = [("y[h, w, o] = sum(c, x[h, w, c] * k[c, o])", e)]
    tile = tile_of(make_graph({"x": (7, 7, 2048), "k": (2048, 512)}, nodes, ["y"]), AVX2, frozenset({"k"}))
    assert tile.sizes == {"h": 1, "w": 4, "o": 16}


def test_rows_that_share_a_cache_set_are_few() -> None:
    assert tile_of(product(112, 64, 4096)).sizes["m"] <= 12


@pytest.mark.parametrize(("channels", "most"), [(512, 24), (1024, 12), (528, 30)])
def test_rows_of_vectors_that_a_window_slides_along_are_few_in_one_set(channels: int, most: int) -> None:
    """48 KiB in 64 sets are 12 lines a set; rows of 2 KiB fall into two sets, of 4 KiB into one, of 2112 bytes into
    all."""
    e = {"w": 480, "c": channels, "s": 31}
    nodes = [("y[w, c] = sum(s, x[w + s, c] * k[s, c])", e)]
    tile = tile_of(make_graph({"x": (510, channels), "k": (31, channels)}, nodes, ["y"]), constants=frozenset({"k"}))
    assert most // 2 < tile.sizes["w"] <= most


def test_vectors_are_covered_by_powers_of_two() -> None:
    assert [vector_count(n, 16) for n in (16, 24, 58, 7, 0)] == [1, 2, 5, 3, 0]


def test_elementwise_tiles_are_a_few_vectors() -> None:
    graph = make_graph({"x": (9, 768)}, [("y[i, j] = exp(x[i, j])", {"i": 9, "j": 768})], ["y"])
    assert tile_of(graph).sizes == {"i": 1, "j": 64}
    short = make_graph({"x": (64, 24)}, [("y[i, j] = exp(x[i, j])", {"i": 64, "j": 24})], ["y"])
    assert tile_of(short).sizes == {"i": 2}
    scalar = make_graph({"x": ()}, [("y[()] = exp(x[()])", {})], ["y"])
    assert tile_of(scalar).sizes == {}


def test_devices_without_vectors_keep_all_tiles_of_a_part_in_registers() -> None:
    target = target_model_of(tiny("explicit", 64))
    e = {"m": 40, "n": 40, "k": 8}
    nodes = [
        ("p[m, n] = sum(k, a[m, k] * w[k, n])", e),
        ("q[m, n] = p[m, n] + 1.0", e),
        ("y[m, n] = q[m, n] * p[m, n]", e),
    ]
    graph = make_graph({"a": (40, 8), "w": (8, 40)}, nodes, ["y"])
    tile = register_tile(graph.nodes, graph, frozenset(), target, NUMBERS)
    assert prod(tile.sizes.values()) * 4 * 3 <= (target.levels[-1].capacity or 0)


def test_the_tile_of_a_part_is_named_by_its_last_node() -> None:
    e = {"m": 64, "n": 64, "k": 8, "i": 64, "j": 64}
    nodes = [("p[m, n] = sum(k, a[m, k] * w[k, n])", e), ("y[j, i] = p[j, i] + 1.0", e)]
    graph = make_graph({"a": (64, 8), "w": (8, 64)}, nodes, ["y"])
    tile = register_tile(graph.nodes, graph, frozenset({"w"}), ZEN5, NUMBERS)
    assert set(tile.sizes) <= {"i", "j"}
    assert tile.along == "i"


@pytest.mark.feature("W08")
def test_windows_are_the_hulls_of_what_a_tile_reads() -> None:
    e = {"h": 8, "w": 8, "r": 3, "s": 3}
    text = "y[h, w] = sum(r, s, where(h + r >= 1 and w + s >= 1, x[h + r - 1, w + s - 1], 0.0))"
    graph = make_graph({"x": (10, 10)}, [(text, e), ("z[h, w] = y[h, w] + b[w]", e)], ["z"], {"b": (8,)})
    shapes = {name: t.shape for name, t in graph.tensors.items()}
    sizes = {"h": np.array([1, 2, 8]), "w": np.array([4, 4, 8])}
    found = tile_footprints(graph.nodes, sizes, {}, shapes, NUMBERS).elements
    assert found["x"].tolist() == [3 * 6, 4 * 6, 10 * 10]
    assert found["b"].tolist() == [4, 4, 8]
    assert found["z"].tolist() == [4, 8, 64]
    expr = graph.nodes[0].expr
    assert leaves(accesses(expr)[0], expr, graph.tensors["x"].shape, NUMBERS)


def test_tables_that_data_index_count_what_is_read() -> None:
    e = {"i": 4, "d": 6}
    graph = make_graph({"t": (1000, 6), "x": (4,)}, [("y[i, d] = t[x[i], d] + 1.0", e)], ["y"], ttypes={"x": "i64"})
    shapes = {name: t.shape for name, t in graph.tensors.items()}
    assert tile_footprints(graph.nodes, {}, {}, shapes, NUMBERS).elements["t"] == 24


@pytest.mark.feature("W17", "W24")
@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 300))
def test_core_tiles_fit_and_align(m: int, n: int, k: int) -> None:
    graph = product(m, n, k)
    target = replace(SMALL, levels=(SMALL.levels[0], replace(SMALL.levels[1], managed="explicit"), SMALL.levels[2]))
    parts = fuse_registers(graph).parts
    tiles = [register_tile(parts[0], graph, frozenset(), target, NUMBERS)]
    found = task_tile(tiling_problem(parts, tiles, graph, target, NUMBERS, ("y",)))
    sizes, step = {"m": m, "n": n} | dict(found.sizes), found.steps.get("y", {}).get("k", k)
    held = 4 * (sizes["m"] * step + step * sizes["n"] + sizes["m"] * sizes["n"])
    assert held <= target.capacity
    assert k % step == 0
    assert all(size < {"m": m, "n": n}[i] for i, size in found.sizes.items())


@pytest.mark.feature("W09")
def test_reduce_steps_are_taken_where_nothing_else_fits() -> None:
    graph = product(16, 16, 4096)
    parts = fuse_registers(graph).parts
    tiles = [register_tile(parts[0], graph, frozenset(), SMALL, NUMBERS)]
    steps = task_tile(tiling_problem(parts, tiles, graph, SMALL, NUMBERS, ("y",))).steps
    assert 0 < steps["y"]["k"] < 64
    assert 4096 % steps["y"]["k"] == 0


@pytest.mark.feature("W23")
def test_large_work_is_cut_for_all_cores_and_small_work_is_not() -> None:
    large = core_of(product(512, 512, 512), ZEN5)
    tasks = prod(-(-512 // size) for size in large.values())
    assert tasks >= 2 * ZEN5.cores
    assert core_of(product(4, 16, 3), ZEN5) == {}


def test_objectives_move_less_or_hold_less() -> None:
    graph = product(256, 256, 64)

    def bytes_and_moved(objective: str) -> tuple[int, int]:
        sizes = {"m": 256, "n": 256} | core_of(graph, ZEN5, objective=objective)
        held = sizes["m"] * 64 + 64 * sizes["n"] + sizes["m"] * sizes["n"]
        tasks = -(-256 // sizes["m"]) * -(-256 // sizes["n"])
        return held, tasks * held

    assert bytes_and_moved("traffic")[1] <= bytes_and_moved("time")[1]
    assert bytes_and_moved("footprint")[0] <= bytes_and_moved("time")[0]


def staged(graph: Graph) -> frozenset[str]:
    atoms = FusionProblem(graph, fuse_registers(graph).parts, ZEN5, NUMBERS, "time", frozenset({"y"}))
    return atoms.tiling_problem((0,), ("y",), atoms.tiles(0)).storage.staged


def test_halos_are_staged() -> None:
    e = {"h": 8, "r": 3}
    text = "y[h] = sum(r, where(h + r >= 1 and h + r < 9, x[h + r - 1], 0.0))"
    assert staged(make_graph({"x": (8,)}, [(text, e)], ["y"])) == {"x"}
    assert staged(make_graph({"x": (10,)}, [("y[h] = sum(r, x[h + r])", e)], ["y"])) == frozenset()


def test_rows_of_a_halo_have_one_guard_where_reductions_leave_it_across_them() -> None:
    def ragged(text: str) -> frozenset[str]:
        graph = make_graph({"x": (8, 8)}, [(text, {"h": 8, "w": 8, "r": 3})], ["y"])
        atoms = FusionProblem(graph, fuse_registers(graph).parts, ZEN5, NUMBERS, "time", frozenset({"y"}))
        problem = atoms.tiling_problem((0,), ("y",), atoms.tiles(0))
        assert problem.group.halos == {"x"}
        return problem.ragged

    assert ragged("y[h, w] = sum(r, where(h + r >= 1 and h + r < 9, x[h + r - 1, w], 0.0))") == frozenset()
    assert ragged("y[h, w] = sum(r, where(w + r >= 1 and w + r < 9, x[h, w + r - 1], 0.0))") == {"x"}


@pytest.mark.feature("W19")
def test_candidates_are_multiples_of_the_register_tile_or_smaller() -> None:
    graph = product(130, 256, 64)
    tile = tile_of(graph)
    problem = tiling_problem(fuse_registers(graph).parts, [tile], graph, ZEN5, NUMBERS)
    found = candidates(problem)
    assert all(n % tile.sizes["n"] == 0 for n in found["n"].flat), "weights are cut into panels along it"
    assert all(m % tile.sizes["m"] == 0 or m == 130 or m < tile.sizes["m"] for m in found["m"].flat)
    assert 1 in found["m"]


def steps_of(graph: Graph, target: TargetModel) -> set[str]:
    """Reductions of which some candidate takes steps."""
    problem = problem_of(graph, target)
    tiling = problem.tiling_problem((0,), ("y",), problem.usual((0,)))
    return {name for tile in task_tiles(tiling, 1000) for name in tile.steps}


@pytest.mark.feature("W25")
def test_only_candidates_that_may_spare_something_are_enumerated() -> None:
    """An extent of 1 is not tiled, sizes are thinned out where they are many, and what a cache reads in a single pass
    takes no reduce steps; a scratchpad has to hold it."""
    e = {"b": 1, "h": 4096, "w": 4096, "c": 4096, "k": 64}
    text = "y[b, h, w, c] = sum(k, x[b, h, w, k] * v[k, c])"
    wide = make_graph({"x": (1, 4096, 4096, 64), "v": (64, 4096)}, [(text, e)], ["y"])
    problem = problem_of(wide, AVX2)
    found = candidates(problem.tiling_problem((0,), ("y",), problem.usual((0,))))
    assert found.keys() == {"h", "w", "c"}
    assert prod(axis.size for axis in found.values()) <= MAX_CANDIDATES
    columns = make_graph({"x": (65536, 64)}, [("y[c] = sum(r, x[r, c])", {"c": 64, "r": 65536})], ["y"])
    assert steps_of(product(64, 64, 4096), AVX2) == steps_of(columns, target_model_of(device("a100"))) == {"y"}
    assert steps_of(columns, AVX2) == set()


def test_one_step_of_a_reduction_takes_at_least_its_loads() -> None:
    graph = product(64, 64, 64)
    expr = graph.nodes[0].expr
    shapes = {name: t.shape for name, t in graph.tensors.items()}
    vector = vector_of(expr, graph, frozenset(), ZEN5.costs)
    tile = register_blocking(expr, vector, 16, False, shapes, ZEN5, NUMBERS, {})
    loads = tile.sizes["m"] + tile.sizes["n"] // 16
    assert tile.cycles >= 64 * loads / 2
    assert tile.cycles >= 64 * tile.sizes["m"] * tile.sizes["n"] / 16 / 2


@pytest.mark.feature("W19", "W24")
def test_last_tiles_are_narrower_where_overlapping_ones_would_compute_much_twice() -> None:
    """Seven rows of two vectors in 16 registers: four and three take 7.1 cycles a step, four twice 8."""
    graph = product(7, 64, 64)
    expr = graph.nodes[0].expr
    shapes = {name: t.shape for name, t in graph.tensors.items()}
    vector = vector_of(expr, graph, frozenset(), ZEN5.costs)
    tile = register_blocking(expr, vector, 8, False, shapes, AVX2, NUMBERS, {})
    assert (tile.sizes, tile.clipped) == ({"m": 4, "n": 16}, True)
    even = register_blocking(expr, vector, 8, False, shapes, AVX2, NUMBERS, {"m": 4})
    assert not even.clipped
    plan = schedule(graph, device("avx2"))
    assert plan.groups[0].variants[0].tails == {"reg": {plan.groups[0].name: "clip"}}
    assert schedule(graph, device("a100")).groups[0].variants[0].tails == {}


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_an_empty_product_has_a_tile() -> None:
    """Sizes at which variants of kernels are considered leave nothing of some images."""
    graph = product(0, 24, 64)
    expr = graph.nodes[0].expr
    shapes = {name: t.shape for name, t in graph.tensors.items()}
    vector = vector_of(expr, graph, frozenset(), ZEN5.costs)
    assert register_blocking(expr, vector, 8, False, shapes, AVX2, NUMBERS, {}, {"m": 64}).cycles > 0


@pytest.mark.feature("W30")
def test_levels_are_chosen_by_mechanism() -> None:
    assert [level.name for level in ZEN5.levels] == ["dram", "l2", "reg"]
    assert (ZEN5.cores, ZEN5.core_level, ZEN5.top, ZEN5.threads) == (8, "l2", "reg", 1)
    assert AVX2.levels[1].units == 8, "the units of the levels in between multiply"
    gpu = target_model_of(device("a100"))
    assert [level.name for level in gpu.levels] == ["dram", "smem", "reg"]
    assert (gpu.threads, gpu.lanes(4)) == (64, 32)
    assert isinstance(gpu.costs, GpuCosts), "warps are no vectors of a CPU"
    ipu = target_model_of(device("ipu-mk2"))
    assert [level.name for level in ipu.levels] == ["streaming", "chip", "tile"], "explicit levels below a core's"
    assert ipu.core_level == ipu.top


def test_depthwise_halos_are_read_in_place_where_tiles_take_whole_rows() -> None:
    e = {"h": 56, "w": 56, "c": 32, "r": 3, "s": 3}
    inside = "h + r >= 1 and h + r < 57 and w + s >= 1 and w + s < 57"
    text = f"y[h, w, c] = sum(r, s, where({inside}, x[h + r - 1, w + s - 1, c], 0.0) * k[r, s, c])"
    graph = make_graph({"x": (56, 56, 32), "k": (3, 3, 32)}, [(text, e)], ["y"])
    plan = schedule(graph, device("zen5-avx512"))
    (variant,) = plan.groups[0].variants
    sizes = variant.tiles["l2"]["y"]
    assert set(sizes) == {"h"}
    assert variant.loads["x"] == ()
    explicit = schedule(graph, device("a100"))
    assert explicit.groups[0].variants[0].loads["x"] == ("smem",)


@pytest.mark.feature("W24")
def test_streamed_weights_are_cut_finely_where_one_core_cannot_draw_all_bandwidth() -> None:
    two = replace(ZEN5, cores=2, draw=0.5 * ZEN5.links[ZEN5.core])
    fine, coarse = (core_of(product(1, 2048, 5632), target) for target in (two, replace(two, draw=2 * two.draw)))
    assert fine["n"] * 8 <= 2048
    assert coarse.get("n", 2048) > fine["n"]


@pytest.mark.feature("W08", "W24")
@pytest.mark.parametrize(
    ("text", "extents", "streamed"),
    [
        ("y[c] = sum(r, x[r, c])", {"c": 64, "r": 65536}, {"x"}),
        ("y[c] = max(r, s, x[r, s, c])", {"c": 64, "r": 256, "s": 256}, {"x"}),
        ("y[h, c] = max(r, x[h + r, c])", {"h": 30, "c": 8, "r": 3}, set()),
        ("y[c] = sum(r, x[r, c] * x[r, c])", {"c": 64, "r": 65536}, {"x"}),
        ("y[c] = sum(r, x[r, c] * x[r, 0])", {"c": 8, "r": 8}, set()),
        ("y[m, n] = sum(k, x[m, k] * w[k, n])", {"m": 8, "n": 8, "k": 8}, set()),
        ("y[n] = sum(k, x[0, k] * w[k, n])", {"n": 8, "k": 8}, {"w"}),
        ("y[n] = sum(k, l, x[0, k] * w[n, 2 * k + l])", {"n": 8, "k": 4, "l": 2}, {"w"}),
        ("y[n] = sum(k, l, x[0, k] * w[n, k + l])", {"n": 8, "k": 4, "l": 2}, set()),
        ("y[n] = sum(k, l, x[0, k] * w[n, (k + l) // 2])", {"n": 8, "k": 4, "l": 2}, set()),
        ("y[c] = x[c] + 1.0", {"c": 8}, set()),
    ],
)
def test_a_cache_holds_nothing_of_what_one_reduction_reads_once(text, extents, streamed) -> None:
    shapes = {"x": (65536, 64), "w": (8, 8)}
    shapes |= {"x": (256, 256, 64)} if "s, c" in text else {"x": (8,)} if "x[c]" in text else {}
    graph = make_graph({t: n for t, n in shapes.items() if t in text}, [(text, extents)], ["y"])
    parts = fuse_registers(graph).parts
    for target in (ZEN5, target_model_of(device("a100"))):
        tiles = [register_tile(part, graph, frozenset(), target, NUMBERS) for part in parts]
        found = tiling_problem(parts, tiles, graph, target, NUMBERS, ("y",))
        assert found.storage.streamed == (streamed if target is ZEN5 else frozenset())
        assert {"x"} - found.storage.streamed - found.storage.unstaged <= found.storage.held.keys()
        assert found.storage.unstaged == ({"x", "y"} if target is not ZEN5 and "+ 1.0" in text else set())


@pytest.mark.feature("W19", "W24")
def test_long_columns_are_summed_by_whole_vectors() -> None:
    """65536 rows of a vector take four times the cache, but nothing of them is read again."""
    graph = make_graph({"x": (65536, 64)}, [("y[c] = sum(r, x[r, c])", {"c": 64, "r": 65536})], ["y"])
    assert core_of(graph, replace(ZEN5, cores=2)).get("c", 64) % 16 == 0


def test_vectors_that_are_shuffled_cost_more_and_begin_where_their_turns_do() -> None:
    def movement(index: str) -> RegisterTile:
        return tile_of(make_graph({"x": (8, 120)}, [(f"y[i, j] = x[i, {index}]", {"i": 8, "j": 116})], ["y"]))

    plain, turns, gathered = movement("j"), movement("j % 2 * 58 + j // 2"), movement("j * 7 % 113")
    assert plain.sizes["j"] == 64
    assert 116 % turns.sizes.get("j", 116) == 0
    assert 2 * plain.cycles <= turns.cycles < gathered.cycles


@pytest.mark.feature("W22", "W24")
def test_what_caches_do_not_keep_is_read_in_long_runs() -> None:
    """Tiles that are one vector wide and hold long columns have the smallest halos, but read a line here, a line there.

    Tiles follow each other along the rows.
    """
    e = {"h": 256, "w": 256, "c": 510, "r": 3, "s": 3}
    inside = "h + r >= 1 and h + r < 257 and w + s >= 1 and w + s < 257"
    text = f"y[h, w, c] = sum(r, s, where({inside}, x[h + r - 1, w + s - 1, c], 0.0) * k[r, s, c])"
    graph = make_graph({"x": (256, 256, 510)}, [(text, e)], ["y"], {"k": (3, 3, 510)})
    plan = schedule(graph, device("zen5-avx512"))
    (variant,) = plan.groups[0].variants
    assert variant.tiles["l2"]["y"].get("c", 510) >= 64
    assert variant.order["l2"]["y"][-1] == "c" or "c" not in variant.tiles["l2"]["y"]


@pytest.mark.feature("W21")
@pytest.mark.parametrize(("m", "n", "k"), [(2048, 2048, 2048), (128, 768, 3072)])
def test_what_a_task_passes_over_more_often_stays(m: int, n: int, k: int) -> None:
    """Of packed weights no lines are kept across tasks; streaming them would make the first of many passes wait."""
    text = "y[m, n] = sum(k, x[m, k] * w[k, n])"
    graph = make_graph({"x": (m, k)}, [(text, {"m": m, "n": n, "k": k})], ["y"], {"w": (k, n)})
    (group,) = schedule(graph, device("avx2")).groups
    (variant,) = group.variants
    tiles, register = variant.tiles["l2"]["y"], variant.tiles["reg"]["y"]
    passes = {"w": tiles["m"] / register["m"], "x": tiles["n"] / register["n"]}
    assert passes["w"] > passes["x"]
    assert variant.order["l2"]["y"] == ("n", "m")


@pytest.mark.feature("W17", "W20", "W25")
@pytest.mark.parametrize("objective", ["time", "traffic", "footprint"])
def test_the_best_candidates_are_those_of_all_that_are_looked_at(objective: str) -> None:
    """Each looked at by itself: sizes are (r, c), a whole extent is no size."""
    graph = make_graph({"a": (96, 160)}, [("y[r, c] = exp(a[r, c])", {"r": 96, "c": 160})], ["y"])
    parts = fuse_registers(graph).parts
    tiles = [register_tile(parts[0], graph, frozenset(), AVX2, NUMBERS)]
    problem = tiling_problem(parts, tiles, graph, AVX2, NUMBERS, ("y",), objective=objective)  # type: ignore[arg-type]
    grid = [np.ravel(axis).tolist() for axis in candidates(problem).values()]
    worth = {}
    for sizes in combinations(*grid):
        found = estimate(problem, {i: np.asarray(n) for i, n in zip("rc", sizes, strict=True)}, {})
        if found.held[0] <= AVX2.capacity:
            worth[sizes] = found.objective[0]
    offered = task_tiles(problem, 8)
    chosen = [tuple({"r": 96, "c": 160, **tile.sizes}.values()) for tile in offered]
    assert len(set(chosen)) == len(offered) == 8
    assert [tile.objective for tile in offered] == pytest.approx(sorted(worth.values())[:8])
    assert [worth[sizes] for sizes in chosen] == pytest.approx([tile.objective for tile in offered])
    assert task_tiles(problem, 3) == offered[:3]


A100 = target_model_of(device("a100"))

WITH_STEPS = {
    "product": product(512, 384, 768),
    "runs": make_graph({"a": (64, 768)}, [("y[m, j] = sum(k, a[m, j * 24 + k])", {"m": 64, "j": 32, "k": 24})], ["y"]),
    "interleaved": make_graph(
        {"a": (64, 768)}, [("y[m, j] = sum(k, a[m, k * 32 + j])", {"m": 64, "j": 32, "k": 24})], ["y"]
    ),
}


def stepped_problem(name: str) -> TilingProblem:
    graph = WITH_STEPS[name]
    parts = fuse_registers(graph).parts
    tiles = [register_tile(parts[0], graph, frozenset(), A100, NUMBERS)]
    return tiling_problem(parts, tiles, graph, A100, NUMBERS, ("y",))


@pytest.mark.feature("W09", "W17")
@pytest.mark.parametrize("name", WITH_STEPS)
def test_no_reduce_step_brings_a_tile_below_its_bound(name: str) -> None:
    """Unless windows of steps leave gaps, as those of interleaved elements do."""
    problem = stepped_problem(name)
    sizes = candidates(problem)
    bounds = lower_bounds(problem, sizes)
    k = problem.group.final.domain["k"]
    assert isinstance(k, Const)
    below = [
        bool(np.any(estimate(problem, sizes, {"y": {"k": np.asarray(step)}}).objective < bounds))
        for step in range(1, int(k.value))
        if k.value % step == 0
    ]
    assert any(below) == problem.group.leaves_gaps("y") == (name == "interleaved")


@pytest.mark.feature("W09", "W17")
@pytest.mark.parametrize("name", WITH_STEPS)
def test_fewer_tiles_are_the_first_of_more(name: str) -> None:
    """Steps that a bound rules out are none of the tiles that are asked for, nor are those that others rule out."""
    problem = stepped_problem(name)
    offered = task_tiles(problem, 40)
    assert any(tile.steps for tile in offered) or name != "product"
    for most in (1, 2, 6):
        assert task_tiles(problem, most) == offered[:most]
    assert task_tiles(problem, 1, offered[:1])[:1] == offered[:1]
