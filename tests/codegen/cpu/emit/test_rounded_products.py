"""Products of floats are rounded alike wherever their code stands, so that tasks that overlap store the same bits."""

from pathlib import Path

import numpy as np
from scheduler.graphs import make_graph

from tests.verify.builds import generated
from tilec.runtime import load
from tilec.scheduler import schedule
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.resolve import resolve_device


def test_a_product_of_its_own_is_rounded_before_the_sum(tmp_path: Path) -> None:
    """The two are in one block of code, where LLVM would fuse them: then few of these sums are those of NumPy."""
    size = 1000
    texts = [("t[i] = a[i] * b[i]", {"i": size}), ("y[i] = t[i] + c[i]", {"i": size})]
    graph = make_graph({"a": (size,), "b": (size,), "c": (size,)}, texts, ["y"])
    generated(schedule(graph, resolve_device("host"), ScheduleOptions()), tmp_path, "host")
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=size).astype(np.float32) for _ in range(2))
    c = -(a * b)
    made = load(tmp_path, threads=1).run({"a": a, "b": b, "c": c})["y"]
    np.testing.assert_array_equal(made, np.zeros(size, np.float32))
