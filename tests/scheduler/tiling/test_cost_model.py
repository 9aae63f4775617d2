"""score: predictions of poor candidates stay predictions."""

from dataclasses import replace

import numpy as np
import pytest
from scheduler.graphs import make_graph
from scheduler.running import device, problem_of

from tilec.ir.intervals import Candidates
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.graph_passes.fuse_registers import fuse_registers
from tilec.scheduler.target_model import target_model_of
from tilec.scheduler.tiling.cost_model import CostTerms, cost_terms, estimate
from tilec.scheduler.tiling.task_tiles import task_tile
from tilec.scheduler.tiling.tiling_problem import TilingProblem


@pytest.mark.feature("W07")
def test_bytes_of_poor_candidates_do_not_overflow() -> None:
    """Every element of three large products by itself, in steps of one: each is computed again for the next one."""
    size = 1 << 16
    e = dict.fromkeys("mnk", size)
    texts = [(f"{c}[m, n] = sum(k, {a}[m, k] * W[k, n])", e) for a, c in ("XA", "AB", "BC")]
    graph = make_graph({"X": (size, size), "W": (size, size)}, texts, ["C"])
    fusion = FusionProblem(
        graph, fuse_registers(graph).parts, target_model_of(device("a100")), Candidates(), "time", frozenset("C")
    )
    members = tuple(range(len(fusion.parts)))
    problem = fusion.tiling_problem(members, fusion.leaving(members), fusion.usual(members))
    tiles = np.asarray([1, 128])
    steps = {node.name: {"k": tiles} for node in problem.group.nodes}
    found = estimate(problem, {"m": tiles, "n": tiles}, steps)
    fine, coarse = found.moved
    assert fine > 2.0**63
    assert 0 < coarse < fine
    assert found.seconds[0] > found.seconds[1] > 0


@pytest.mark.feature("W08")
def test_windows_count_from_first_to_last_use() -> None:
    """Of three products in a row one has its weights, what it reads and what it makes at a time."""
    e = {"m": 8, "n": 64, "k": 64}
    texts = ["h[m, n] = sum(k, x[m, k] * u[k, n])", "g[m, n] = sum(k, h[m, k] * v[k, n])"]
    nodes = [(text, e) for text in (*texts, "y[m, n] = sum(k, g[m, k] * w[k, n])")]
    graph = make_graph({"x": (8, 64), "u": (64, 64), "v": (64, 64), "w": (64, 64)}, nodes, ["y"])
    fusion = problem_of(graph, target_model_of(device("a100")))
    problem = fusion.tiling_problem((0, 1, 2), ("y",), fusion.usual((0, 1, 2)))
    rows = np.asarray([1, 4])
    held = estimate(problem, {"m": rows, "n": np.asarray(64)}, {}).held
    assert held.tolist() == (4 * (64 * 64 + rows * (64 + 64))).tolist()


@pytest.mark.feature("W07", "W08")
def test_costly_inputs_of_a_concatenation_count_though_the_first_tile_reads_another() -> None:
    """Tiles that cut the image reduce all of it once each, a quarter of them."""
    nodes = [
        ("p[i] = sum(r, s, b[i, r, s])", {"i": 64, "r": 256, "s": 256}),
        ("y[j, k, l] = where(j < 192, a[j, k, l], b[j - 192, k, l] * p[j - 192])", {"j": 256, "k": 256, "l": 256}),
    ]
    graph = make_graph({"a": (192, 256, 256), "b": (64, 256, 256)}, nodes, ["y"])
    target = target_model_of(device("zen5-avx512"))
    fusion = FusionProblem(graph, fuse_registers(graph).parts, target, Candidates(), "time", frozenset("y"))
    problem = fusion.tiling_problem((0, 1), ("y",), fusion.usual((0, 1)))
    cut = {"j": np.asarray([1, 1]), "k": np.asarray([256, 1]), "l": np.asarray([256, 64])}
    whole, fine = estimate(problem, cut, {}).seconds
    assert fine > 10 * whole


