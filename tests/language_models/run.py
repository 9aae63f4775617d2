"""`python -m tests.language_models.run MODEL BUILD`: decode with a compiled model beside onnxruntime; prints JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

import tilec
from tests.language_models.decoder import Array, Arrays, Decoding, Form, Input, Run, prompts
from tests.language_models.judge import Distances, distances
from tilec.runtime import Session

PROMPTS = ((1,), (17,), (100,), (511,), (100, 17, 9, 1))
"""Lengths of the prompts of a batch."""

STEPS = 127
"""Steps behind the prompt: 128 tokens are made."""

VOCABULARY = 300


def form_of(model: Path, **said: Any) -> Form:
    """How a model file is fed; what is `said`, or stands beside it, says what its inputs do not."""
    graph = onnx.load(str(model), load_external_data=False).graph
    inputs = [
        Input(
            each.name,
            onnx.helper.tensor_dtype_to_np_dtype(each.type.tensor_type.elem_type),
            tuple(d.dim_param or d.dim_value for d in each.type.tensor_type.shape.dim),
        )
        for each in graph.input
    ]
    beside = model.with_name("form.json")
    said |= json.loads(beside.read_text()) if beside.is_file() else {}
    genai = model.with_name("genai_config.json")
    if genai.is_file():
        decoder = json.loads(genai.read_text())["model"]["decoder"]
        window = decoder.get("sliding_window") or {"window_size": 0}
        said |= {"channels": decoder["head_size"], "window": window["window_size"] + window.get("cache_slack", 0)}
    given = np.load(model.with_name("given.npz")) if said.pop("given", False) else {}
    return Form(inputs, given=dict(given), **said)


def on_onnxruntime(model: Path, exact: bool) -> tuple[Sequence[str], Run]:
    """The outputs of a model, and how onnxruntime runs it; `exact` without rounded activations."""
    proto = onnx.load(str(model), load_external_data=False)
    if exact:
        for node in proto.graph.node:
            kept = [each for each in node.attribute if each.name != "accuracy_level"]
            del node.attribute[:]
            node.attribute.extend(kept)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.enable_mem_reuse = False  # shapes that the builder notes in float16 models are not those that there are
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(model.parent))
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, ["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return names, lambda feeds: dict(zip(names, session.run(names, feeds), strict=True))


SPARE = 3
"""Rows of caches with room that no token has."""


def in_room(session: Session) -> Run:
    """How a compiled model runs on the model's own inputs: caches in place have room, which holds anything."""
    caches = {port.name: port for port in session.inputs if port.name in session.states}
    rows = next((port for port in session.inputs if port.shape == (port.name,)), None)

    def run(feeds: dict[str, Array]) -> Arrays:
        given, filled = dict(feeds), {}
        for name, port in caches.items():
            anything = np.nan if feeds[name].dtype.kind == "f" else 77
            if rows is not None and "cache_position" in feeds:
                before = int(feeds["cache_position"][0])
                given[rows.name] = np.zeros(before, bool)
                given[name] = feeds[name].copy()
                given[name][:, :, before:] = anything
            elif isinstance(port.shape[2], str):
                new = next(array.shape[1] for key, array in feeds.items() if key.endswith("input_ids"))
                before = feeds[name].shape[2]
                behind = np.full_like(feeds[name], anything, shape=_with_rows(feeds[name], new + SPARE))
                given[name] = np.concatenate([feeds[name], behind], 2)
                filled[session.states[name]] = before + new
                if rows is not None:
                    given[rows.name] = np.zeros(before, bool)
        results = session.run(given)
        return {name: array[:, :, : filled[name]] if name in filled else array for name, array in results.items()}

    return run


def _with_rows(array: Array, rows: int) -> tuple[int, ...]:
    return (*array.shape[:2], rows, *array.shape[3:])


def compared(
    form: Form,
    outputs: Sequence[str],
    runs: Sequence[Run],
    lengths: Sequence[int],
    steps: int = STEPS,
    vocabulary: int = VOCABULARY,
) -> Distances:
    """The distances of all logits of a greedy decoding: ours, onnxruntime's and exact ones, which choose the tokens."""
    batches = [Decoding(form, outputs, run, len(lengths)) for run in runs]
    return _apart(batches, prompts(lengths, vocabulary), steps)


def in_rows(
    form: Form, outputs: Sequence[str], runs: Sequence[Run], lengths: Sequence[int], steps: int = STEPS
) -> Distances:
    """As `compared`, where onnxruntime decodes each sequence by itself: it does not take prompts of different length
    beside each other in all forms."""
    ours, *others = runs
    batches = [Decoding(form, outputs, ours, len(lengths)), *(_Rows(form, outputs, run, lengths) for run in others)]
    return _apart(batches, prompts(lengths, VOCABULARY), steps)


class _Rows:
    """Sequences that are decoded each by itself."""

    def __init__(self, form: Form, outputs: Sequence[str], run: Run, lengths: Sequence[int]) -> None:
        self._each = [Decoding(form, outputs, run, 1) for _ in lengths]

    def step(self, tokens: Sequence[Sequence[int]]) -> Array:
        """The logits behind the last of the new tokens of each sequence."""
        return np.concatenate([each.step([new]) for each, new in zip(self._each, tokens, strict=True)])


def _apart(batches: Sequence[Decoding | _Rows], tokens: Sequence[Sequence[int]], steps: int) -> Distances:
    logits: list[list[Any]] = [[] for _ in batches]
    for _ in range(steps + 1):
        for found, batch in zip(logits, batches, strict=True):
            found.append(batch.step(tokens))
        tokens = [[int(each)] for each in logits[-1][-1].argmax(-1)]
    return distances(*logits)


def main(model: Path, build: Path) -> None:
    """Print the distances of every prompt, and whether all are right."""
    form = form_of(model)
    outputs, theirs = on_onnxruntime(model, exact=False)
    _, exact = on_onnxruntime(model, exact=True)
    session = tilec.load(build)
    ours = in_room(session)
    found = {}
    masked = any(each.name.endswith("attention_mask") for each in form.inputs)
    for prompt in PROMPTS:
        lengths = prompt if masked else (prompt[0],) * len(prompt)  # what fills up a prompt would be read without
        try:
            each = compared(form, outputs, (ours, theirs, exact), lengths)
        except InvalidArgument:
            if len(lengths) == 1:
                raise
            each = in_rows(form, outputs, (ours, theirs, exact), lengths)
        found[" ".join(map(str, lengths))] = {**asdict(each), "right": each.right}
    print(json.dumps(found))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
