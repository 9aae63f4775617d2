"""Random graphs of open sizes: one compilation computes what the tile machine and NumPy do, at every size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random

import numpy as np
import pytest

from tests.symbolic_graphs import Array, Open, symbolic_graph
from tests.verify.builds import generated
from tilec.ir.evaluate import evaluate, integer
from tilec.ir.plan import Plan
from tilec.ir.verify.graph import check_graph
from tilec.lower.lowering import lower
from tilec.machine import execute
from tilec.runtime import load
from tilec.scheduler import schedule
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.resolve import resolve_device


def sizes_of(symbols: tuple[str, ...], seed: int, count: int) -> Iterator[dict[str, int]]:
    """Sizes of all symbols: first all 0, then all 1, then any, small and around vectors and tiles."""
    random = Random(seed)
    yield from (dict.fromkeys(symbols, size) for size in (0, 1))
    for _ in range(count - 2):
        yield {symbol: random.choice([0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 40]) for symbol in symbols}


def machine(plan: Plan, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> dict[str, Array]:
    """All tensors that the groups of a plan store, on the tile machine."""
    known = dict(arrays)
    for node in plan.prepared:
        known[node.name] = evaluate(node.expr, known, sizes, plan.tensors[node.name].ttype)
    for group in plan.groups:
        variant = next(variant for variant in group.variants if integer(variant.guard, sizes))
        program = lower(group, variant, plan)
        inputs = {p.name: known[p.name] for p in program.parameters if p.name not in program.outputs}
        known |= execute(program, inputs, sizes).outputs
    return known


def agree(made: Array, wanted: Array) -> bool:
    """Up to the order of summation; integers exactly."""
    if made.shape != wanted.shape or made.dtype != wanted.dtype:
        return False
    if made.dtype.kind == "i":
        return bool(np.array_equal(made, wanted))
    tolerance = 1e-10 if made.dtype.itemsize == 8 else 1e-4
    finite = wanted[np.isfinite(wanted)]
    limit = tolerance * max(1.0, float(np.abs(finite).max(initial=0)))
    return bool(np.allclose(made, wanted, rtol=tolerance, atol=limit, equal_nan=True))


def check(opened: Open, folder: Path, seed: int, count: int) -> None:
    assert check_graph(opened.graph) == ()
    plan = schedule(opened.graph, resolve_device("host"), ScheduleOptions())
    generated(plan, folder, "host")
    session = load(folder, threads=2)
    for number, sizes in enumerate(sizes_of(opened.graph.symbols, seed, count)):
        arrays = opened.arrays(sizes, number)
        wanted = opened.reference(arrays, sizes)
        made = session.run(arrays)
        stored = machine(plan, arrays, sizes)
        for port in opened.graph.outputs:
            assert agree(made[port.name], wanted[port.tensor]), (seed, sizes, port.name, opened)
            assert agree(np.asarray(stored[port.tensor]), wanted[port.tensor]), (seed, sizes, port.name, opened)


@pytest.mark.quick_cases("7", "8", "10", "15", "17")
@pytest.mark.feature("B01", "B06")
@pytest.mark.parametrize("seed", range(20))
def test_random_graphs(tmp_path: Path, seed: int) -> None:
    check(symbolic_graph(seed, operators=4), tmp_path, seed, 4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_many_random_graphs(tmp_path: Path, seed: int) -> None:
    check(symbolic_graph(seed, operators=7), tmp_path, seed, 6)
