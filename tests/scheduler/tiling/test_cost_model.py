"""score: predictions of poor candidates stay predictions."""

import numpy as np
import pytest
from scheduler.graphs import make_graph
from scheduler.running import device

from tilec.ir.intervals import Candidates
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.graph_passes.fuse_registers import fuse_registers
from tilec.scheduler.target_model import target_model_of
from tilec.scheduler.tiling.cost_model import estimate


@pytest.mark.feature("W07")
def test_bytes_of_poor_candidates_do_not_overflow() -> None:
    """Every element of three large products by itself, in steps of one: each is computed again for the next one."""
    size = 1 << 16
    e = dict.fromkeys("mnk", size)
    texts = [(f"{c}[m, n] = sum(k, {a}[m, k] * W[k, n])", e) for a, c in ("XA", "AB", "BC")]
    graph = make_graph({"X": (size, size), "W": (size, size)}, texts, ["C"])
    atoms = FusionProblem(
        graph, fuse_registers(graph).parts, target_model_of(device("a100")), Candidates(), "time", frozenset("C")
    )
    members = tuple(range(len(atoms.parts)))
    problem = atoms.tiling_problem(members, atoms.leaving(members), atoms.usual(members))
    tiles = np.asarray([1, 128])
    steps = {node.name: {"k": tiles} for node in problem.nodes}
    found = estimate(problem, {"m": tiles, "n": tiles}, steps)
    fine, coarse = found.moved
    assert fine > 2.0**63
    assert 0 < coarse < fine
    assert found.seconds[0] > found.seconds[1] > 0


@pytest.mark.feature("W07", "W08")
def test_costly_inputs_of_a_concatenation_count_though_the_first_tile_reads_another() -> None:
    """Tiles that cut the image reduce all of it once each, a quarter of them."""
    nodes = [
        ("p[i] = sum(r, s, b[i, r, s])", {"i": 64, "r": 256, "s": 256}),
        ("y[j, k, l] = where(j < 192, a[j, k, l], b[j - 192, k, l] * p[j - 192])", {"j": 256, "k": 256, "l": 256}),
    ]
    graph = make_graph({"a": (192, 256, 256), "b": (64, 256, 256)}, nodes, ["y"])
    target = target_model_of(device("zen5-avx512"))
    atoms = FusionProblem(graph, fuse_registers(graph).parts, target, Candidates(), "time", frozenset("y"))
    problem = atoms.tiling_problem((0, 1), ("y",), atoms.usual((0, 1)))
    cut = {"j": np.asarray([1, 1]), "k": np.asarray([256, 1]), "l": np.asarray([256, 64])}
    whole, fine = estimate(problem, cut, {}).seconds
    assert fine > 10 * whole
