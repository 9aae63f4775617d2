"""OpenVINO, with caches that it keeps itself."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from tilec.decoding.generate import Generation, batches_of
from tilec.decoding.peers.request import Peer, Prompts, Request


def load(openvino: Any, request: Request) -> Peer:
    """The model with its caches as states, compiled for each number of prompts."""
    core = openvino.Core()
    with TemporaryDirectory() as folder:
        model = core.read_model(_readable(request.model, Path(folder)))
    compiled: dict[int, Any] = {}
    stateless = replace(request.decoder, caches=(), room=None)

    def peer(prompts: Prompts, most: int) -> Generation:
        count = len(prompts)
        if count not in compiled:
            compiled.clear()
            compiled[count] = _compiled(core, model.clone(), request, count)
        asked = compiled[count]
        asked.reset_state()

        def call(feeds: Mapping[str, NDArray[Any]], _out: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
            return {stateless.logits.name: asked.infer(dict(feeds))[stateless.logits.name]}

        told = Generation(sum(map(len, prompts)))
        list(batches_of(call, stateless, prompts, most, seeds=range(count), told=told))
        return told

    return peer


def _compiled(core: Any, model: Any, request: Request, batch: int) -> Any:
    from openvino._offline_transformations import apply_make_stateful_transformation

    caches = request.decoder.caches
    model.reshape({each.past.name: [batch, *(_open(n) for n in each.past.shape[1:])] for each in caches})
    apply_make_stateful_transformation(model, {each.past.name: each.present for each in caches})
    threads = {} if request.threads is None else {"INFERENCE_NUM_THREADS": request.threads}
    return core.compile_model(model, "CPU", {"PERFORMANCE_HINT": "LATENCY", **threads}).create_infer_request()


def _open(extent: int | str) -> int:
    return extent if isinstance(extent, int) else -1


def _readable(model: Path, folder: Path) -> Path:
    """The model as OpenVINO reads it: constants that are reshaped before quantised rows are gathered from them, as in
    folders whose embeddings share the head's weights, have that shape themselves."""
    proto = onnx.load(str(model), load_external_data=False)
    constants = {each.name: each for each in proto.graph.initializer}
    shapes = {node.output[0]: node.attribute[0].t for node in proto.graph.node if node.op_type == "Constant"}
    shapes |= constants
    turned = [
        node
        for node in proto.graph.node
        if node.op_type == "Reshape" and node.input[0] in constants and node.input[1] in shapes
    ]
    if not turned:
        return model
    for node in turned:
        shaped = onnx.TensorProto()
        shaped.CopyFrom(constants[node.input[0]])
        shaped.name, shaped.dims[:] = node.output[0], numpy_helper.to_array(shapes[node.input[1]]).tolist()
        proto.graph.initializer.append(shaped)
        proto.graph.node.remove(node)
    for each in proto.graph.initializer:
        for entry in each.external_data:
            data = folder / entry.value
            if entry.key == "location" and not data.exists():
                data.parent.mkdir(parents=True, exist_ok=True)
                _linked(model.parent / entry.value, data)
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def _linked(there: Path, here: Path) -> None:
    """The same file under another name, or a copy: OpenVINO follows no links out of a model's folder."""
    try:
        os.link(there.resolve(), here)
    except OSError:
        shutil.copyfile(there, here)
