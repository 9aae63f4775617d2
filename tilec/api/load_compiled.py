"""The compiled model of a request in memory: compiled unless the cache has it, compiled again where that is damaged."""

import logging
from collections.abc import Mapping
from typing import Any, Protocol

from tilec.api.compiling import compiled_folder, damaged
from tilec.api.request import Request
from tilec.errors import ArtifactError

log = logging.getLogger("tilec")


class Runnable(Protocol):
    """Something that computes the outputs: a loaded model, or onnxruntime for the time being."""

    def run(self, feeds: "Mapping[str, Any]", out: "Mapping[str, Any] | None" = None) -> "dict[str, Any]":
        """Outputs by name."""


def load_compiled(request: Request, threads: int | None) -> Runnable:
    """The compiled model of a request with a key. Raises TilecError."""
    from tilec.runtime import load

    folder = compiled_folder(request)
    try:
        return load(folder, threads=threads)
    except ArtifactError as error:
        log.warning("compiling again: %s", error.message)
    damaged(folder)
    return load(compiled_folder(request), threads=threads)
