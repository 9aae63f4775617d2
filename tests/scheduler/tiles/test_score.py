"""score: predictions of poor candidates stay predictions."""

import numpy as np
import pytest
from scheduler.graphs import make_graph
from scheduler.running import device

from tilec.ir.intervals import Candidates
from tilec.scheduler.groups.atoms import Atoms
from tilec.scheduler.passes.parts import fuse
from tilec.scheduler.target import target_of
from tilec.scheduler.tiles.score import score


@pytest.mark.feature("W07")
def test_bytes_of_poor_candidates_do_not_overflow() -> None:
    """Every element of three large products by itself, in steps of one: each is computed again for the next one."""
    size = 1 << 16
    e = dict.fromkeys("mnk", size)
    texts = [(f"{c}[m, n] = sum(k, {a}[m, k] * W[k, n])", e) for a, c in ("XA", "AB", "BC")]
    graph = make_graph({"X": (size, size), "W": (size, size)}, texts, ["C"])
    atoms = Atoms(graph, fuse(graph).parts, target_of(device("a100")), Candidates(), "time", frozenset("C"))
    members = tuple(range(len(atoms.parts)))
    problem = atoms.problem(members, atoms.leaving(members), atoms.usual(members))
    tiles = np.asarray([1, 128])
    steps = {node.name: {"k": tiles} for node in problem.nodes}
    found = score(problem, {"m": tiles, "n": tiles}, steps)
    fine, coarse = found.moved
    assert fine > 2.0**63
    assert 0 < coarse < fine
    assert found.seconds[0] > found.seconds[1] > 0
