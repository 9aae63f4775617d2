"""Loads a library of object files through tvm_ffi's object loader: no tvm, no compiler, no linker."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilec.artifact import digest_bytes
from tilec.errors import ArtifactError, UnavailableError
from tilec.runtime.archive import unpack
from tilec.runtime.manifest import LibraryFile


@dataclass(frozen=True)
class Library:
    """The entry points of a loaded library; the code stays in memory while this object lives.

    `run(job)` runs a job on the calling thread, `work(pool, worker)` is a worker's life, `stop(pool)` ends
    it, `pause(count)` spins. All of them release Python's lock.
    """

    module: Any
    run: Callable[[int], None]
    work: Callable[[int, int], None]
    stop: Callable[[int], None]
    pause: Callable[[int], None]


def load_library(folder: Path, library: LibraryFile) -> Library:
    """Load the library if its bytes are those that were compiled.

    Raises ArtifactError when it is missing, has another sha256 or cannot be linked, UnavailableError without
    the object loader.
    """
    path = folder / library.file
    again = "Run `tilec codegen` again."
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ArtifactError(f"cannot read the library: {error.strerror}", str(path), again) from error
    if digest_bytes(data) != library.sha256:
        raise ArtifactError("the library is not the one that was compiled", str(path), again)
    try:
        import tvm_ffi_orcjit
    except ImportError as error:
        raise UnavailableError(
            f"the object loader is not installed: {error}", hint="Install apache-tvm-ffi-orcjit."
        ) from error
    objects = [content for _, content in unpack(data, str(path))]
    try:
        module = tvm_ffi_orcjit.default_session().load_module(objects)
        entries = [module.get_function(f"tilec_{name}") for name in ("run", "work", "stop", "pause")]
    except (RuntimeError, AttributeError) as error:
        raise ArtifactError(f"the library cannot be linked: {error}", str(path), again) from error
    return Library(module, *entries)
