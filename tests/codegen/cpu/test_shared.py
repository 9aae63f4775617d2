"""Reductions that share a reduce loop, compiled: they compute what the machine does, wherever the loop stands."""

import numpy as np
import pytest

from tests.codegen.cpu.running import AVX2, AVX512, NEON, Batch, close
from tests.lower.cases import Case
from tests.lower.shared import SHARED
from tests.scheduler.rescaled import ROWS, normalized, planned
from tilec.machine import execute

TARGETS = (AVX512, AVX2, NEON)
ON_CPU = ("every node on its own", "everything in registers", "mean and variance")


@pytest.mark.feature("W09")
def test_shared_loops_on_the_cpu(tmp_path):
    batch, wanted = Batch(), []
    for number, case in enumerate(SHARED[name] for name in ON_CPU):
        batch.add(case.program(), case.arrays(), TARGETS[number % len(TARGETS)])
        wanted.append(execute(case.program(), case.arrays()).outputs)
    for name, made, outputs in zip(ON_CPU, batch.run(tmp_path, threads=2), wanted, strict=True):
        assert all(close(made[tensor], value, 1e-5) for tensor, value in outputs.items()), name


@pytest.mark.feature("W09")
def test_masks_and_offsets_on_the_cpu(tmp_path):
    extents = {"s": 3, "r": 1000, "d": 3}
    softmax = Case(ROWS, extents, {"A": (3, 1000), "V": (1000, 3)}, tiles={"l2": {"O": {"s": 2}}})
    variance = Case(normalized(1000), extents, {"A": (3, 1000)})
    rng = np.random.default_rng(0)
    rows = (rng.standard_normal((3, 1000)) + 1e4).astype(np.float32)
    hidden = rows.copy()
    hidden[1, :500], hidden[1, -30:], hidden[2] = -np.inf, -np.inf, -np.inf
    values = rng.standard_normal((1000, 3)).astype(np.float32)
    batch = Batch()
    for step in (64, 77):
        batch.add(planned(softmax, {"l2": {"r": step}}).program(), {"A": hidden, "V": values})
        batch.add(planned(variance, {"l2": {"r": step}}).program(), {"A": rows})
    weights = np.exp(hidden[:2].astype(np.float64) - hidden[:2].max(1, keepdims=True))
    exact = weights / weights.sum(1, keepdims=True) @ values
    for made in batch.run(tmp_path):
        if "O" in made:
            np.testing.assert_allclose(made["O"][:2], exact, rtol=1e-5, atol=1e-6)
            assert np.isnan(made["O"][2]).all(), "as in two passes"
        else:
            np.testing.assert_allclose(made["S"], rows.astype(np.float64).var(1), rtol=2e-6)
