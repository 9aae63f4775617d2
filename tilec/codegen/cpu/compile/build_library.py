"""One library per model: the object files of its kernels and of the functions beside them, and how to run it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tilec.abi.archive import INTERFACE, pack
from tilec.abi.manifest import LibraryFile, Manifest
from tilec.artifact import digest_bytes, write_bytes
from tilec.codegen.cpu import calls
from tilec.codegen.cpu.kernel_source import HOST_SYMBOL, HostSource, ObjectFile
from tilec.codegen.launch_table import Launch, PointerTable
from tilec.codegen.model import Model
from tilec.codegen.shape_program import Numbers
from tilec.spec.device import Target

if TYPE_CHECKING:
    from tilec.calls_ahead import CallsAhead
    from tilec.codegen.cpu.emit.kernel_function import PrimFunc


def compile_model(
    model: Model[PrimFunc | ObjectFile],
    target: Target,
    folder: Path,
    cache: Path | None = None,
    jobs: int | None = None,
    ahead: CallsAhead | None = None,
) -> Manifest:
    """Compile the model's library into `folder`; returns the `runtime` part of 3-kernels.json.

    `cache`, `jobs` and `ahead` as in `build_library`. Raises TilecError when the folder cannot be written.
    """
    if model.calls and not model.started and model.numbers is None:
        return model.manifest(None)
    interface = model.manifest(LibraryFile(HOST_SYMBOL, "")).interface
    library = build_library(
        model.functions, model.started, model.table, target, folder, cache, jobs, interface, model.numbers, ahead
    )
    return model.manifest(library)


def build_library(
    functions: Mapping[str, PrimFunc | ObjectFile],
    launches: Sequence[Launch],
    table: PointerTable,
    target: Target,
    folder: Path,
    cache: Path | None = None,
    jobs: int | None = None,
    interface: str = "",
    numbers: Numbers | None = None,
    ahead: CallsAhead | None = None,
) -> LibraryFile:
    """Compile those of the `functions` (symbol -> kernel) that are not yet, and the host function that launches all,
    into `folder`, with a function that computes the `numbers` of a model with symbols.

    The library is named by the digest of its sources, target and tools and stays when it is there as it is; each object
    file in `cache` is reused; it holds the manifest's `interface`. Compiles `jobs` functions at a time (default: one
    per usable CPU), the host function where calls are made `ahead`. Raises TilecError when the folder cannot be
    written.
    """
    host = HostSource(tuple(launches), table, numbers, target, cache)
    beside = calls.compile_host(host) if ahead is None else ahead.result("host", calls.compile_host, host)
    objects = [*_compiled(functions, target, cache, jobs).values(), *beside.values()]
    members = sorted((each.name, each.data) for each in objects)
    file = folder / f"kernels-{digest_bytes(' '.join([*(name for name, _ in members), interface]).encode())[:16]}.a"
    library = pack([(INTERFACE, interface.encode()), *members])
    if not file.is_file() or file.read_bytes() != library:
        write_bytes(file, library)
    return LibraryFile(file.name, digest_bytes(library))


def _compiled(
    functions: Mapping[str, PrimFunc | ObjectFile], target: Target, cache: Path | None, jobs: int | None
) -> dict[str, ObjectFile]:
    done = {symbol: each for symbol, each in functions.items() if isinstance(each, ObjectFile)}
    rest = {symbol: each for symbol, each in functions.items() if not isinstance(each, ObjectFile)}
    if not rest:
        return done
    from tilec.codegen.cpu.compile.object_files import object_files

    return done | object_files(rest, {}, target, cache, jobs)
