"""What another runtime is asked to load, and how it is asked to generate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilec.decoding.decoder import Decoder
from tilec.decoding.generate import Generation
from tilec.errors import UnsupportedError

Prompts = Sequence[Sequence[int]]

Peer = Callable[[Prompts, int], Generation]
"""Greedy tokens of prompts beside each other, as many of each as are asked for."""


@dataclass(frozen=True, slots=True)
class Request:
    """The ONNX file, its ports by their role, threads (None: the runtime's choice), and a file for llama.cpp."""

    model: Path
    decoder: Decoder
    threads: int | None
    gguf: Path | None = None


def require_one_length(name: str, prompts: Prompts) -> None:
    """Raises UnsupportedError for prompts that a runtime cannot fill up."""
    if len({len(each) for each in prompts}) > 1:
        raise UnsupportedError(f"{name} takes prompts of one length alone", hint=f"Leave {name} out of --against.")
