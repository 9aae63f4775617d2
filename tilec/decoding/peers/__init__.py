"""The same decoder on other runtimes, for comparisons."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from tilec.decoding.decoder import Decoder
from tilec.decoding.generate import Generation
from tilec.decoding.peers.request import Peer, Prompts, Request
from tilec.errors import TilecError, UnavailableError, UsageError

PEERS = {
    "onnxruntime": ("on_onnxruntime", "onnxruntime", "onnxruntime"),
    "genai": ("on_genai", "onnxruntime_genai", "onnxruntime-genai"),
    "openvino": ("on_openvino", "openvino", "openvino"),
    "llama.cpp": ("on_llama_cpp", "xllamacpp", "xllamacpp"),
}
"""Name of a runtime -> the module here that loads it, the package that it needs, and what pip calls that."""


def peer_of(name: str, model: Path, decoder: Decoder, threads: int | None, gguf: Path | None = None) -> Peer:
    """A runtime with the model loaded; llama.cpp reads its own file. Raises UsageError for an unknown one,
    UnavailableError for one that is not installed, TilecError for what it cannot run."""
    if name not in PEERS:
        raise UsageError(f"{name!r} is no runtime that generates", "--against", f"Take of {', '.join(PEERS)}.")
    module, package, distribution = PEERS[name]
    try:
        imported = import_module(package)
    except ImportError as error:
        raise UnavailableError(f"{distribution} is not installed", hint=f"Run `pip install {distribution}`.") from error
    request = Request(model, decoder.in_the_model, threads, gguf)
    with _told(name):
        load: Callable[[Any, Request], Peer] = import_module(f"{__name__}.{module}").load
        run = load(imported, request)

    def peer(prompts: Prompts, most: int) -> Generation:
        with _told(name):
            return run(prompts, most)

    return peer


@contextmanager
def _told(name: str) -> Iterator[None]:
    """What fails inside is the peer's. Raises TilecError that says so."""
    try:
        yield
    except TilecError:
        raise
    except Exception as error:  # exceptions of peers share no base class
        lines = [line.strip() for line in str(error).splitlines()]
        reason = next((line for line in lines if line and not line.startswith(_PLACES)), type(error).__name__)
        raise TilecError(f"{name} cannot run the model: {reason}", hint=f"Leave {name} out of --against.") from error


_PLACES = ("Exception from", "Check ", "Loading ")
"""Lines that tell where in a peer's code something fails."""
