"""llama.cpp by the package xllamacpp, which reads a GGUF file of the same model."""

from __future__ import annotations

from typing import Any

from tilec.decoding.generate import Generation
from tilec.decoding.peers.request import Peer, Prompts, Request
from tilec.errors import TilecError, UnsupportedError, UsageError


def load(xllamacpp: Any, request: Request) -> Peer:
    """The model of a GGUF file. Raises UsageError where none is named."""
    if request.gguf is None:
        hint = "Write one with llama.cpp's convert_hf_to_gguf.py and name it: --gguf FILE."
        raise UsageError("llama.cpp reads no ONNX files, but GGUF files", "--against", hint)
    if not request.gguf.is_file():
        raise UsageError("there is no such file", str(request.gguf), "Name a GGUF file of the same model.")
    servers: dict[int, Any] = {}
    tokens: dict[tuple[int, ...], list[int]] = {}

    def peer(prompts: Prompts, most: int) -> Generation:
        if len(prompts) > 1:
            raise UnsupportedError("llama.cpp is asked for one prompt at a time", hint="Leave llama.cpp out.")
        (prompt,) = prompts
        room = len(prompt) + most
        if room not in servers:
            servers.clear()
            servers[room] = xllamacpp.Server(_parameters(xllamacpp, request, room))
        asked = (*prompt, most)
        if asked not in tokens:
            tokens[asked] = _tokens(servers[room], [*prompt], most)
        return _generation(servers[room], [*prompt], tokens[asked])

    return peer


def _parameters(xllamacpp: Any, request: Request, room: int) -> Any:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(request.gguf)
    parameters.n_ctx, parameters.n_parallel, parameters.verbosity = room, 1, -1
    if request.threads is not None:
        parameters.cpuparams.n_threads = request.threads
        parameters.cpuparams_batch.n_threads = request.threads
    return parameters


def _tokens(server: Any, prompt: list[int], most: int) -> list[int]:
    """Those that are made, which llama.cpp tells beside probabilities: these take time."""
    told = _answer(server, prompt, most, logprobs=1)["choices"][0]["logprobs"]["content"]
    return [each["id"] for each in told]


def _generation(server: Any, prompt: list[int], tokens: list[int]) -> Generation:
    """What making the tokens takes: the first one comes with the prompt in llama.cpp's times."""
    times = _answer(server, prompt, len(tokens))["timings"]
    later = len(tokens) - 1
    steps = [times["predicted_ms"] / 1e3 / later] * later if later else []
    return Generation(len(prompt), [tokens], times["prompt_ms"] / 1e3, steps)


def _answer(server: Any, prompt: list[int], most: int, **more: Any) -> Any:
    asked = {"prompt": prompt, "n_predict": most, "temperature": 0.0, "top_k": 1, "ignore_eos": True}
    answer = server.handle_completions({**asked, "cache_prompt": False, **more})
    if "timings" not in answer:
        reason = answer.get("error", answer)
        raise TilecError(f"llama.cpp cannot run the model: {reason}", hint="Leave llama.cpp out of --against.")
    return answer
