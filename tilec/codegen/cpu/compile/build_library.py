"""One library per model: compiles kernels and host function, keeps what is already compiled, says how to run it."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tilec.abi.archive import INTERFACE, pack
from tilec.abi.manifest import LibraryFile, Manifest
from tilec.artifact import digest_bytes, write_bytes
from tilec.codegen.cpu.compile.compile_tir import (
    compile_function,
    compile_llvm,
    llvm_target,
    numbers_text,
    threads_text,
    versions,
)
from tilec.codegen.cpu.emit import numbers_function as sizes
from tilec.codegen.cpu.emit.host_function import SYMBOL, host_function
from tilec.codegen.cpu.emit.kernel_function import PrimFunc
from tilec.codegen.launch_table import Launch, PointerTable
from tilec.codegen.model import Model
from tilec.codegen.shape_program import Numbers
from tilec.errors import TilecError
from tilec.spec.cpus import usable_cpus
from tilec.spec.device import Target
from tilec.threads import map_side_by_side

_THREADS = "threads"
_NUMBERS = "numbers"


def compile_model(
    model: Model[PrimFunc], target: Target, folder: Path, cache: Path | None = None, jobs: int | None = None
) -> Manifest:
    """Compile the model's library into `folder`; returns the `runtime` part of 3-kernels.json.

    `cache` and `jobs` as in `build_library`. Raises TilecError when the folder cannot be written.
    """
    if model.calls and not model.started and model.numbers is None:
        return model.manifest(None)
    interface = model.manifest(LibraryFile(SYMBOL, "")).interface
    library = build_library(
        model.functions, model.started, model.table, target, folder, cache, jobs, interface, model.numbers
    )
    return model.manifest(library)


def build_library(
    functions: Mapping[str, PrimFunc],
    launches: Sequence[Launch],
    table: PointerTable,
    target: Target,
    folder: Path,
    cache: Path | None = None,
    jobs: int | None = None,
    interface: str = "",
    numbers: Numbers | None = None,
) -> LibraryFile:
    """Compile `functions` (symbol -> kernel) and the host function that launches them into `folder`, with a function
    that computes the `numbers` of a model with symbols.

    The library is named by the digest of its sources, target and tools and is reused when it is there; so is
    each object file in `cache`; it holds the manifest's `interface`. Compiles `jobs` functions at a time (default:
    one per usable CPU). Raises TilecError when the folder cannot be written.
    """
    printed = {**functions, SYMBOL: host_function(launches, table)}
    texts = {_THREADS: threads_text(target)}
    if numbers is not None:
        printed[sizes.SYMBOL] = sizes.numbers_function(numbers)
        texts[_NUMBERS] = numbers_text(target)
    sources = {symbol: function.script(show_meta=True) for symbol, function in printed.items()} | texts
    tools = f"{llvm_target(target)}\n{versions()}\n"
    members = {symbol: f"{symbol}-{digest_bytes((tools + text).encode())[:16]}.o" for symbol, text in sources.items()}
    file = folder / f"kernels-{digest_bytes(' '.join([*sorted(members.values()), interface]).encode())[:16]}.a"
    if not file.is_file():

        def build(symbol: str) -> bytes:
            cached = cache / members[symbol] if cache else None
            if cached is not None:
                with suppress(OSError):
                    return cached.read_bytes()
            data = compile_llvm(texts[symbol]) if symbol in texts else compile_function(printed[symbol], target)
            if cached is not None:
                with suppress(TilecError):  # a full or read-only cache costs time only
                    write_bytes(cached, data)
            return data

        objects = map_side_by_side(build, list(sources), jobs or len(usable_cpus()))
        seal = (INTERFACE, interface.encode())
        write_bytes(file, pack([seal, *sorted(zip(members.values(), objects, strict=True))]))
    return LibraryFile(file.name, digest_bytes(file.read_bytes()))
