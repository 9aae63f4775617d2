"""The compiled model of a request in memory: compiled unless the cache has it, compiled again where that is damaged."""

import logging

from tilec.api.recording import Runnable, recorded
from tilec.api.request import Request
from tilec.errors import ArtifactError

log = logging.getLogger("tilec")


def load_compiled(request: Request, threads: int | None) -> Runnable:
    """The compiled model of a request with a key. Raises TilecError."""
    from tilec.api.compiling import compiled_folder, damaged

    folder = compiled_folder(request)
    from tilec.runtime import load  # once it is there: it may be compiled for long

    try:
        return recorded(load(folder, threads=threads), folder)
    except ArtifactError as error:
        log.warning("compiling again: %s", error.message)
    damaged(folder)
    anew = compiled_folder(request)
    return recorded(load(anew, threads=threads), anew)
