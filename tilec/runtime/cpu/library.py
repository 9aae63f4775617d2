"""Loads a library of object files through the object loader: no tvm, no compiler, no linker."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tilec.abi import job_layout
from tilec.abi.archive import INTERFACE, unpack
from tilec.abi.manifest import LibraryFile
from tilec.artifact import digest_bytes
from tilec.errors import ArtifactError, UnavailableError
from tilec.runtime.cpu.object_loader import Linked, LinkError, object_loader


@dataclass(frozen=True)
class Library:
    """The entry points of a loaded library; the code stays in memory while this object lives.

    `run(job)` runs a job on the calling thread, `work(pool, worker)` is a worker's life, `stop(pool)` ends
    it, `pause(count)` spins; `numbers(numbers, part)` computes those of a model with symbols. All of them release
    Python's lock.
    """

    module: Linked
    run: Callable[[int], None]
    work: Callable[[int, int], None]
    stop: Callable[[int], None]
    pause: Callable[[int], None]
    numbers: Callable[[int, int], None] | None = None


def load_library(folder: Path, library: LibraryFile, interface: str, sized: bool = False) -> Library:
    """Load the library if its bytes are those that were compiled, for a manifest of this `interface`, which is that of
    a model with symbols if it is `sized`.

    Raises ArtifactError when it is missing, has another sha256 or interface or cannot be linked, UnavailableError
    without the object loader.
    """
    path = folder / library.file
    again = "Run `tilec codegen` again."
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ArtifactError(f"cannot read the library: {error.strerror}", str(path), again) from error
    if digest_bytes(data) != library.sha256:
        raise ArtifactError("the library is not the one that was compiled", str(path), again)
    members = dict(unpack(data, str(path)))
    if members.pop(INTERFACE, b"").decode(errors="replace") != interface:
        raise ArtifactError("3-kernels.json is not the one that the library was compiled for", str(folder), again)
    try:
        loader = object_loader()
    except (ImportError, OSError, LinkError) as error:
        raise UnavailableError(
            f"the object loader is not installed: {error}", hint="Install apache-tvm-ffi-orcjit."
        ) from error
    objects = list(members.values())
    try:
        module = loader.link(objects)
        entry = module.function(job_layout.ENTRY)
        numbers = module.function(job_layout.NUMBERS_ENTRY)() if sized else None
    except LinkError as error:
        raise ArtifactError(f"the library cannot be linked: {error}", str(path), again) from error
    run, work, stop, pause = (
        ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * parameters)(entry(number))
        for number, parameters in enumerate(job_layout.ENTRY_PARAMETERS)
    )
    fill = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(numbers) if numbers is not None else None
    return Library(module, run, work, stop, pause, fill)
