"""Decoders in the forms that exporters write are native, and decode as onnxruntime does: prompts, batches, steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from tests.importer.reference import run
from tests.language_models.decoder import Run
from tests.language_models.run import compared, form_of, on_onnxruntime
from tests.language_models.written import CHANNELS, GROUPS, POSITIONS, VOCABULARY, grouped, merged, scattered, standard
from tilec.importer import UnsupportedModelError, import_model
from tilec.ir.port_sizes import port_sizes

CAPACITY = 24

FORMS: dict[str, tuple[Callable[[Path], Path], dict[str, int | str], Sequence[Sequence[int]]]] = {
    "grouped": (grouped, {}, ((1,), (5, 2))),
    "a window": (lambda path: grouped(path, local_window_size=4, softcap=5.0), {}, ((6,),)),
    "a cache of a window": (
        lambda path: grouped(path, "past_sliding", local_window_size=4, sliding_window_cache=1),
        {"window": 6},
        ((1,), (9,)),
    ),
    "standard": (standard, {}, ((1,), (7,))),
    "merged": (lambda path: merged(path, taken=True), {}, ((1,), (7,))),
    "scattered": (lambda path: scattered(path, CAPACITY), {"capacity": CAPACITY}, ((1,), (7,))),
}


def evaluated(path: Path) -> Run:
    """How the expressions of a model are evaluated, which has no calls of onnxruntime and all lengths open."""
    imported = import_model(path)
    graph = imported.graph
    assert graph.calls == ()

    def evaluate(feeds):
        sizes = port_sizes(graph.inputs, graph.tensors, {name: array.shape for name, array in feeds.items()})
        found = run(imported, path.parent, feeds, {name: sizes[name] for name in graph.symbols})
        return dict(zip([port.name for port in graph.outputs], found, strict=True))

    return evaluate


@pytest.mark.parametrize("name", FORMS)
def test_forms_decode_as_onnxruntime_does(tmp_path: Path, name: str) -> None:
    write, said, prompts = FORMS[name]
    path = write(tmp_path / "model.onnx")
    form = form_of(path, **said)
    ours = evaluated(path)
    outputs, theirs = on_onnxruntime(path, exact=True)
    for lengths in prompts:
        found = compared(form, outputs, (ours, theirs, theirs), lengths, steps=3, vocabulary=VOCABULARY)
        assert (found.right, found.tokens) == (True, 1.0), (lengths, found)


def test_there_are_no_more_tokens_than_rotations(tmp_path: Path) -> None:
    assert import_model(grouped(tmp_path / "model.onnx")).graph.symbol_ranges["total"].high == POSITIONS


def test_a_branch_that_an_input_chooses_is_compiled_where_the_input_has_a_value(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError) as refused:
        import_model(merged(tmp_path / "open.onnx"))
    (node,) = refused.value.nodes
    assert node.remedy.startswith("Give 'use_cache_branch' an initializer with its value, and that branch alone")
    path = merged(tmp_path / "prompt.onnx", taken=False)
    session = onnxruntime.InferenceSession(str(path))
    feeds = {each.name: np.ones((2, 3), np.int64) for each in session.get_inputs()[:2]}
    feeds |= {each.name: np.zeros((2, GROUPS, 0, CHANNELS), np.float32) for each in session.get_inputs()[2:]}
    for name, expected in zip([each.name for each in session.get_outputs()], session.run(None, feeds), strict=True):
        np.testing.assert_allclose(evaluated(path)(feeds)[name], expected, rtol=1e-4, atol=1e-5)
