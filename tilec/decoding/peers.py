"""The same decoder on other runtimes, for comparisons: onnxruntime with shared caches, onnxruntime-genai."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilec.decoding.decoder import Decoder
from tilec.decoding.generate import Call, Generation, batches_of
from tilec.errors import TilecError, UnavailableError, UnsupportedError, UsageError
from tilec.onnxruntime_package import import_onnxruntime

PEERS = ("onnxruntime", "genai")

Prompts = Sequence[Sequence[int]]

Peer = Callable[[Prompts, int], Generation]
"""Greedy tokens of prompts beside each other, as many of each as are asked for."""


def peer_of(name: str, model: Path, decoder: Decoder, threads: int | None) -> Peer:
    """A runtime with the model loaded. Raises UsageError for an unknown one, UnavailableError for one that is not
    installed."""
    if name == "genai":
        with _told(name):
            return _genai(model.parent, threads)
    if name != "onnxruntime":
        raise UsageError(f"{name!r} is no runtime that generates", "--against", f"Take of {', '.join(PEERS)}.")
    decoder = decoder.in_the_model
    with _told(name):
        call = _onnxruntime(model, decoder, threads)

    def peer(prompts: Prompts, most: int) -> Generation:
        told = Generation(sum(map(len, prompts)))
        with _told(name):
            list(batches_of(call, decoder, prompts, most, seeds=range(len(prompts)), told=told))
        return told

    return peer


@contextmanager
def _told(name: str) -> Iterator[None]:
    """What fails inside is the peer's. Raises TilecError that says so."""
    try:
        yield
    except TilecError:
        raise
    except Exception as error:  # exceptions of peers share no base class
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise TilecError(f"{name} cannot run the model: {reason}", hint=f"Leave {name} out of --against.") from error


def _onnxruntime(model: Path, decoder: Decoder, threads: int | None) -> Call:
    """A call of onnxruntime that reads and writes arrays where they are."""
    onnxruntime = import_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or 0
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    names = [decoder.logits.name, *(each.present for each in decoder.caches)]

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


def _genai(folder: Path, threads: int | None) -> Peer:
    """onnxruntime-genai's own loop, in its own configuration."""
    try:
        import onnxruntime_genai as genai
    except ImportError as error:
        hint = "Run `pip install onnxruntime-genai`."
        raise UnavailableError("onnxruntime-genai is not installed", hint=hint) from error
    config = genai.Config(str(folder))
    if threads is not None:
        options = {"intra_op_num_threads": threads}
        config.overlay(json.dumps({"model": {"decoder": {"session_options": options}}}))
    model = genai.Model(config)

    def peer(prompts: Prompts, most: int) -> Generation:
        if len({len(each) for each in prompts}) > 1:
            raise UnsupportedError("genai takes tokens of prompts of one length alone", hint="Leave it out.")
        parameters = genai.GeneratorParams(model)
        longest = len(prompts[0]) + most
        parameters.set_search_options(do_sample=False, max_length=longest, min_length=longest, batch_size=len(prompts))
        told = Generation(sum(map(len, prompts)), [[] for _ in prompts])
        with _told("genai"):
            generator = genai.Generator(model, parameters)
            begin = time.perf_counter()
            generator.append_tokens(np.array(prompts, np.int32))
            for _ in range(most):
                generator.generate_next_token()
                for row, token in zip(told.rows, generator.get_next_tokens(), strict=True):
                    row.append(int(token))
                told.note(time.perf_counter() - begin)
                begin = time.perf_counter()
        return told

    return peer
