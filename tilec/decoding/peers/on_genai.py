"""onnxruntime-genai's own loop, in its own configuration."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np

from tilec.decoding.generate import Generation
from tilec.decoding.peers.request import Peer, Prompts, Request, require_one_length


def load(genai: Any, request: Request) -> Peer:
    """The model of a folder that its builder wrote."""
    config = genai.Config(str(request.model.parent))
    if request.threads is not None:
        options = {"intra_op_num_threads": request.threads}
        config.overlay(json.dumps({"model": {"decoder": {"session_options": options}}}))
    model = genai.Model(config)

    def peer(prompts: Prompts, most: int) -> Generation:
        require_one_length("genai", prompts)
        longest = len(prompts[0]) + most
        parameters = genai.GeneratorParams(model)
        parameters.set_search_options(do_sample=False, max_length=longest, min_length=longest, batch_size=len(prompts))
        told = Generation(sum(map(len, prompts)), [[] for _ in prompts])
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
