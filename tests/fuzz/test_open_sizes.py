"""Random models with open sizes, imported and compiled once, are right at all of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fuzz.check import text_of
from fuzz.draw_open import draw_open
from fuzz.open_model import OpenModel, check_open, opened
from fuzz.open_sizes import read_open
from fuzz.reference import NoReference, evaluate
from fuzz.sketch import Model
from fuzz.worker import Worker
from tests.importer.reference import run
from tilec.importer import import_model
from tilec.ir.verify.graph import check_graph

IMPORTED, COMPILED, NODES = 24, 4, 8
CASES = sorted(path.parent for path in (Path(__file__).parent / "open_cases").glob("*/model.onnx"))


def described(model: OpenModel) -> str:
    return f"{dict(model.sizes)}\n{text_of(Model(model.proto, model.tries[0]))}"


def test_expressions_of_random_models(tmp_path: Path) -> None:
    """The graph of import at every size, evaluated in NumPy."""
    for index in range(IMPORTED):
        model = draw_open(1, index, NODES)
        path = tmp_path / f"{index}.onnx"
        path.write_bytes(model.proto.SerializeToString())
        imported = import_model(path, fallback="allow")
        assert check_graph(imported.graph) == (), described(model)
        if imported.graph.calls:
            continue
        for place, feeds in enumerate(model.tries):
            known = {s: values[place] for s, values in sizes_of(model).items() if s in imported.graph.symbols}
            try:
                trace = evaluate(model.proto, feeds)
            except NoReference:  # indices that are none at this size
                continue
            for port, found in zip(model.proto.graph.output, run(imported, tmp_path, feeds, known), strict=True):
                assert trace.difference(port.name, np.asarray(found)) == "", (known, described(model))


def sizes_of(model: OpenModel) -> dict[str, list[int]]:
    """The sizes of all symbols of a model's inputs in every try."""
    found: dict[str, list[int]] = {}
    for info in model.proto.graph.input:
        for axis, dim in enumerate(info.type.tensor_type.shape.dim):
            if dim.dim_param:
                found[dim.dim_param] = [feeds[info.name].shape[axis] for feeds in model.tries]
    return found


@pytest.mark.parametrize("index", [*range(COMPILED), *(pytest.param(n, marks=pytest.mark.slow) for n in range(4, 40))])
def test_random_models(index: int, worker: Worker) -> None:
    model = draw_open(0, index, NODES)
    finding, _ = check_open(model, worker)
    assert finding is None, f"{finding.kind}: {finding.detail}\n{described(model)}"


def test_extents_that_vary_alike_have_one_name() -> None:
    model = draw_open(0, 0)
    feeds = [{"x": np.zeros((4, n, 2 * n, n), np.float32)} for n in (3, 5)]
    proto = type(model.proto)()
    proto.graph.input.add(name="x")
    opened(proto, feeds, {"n": [3, 5]})
    dims = proto.graph.input[0].type.tensor_type.shape.dim
    assert [d.dim_param or d.dim_value for d in dims] == [4, "n", "d1", "n"]


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_what_was_wrong_once(case: Path, worker: Worker) -> None:
    finding, _ = check_open(read_open(case), worker)
    assert finding is None, f"{finding.kind}: {finding.detail}"
