"""One library per model: compiles kernels and host function, keeps what is already compiled, says how to run it."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from tilec.abi.archive import INTERFACE, pack
from tilec.abi.job_layout import ABI
from tilec.abi.manifest import CallSpec, Constant, LibraryFile, Manifest, PortSpec, Segment, WeightsFile
from tilec.artifact import digest_bytes, write_bytes
from tilec.codegen.cpu.compile.compile_tir import compile_function, compile_llvm, llvm_target, threads_text, versions
from tilec.codegen.cpu.emit.host_function import SYMBOL, Signature, host_function
from tilec.codegen.cpu.emit.kernel_function import PrimFunc
from tilec.codegen.cpu.launch_data import Launch
from tilec.spec.cpus import usable_cpus
from tilec.spec.device import Target

_THREADS = "threads"


@dataclass(frozen=True)
class Model:
    """A model ready for compilation: kernels by symbol, their launches in order, and what they run on.

    `arena_bytes` is the size of the memory that arguments of space "arena" lie in; `threads` the default number
    of threads (None: one per usable CPU). Results of `calls` count as inputs behind `inputs`; `taken` as in `Manifest`.
    """

    functions: Mapping[str, PrimFunc]
    launches: tuple[Launch, ...]
    inputs: tuple[PortSpec, ...]
    outputs: tuple[PortSpec, ...]
    arena_bytes: int = 0
    weights: tuple[WeightsFile, ...] = ()
    constants: tuple[Constant, ...] = ()
    threads: int | None = None
    calls: tuple[CallSpec, ...] = ()
    taken: tuple[tuple[int, int], ...] = ()


def compile_model(
    model: Model, target: Target, folder: Path, cache: Path | None = None, jobs: int | None = None
) -> Manifest:
    """Compile the model's library into `folder`; returns the `runtime` part of 3-kernels.json.

    `cache` and `jobs` as in `build_library`. Raises TilecError when the folder cannot be written.
    """
    launches = tuple(launch for launch in model.launches if launch.tasks > 0)
    results = sum(len(call.outputs) for call in model.calls)
    signature = Signature(len(model.inputs) + results, len(model.outputs), len(model.constants))
    manifest = Manifest(
        abi=ABI,
        library=LibraryFile(SYMBOL, ""),
        inputs=model.inputs,
        outputs=model.outputs,
        arena_bytes=model.arena_bytes,
        segments=tuple(_segment(launches, number) for number in range(len(model.calls) + 1)),
        scratch_bytes=max((launch.scratch_bytes for launch in launches), default=0),
        weights=model.weights,
        constants=model.constants,
        threads=model.threads,
        calls=model.calls,
        taken=model.taken,
    )
    if model.calls and not launches:
        return replace(manifest, library=None)
    sealed = manifest.interface
    library = build_library(model.functions, launches, signature, target, folder, cache, jobs, sealed)
    return replace(manifest, library=library)


def _segment(launches: Sequence[Launch], number: int) -> Segment:
    own = [launch for launch in launches if launch.segment == number]
    return Segment(tuple(launch.group for launch in own), max((launch.width for launch in own), default=1))


def build_library(
    functions: Mapping[str, PrimFunc],
    launches: Sequence[Launch],
    signature: Signature,
    target: Target,
    folder: Path,
    cache: Path | None = None,
    jobs: int | None = None,
    interface: str = "",
) -> LibraryFile:
    """Compile `functions` (symbol -> kernel) and the host function that launches them into `folder`.

    The library is named by the digest of its sources, target and tools and is reused when it is there; so is
    each object file in `cache`; it holds the manifest's `interface`. Compiles `jobs` functions at a time (default:
    one per usable CPU). Raises TilecError when the folder cannot be written.
    """
    sources = {symbol: function.script(show_meta=True) for symbol, function in functions.items()}
    host = host_function(launches, signature)
    sources[SYMBOL] = host.script(show_meta=True)
    sources[_THREADS] = threads_text(target)
    tools = f"{llvm_target(target)}\n{versions()}\n"
    members = {symbol: f"{symbol}-{digest_bytes((tools + text).encode())[:16]}.o" for symbol, text in sources.items()}
    file = folder / f"kernels-{digest_bytes(' '.join([*sorted(members.values()), interface]).encode())[:16]}.a"
    if not file.is_file():

        def build(symbol: str) -> bytes:
            kept = cache / members[symbol] if cache else None
            if kept is not None and kept.is_file():
                return kept.read_bytes()
            if symbol == _THREADS:
                data = compile_llvm(sources[symbol])
            else:
                data = compile_function(host if symbol == SYMBOL else functions[symbol], target)
            if kept is not None:
                write_bytes(kept, data)
            return data

        with ThreadPoolExecutor(jobs or len(usable_cpus())) as pool:
            objects = list(pool.map(build, sources))
        sealed = (INTERFACE, interface.encode())
        write_bytes(file, pack([sealed, *sorted(zip(members.values(), objects, strict=True))]))
    return LibraryFile(file.name, digest_bytes(file.read_bytes()))