@pytest.mark.feature("W07")
def test_tasks_that_begin_inside_of_panels_are_dear() -> None:
    """Weights are packed in panels of a register tile's width, across whose ends no vector is loaded."""
    e = {"m": 49, "n": 640, "k": 512}
    nodes = [("y[m, n] = sum(k, x[m, k] * w[k, n])", e)]
    graph = make_graph({"x": (49, 512)}, nodes, ["y"], {"w": (512, 640)})
    fusion = problem_of(graph, target_model_of(device("zen5-avx512")))
    problem = fusion.tiling_problem((0,), ("y",), fusion.usual((0,)))
    width = problem.tiles[0].sizes["n"]
    tasks = {"m": np.asarray(49), "n": np.asarray([width, 2 * width, width + 16, 2 * width - 16])}
    one, two, *across = cost_terms(problem, tasks, {}).compute / tasks["n"]
    assert one == pytest.approx(two)
    assert min(across) > 3 * one


def rows(tasks: list[int]) -> CostTerms:
    """A product of 960 rows cut into so many tasks, on the cores of a CPU."""
    e = {"m": 960, "n": 64, "k": 64}
    graph = make_graph({"x": (960, 64), "w": (64, 64)}, [("y[m, n] = sum(k, x[m, k] * w[k, n])", e)], ["y"])
    fusion = problem_of(graph, FOUR_CORES)
    problem = fusion.tiling_problem((0,), ("y",), fusion.usual((0,)))
    return cost_terms(problem, {"m": np.asarray([960 // n for n in tasks]), "n": np.asarray(64)}, {})


FOUR_CORES = replace(target_model_of(device("avx2")), cores=4)


@pytest.mark.feature("W23")
def test_a_wave_of_tasks_lasts_as_long_as_one_of_them() -> None:
    """Cores without a task in the last wave wait for those with one, and on average a part of a task in any wave."""
    tasks = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20]
    terms = rows(tasks)
    assert terms.tasks.tolist() == tasks
    for count, task, span in zip(tasks, terms.task, terms.span, strict=True):
        assert span >= -(-count // 4) * task
        assert count == 1 or span >= (count / 4 + FOUR_CORES.costs.imbalance) * task
        assert span <= (-(-count // 4) + 0.2) * task + 1e-6
    assert terms.seconds[tasks.index(5)] > terms.seconds[tasks.index(4)], "four cores wait for the fifth task"


@pytest.mark.feature("W17", "W23")
def test_the_work_of_few_tasks_is_dealt_to_all_cores() -> None:
    """With 5 or 6 tasks four cores have two rounds to go, in which 8 take less long."""
    seconds = dict(zip((4, 5, 6, 8), rows([4, 5, 6, 8]).seconds, strict=True))
    assert min(seconds, key=lambda n: seconds[n]) in (4, 8)
    assert seconds[8] < seconds[6] < seconds[5]


def rotated(columns: int) -> CostTerms:
    """A product of so many columns, of which its reader in the group reads the first 256, in tasks of 64."""
    nodes = [
        ("p[m, n] = sum(k, x[m, k] * w[k, n])", {"m": 8, "n": columns, "k": 512}),
        ("y[m, j] = p[m, j] + 1.0", {"m": 8, "j": 256}),
    ]
    graph = make_graph({"x": (8, 512)}, nodes, ["p", "y"], {"w": (512, columns)})
    fusion = problem_of(graph, FOUR_CORES)
    members = tuple(range(len(fusion.parts)))
    problem = fusion.tiling_problem(members, fusion.leaving(members), fusion.usual(members))
    assert problem.unread == ({"p": {"n": columns - 256}} if columns > 256 else {})
    return cost_terms(problem, {"m": np.asarray(8), "j": np.asarray(64)}, {})


@pytest.mark.feature("W06", "W23")
def test_a_task_that_stores_what_no_tile_reads_costs_what_it_computes() -> None:
    """The last of four tasks has 64 columns and all that are behind the last tile."""
    whole = rotated(256)
    for columns in (320, 512, 1024):
        terms = rotated(columns)
        assert terms.compute == pytest.approx(whole.compute, rel=0.02), "the others compute what they did"
        more = terms.span - whole.span
        assert more == pytest.approx(whole.compute * (columns - 256) / 64, rel=0.2)
        assert terms.moved - whole.moved == 4 * (512 + 8) * (columns - 256)


def transposed(transaction: int) -> TilingProblem:
    """The transpose of a square on a GPU whose memory moves so many bytes at once."""
    size = 1024
    graph = make_graph({"x": (size, size)}, [("y[i, j] = x[j, i] + 1", {"i": size, "j": size})], ["y"])
    fusion = problem_of(graph, replace(target_model_of(device("a100")), transaction=transaction))
    return fusion.tiling_problem((0,), ("y",), fusion.usual((0,)))


@pytest.mark.feature("W22")
def test_short_runs_move_whole_transactions() -> None:
    """Tiles 1x64 and 64x1 of a transpose move short runs either in or out, 32x32 runs of 128 bytes both ways."""
    rows, columns = np.asarray([1, 64, 32]), np.asarray([64, 1, 32])
    bytes_moved = 4.0 * rows * columns
    for transaction in (4, 32, 512):
        problem = transposed(transaction)
        terms = cost_terms(problem, {"i": rows, "j": columns}, {})
        read = bytes_moved * (1 + (transaction - np.gcd(4 * rows, transaction)) / (4 * rows))
        stored = bytes_moved * (1 + (transaction - np.gcd(4 * columns, transaction)) / (4 * columns))
        assert terms.stream * problem.target.refill == pytest.approx(read + stored)
        assert (terms.moved == terms.moved[0]).all(), "traffic is bytes, not transactions"


@pytest.mark.feature("W22")
def test_long_transactions_lengthen_the_runs_of_tiles() -> None:
    """With 4 KiB at once all runs of the chosen tile are longer than with 32 bytes."""

    def shortest(transaction: int) -> int:
        sizes = task_tile(transposed(transaction)).sizes
        return min(sizes.get("i", 1024), sizes.get("j", 1024))

    assert shortest(4096) > shortest(32)


@pytest.mark.feature("W09")
def test_every_round_of_a_reduce_loop_waits() -> None:
    """Shorter steps of a product take longer, by the latency of each round, shared by the tasks of a core."""
    e = {"m": 4096, "n": 4096, "k": 768}
    graph = make_graph({"x": (4096, 768), "w": (768, 4096)}, [("y[m, n] = sum(k, x[m, k] * w[k, n])", e)], ["y"])
    fusion = problem_of(graph, target_model_of(device("a100[pools.registers=64MiB]")))
    problem = fusion.tiling_problem((0,), ("y",), fusion.usual((0,)))
    steps = np.asarray([8, 32, 96])
    terms = cost_terms(problem, {"m": np.asarray(128), "n": np.asarray(64)}, {"y": {"k": steps}})
    assert terms.seconds[0] > terms.seconds[1] > terms.seconds[2]
    latency, resident = problem.target.costs.round, np.minimum(16, problem.target.capacity // terms.held)
    rest = terms.task - latency * (1 + 768 / steps) / resident
    assert rest == pytest.approx(rest[0], rel=1e-9)


def test_pieces_that_vectors_do_not_divide_take_their_addresses() -> None:
    """Windows of 145 words are copied word by word, those of 144 by four."""
    e = {"m": 4096, "n": 1024, "r": 3}
    texts = ["h[m, n] = sum(r, x[m, n + r] * g[r])", "y[m, n] = sum(r, x[m, n + r] * h[m, n])"]
    graph = make_graph({"x": (4096, 1026), "g": (3,)}, [(text, e) for text in texts], ["y"])
    fusion = problem_of(graph, target_model_of(device("a100")))
    problem = fusion.tiling_problem((0, 1), ("y",), fusion.usual((0, 1)))
    assert "x" not in problem.storage.unstaged
    even, odd = (
        float(np.max(cost_terms(problem, {"m": np.asarray(64), "n": np.asarray(n)}, {}).compute)) for n in (142, 143)
    )
    assert odd > 1.5 * even
