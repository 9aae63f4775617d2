"""Recurrences of any number of steps, end to end: one compilation, the body of a loop for every step."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.acceptance.building import assert_close, build, folder_of, onnxruntime
from tests.importer.ops.cells import OUTPUTS, operands
from tests.importer.ops.test_recurrent import with_symbolic_steps
from tests.importer.reference import single
from tilec.artifact import read_artifact
from tilec.runtime import load

STEPS = (1, 2, 3, 65, 130)


@pytest.mark.feature("B01")
@pytest.mark.parametrize(("kind", "direction"), [("LSTM", "forward"), ("GRU", "bidirectional"), ("RNN", "reverse")])
def test_one_compilation_runs_all_numbers_of_steps(tmp_path: Path, kind: str, direction: str) -> None:
    """Large enough that what the loop reads again would be overwritten in the arena, were it not held."""
    arrays = operands(kind, (130, 2, 5, 96), directions=2 if direction == "bidirectional" else 1)
    for weight in (1, 2):
        arrays[weight] = 0.2 * np.asarray(arrays[weight])
    options = {"hidden_size": 96, "outputs": OUTPUTS[kind], "direction": direction, "known": [1, 2, 3]}
    path, feeds = single(tmp_path, kind, *arrays, **options)
    path = with_symbolic_steps(path)
    build(path)
    folder = folder_of(path)
    assert read_artifact(folder / "1-graph.json", "graph").body["placement"] == {"compiled": 1, "total": 1}
    session = load(folder, threads=2)
    given = [{**feeds, "x0": feeds["x0"][:steps]} for steps in STEPS]
    names = [port.name for port in session.outputs]
    expected = [dict(zip(names, onnxruntime(path, each), strict=True)) for each in given]
    for each, outputs in zip(given, expected, strict=True):
        assert_close(session.run(each), outputs)
    with ThreadPoolExecutor(8) as pool:
        for found, outputs in zip(pool.map(session.run, given * 4), expected * 4, strict=True):
            assert_close(found, outputs)
    nothing = session.run({**feeds, "x0": feeds["x0"][:0]})
    states = [nothing[name] for name in names[1:]]
    for state, start in zip(states, (feeds["x5"], feeds.get("x6")), strict=False):
        np.testing.assert_array_equal(state, start)
