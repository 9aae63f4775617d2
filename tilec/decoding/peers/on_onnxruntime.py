"""onnxruntime, with caches where they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilec.decoding.generate import Call, Generation, batches_of
from tilec.decoding.peers.request import Peer, Prompts, Request
from tilec.onnxruntime_package import import_onnxruntime


def load(_package: Any, request: Request) -> Peer:
    """The model in a session, driven as tilec's is."""
    decoder, call = request.decoder, _call(request)

    def peer(prompts: Prompts, most: int) -> Generation:
        told = Generation(sum(map(len, prompts)))
        list(batches_of(call, decoder, prompts, most, seeds=range(len(prompts)), told=told))
        return told

    return peer


def _call(request: Request) -> Call:
    """A call of onnxruntime that reads and writes arrays where they are."""
    onnxruntime = import_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = request.threads or 0
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(request.model), options, providers=["CPUExecutionProvider"])
    names = [request.decoder.logits.name, *(each.present for each in request.decoder.caches)]

    def call(feeds: Mapping[str, NDArray[Any]], out: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        if not out:
            return dict(zip(names, session.run(names, dict(feeds)), strict=True))
        binding = session.io_binding()
        values = {id(array): onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in out.values()}
        for name, array in feeds.items():
            value = values.get(id(array))
            if value is None:
                binding.bind_cpu_input(name, np.ascontiguousarray(array))
            else:
                binding.bind_ortvalue_input(name, value)
        for name, array in out.items():
            binding.bind_ortvalue_output(name, values[id(array)])
        free = [name for name in names if name not in out]
        for name in free:
            binding.bind_output(name)
        session.run_with_iobinding(binding)
        return {**dict(zip(free, (value.numpy() for value in binding.get_outputs()[len(out) :]), strict=True)), **out}

    return call
