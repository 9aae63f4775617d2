"""What running needs to know of a compiled model: the `runtime` part of 3-kernels.json."""

from dataclasses import dataclass
from pathlib import Path

from tilec.artifact import decode, read_artifact
from tilec.errors import ArtifactError
from tilec.ir.types import TTYPES
from tilec.runtime.layout import ABI

FILE = "3-kernels.json"
KEY = "runtime"


@dataclass(frozen=True)
class TensorSpec:
    """An input or output: its name, tType and bound shape."""

    name: str
    ttype: str
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.ttype not in TTYPES:
            raise ValueError(f"tensor {self.name} has the unknown type {self.ttype!r}")
        if any(extent < 0 for extent in self.shape):
            raise ValueError(f"tensor {self.name} has a negative extent")


@dataclass(frozen=True)
class LibraryFile:
    """The library of object files beside 3-kernels.json."""

    file: str
    sha256: str


@dataclass(frozen=True)
class WeightsFile:
    """A file that holds constants; its path is relative to the folder of 3-kernels.json."""

    file: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Constant:
    """`bytes` bytes at byte `offset` of `weights[file]`."""

    file: int
    offset: int
    bytes: int


@dataclass(frozen=True)
class Manifest:
    """Everything that a session needs.

    `launches` counts the launches of the host function that have tasks, `width` is the most threads that any
    of them can use, `scratch_bytes` the working memory of each thread; `threads` the default number of
    threads (None: one per usable CPU).
    """

    abi: int
    library: LibraryFile
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    arena_bytes: int
    launches: int
    width: int
    scratch_bytes: int = 0
    weights: tuple[WeightsFile, ...] = ()
    constants: tuple[Constant, ...] = ()
    threads: int | None = None

    def __post_init__(self) -> None:
        for i, constant in enumerate(self.constants):
            if not 0 <= constant.file < len(self.weights):
                raise ValueError(f"constant {i} names weights file {constant.file}, there are {len(self.weights)}")
            held = self.weights[constant.file].bytes
            if constant.offset < 0 or constant.bytes < 0 or constant.offset + constant.bytes > held:
                raise ValueError(f"constant {i} lies outside its weights file")


def read_manifest(folder: Path) -> Manifest:
    """The manifest of the model compiled into `folder`.

    Raises UsageError when there is none, ArtifactError when it is malformed or of another version.
    """
    path = folder / FILE
    body = read_artifact(path, "kernels").body
    if KEY not in body:
        raise ArtifactError(
            "this model cannot run here: it was compiled for a device without a code generator",
            str(path),
            "Compile it with --device host.",
        )
    manifest = decode(Manifest, body[KEY], str(path), KEY)
    if manifest.abi != ABI:
        raise ArtifactError(
            f"compiled for run-time interface {manifest.abi}, this tilec has {ABI}",
            str(path),
            "Run `tilec codegen` again.",
        )
    return manifest
