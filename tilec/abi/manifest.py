"""Manifest of a compiled model, the `runtime` part of 3-kernels.json: files, tensors, memory sizes, launches."""

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import ClassVar, Literal

from tilec.abi.alignment import ALIGNMENT
from tilec.abi.gpu_code import GpuCode
from tilec.abi.job_layout import ABI
from tilec.abi.shape_program import ShapeProgram
from tilec.artifact import decode, digest_object, encode, read_artifact
from tilec.artifact.filenames import require_inside
from tilec.errors import ArtifactError
from tilec.ir.types import TTYPES, element_bytes

FILE = "3-kernels.json"
KEY = "runtime"

LOADER = "tilec.runtime.cpu.executor:load"
"""Loader of manifests that name none."""


@dataclass(frozen=True)
class TensorSpec:
    """A tensor: its name, tType and shape. Extents that depend on sizes are texts that `ShapeProgram.extents` has."""

    name: str
    ttype: str
    shape: tuple[int | str, ...]

    def __post_init__(self) -> None:
        if self.ttype not in TTYPES:
            raise ValueError(f"tensor {self.name} has the unknown type {self.ttype!r}")
        if any(isinstance(extent, int) and extent < 0 for extent in self.shape):
            raise ValueError(f"tensor {self.name} has a negative extent")

    @property
    def bound_shape(self) -> tuple[int, ...]:
        """The shape of a tensor none of whose extents depends on sizes."""
        sizes = tuple(extent for extent in self.shape if isinstance(extent, int))
        assert len(sizes) == len(self.shape), f"{self.name} has a symbolic shape"
        return sizes


@dataclass(frozen=True)
class OpaqueSpec:
    """An input or output that only onnxruntime touches: its ONNX type and, as far as known, its extents."""

    kind: ClassVar = "opaque"
    name: str
    type: str
    shape: tuple[int | str | None, ...] | None = None


PortSpec = TensorSpec | OpaqueSpec


@dataclass(frozen=True)
class IndexSpec:
    """Range of the elements of input number `input` that `node` of the model takes as indices (ir.graph.IndexRange)."""

    input: int
    extent: int | str
    node: str
    column: tuple[int, int] | None = None
    wraps: bool = True
    besides: int | None = None


@dataclass(frozen=True)
class DefaultSpec:
    """An input whose value was compiled in (ir.graph.Default)."""

    name: str
    ttype: str
    shape: tuple[int, ...]
    sha256: str = ""


@dataclass(frozen=True)
class LibraryFile:
    """The library of object files beside 3-kernels.json."""

    file: str
    sha256: str

    def __post_init__(self) -> None:
        require_inside(self.file)


@dataclass(frozen=True)
class WeightsFile:
    """A file that holds constants; its path is relative to the folder of 3-kernels.json."""

    file: str
    bytes: int
    sha256: str

    def __post_init__(self) -> None:
        require_inside(self.file)


@dataclass(frozen=True)
class Constant:
    """`bytes` bytes at byte `offset` of `weights[file]`."""

    file: int
    offset: int
    bytes: int


@dataclass(frozen=True)
class Segment:
    """The launches between two calls: the group of each that has tasks, and the most threads that any of them can
    use."""

    groups: tuple[str, ...]
    width: int

    @property
    def launches(self) -> int:
        """Their number."""
        return len(self.groups)


@dataclass(frozen=True)
class CallInput:
    """An operand of a call under its `name` there: input, output, result or constant number `at`, or byte `at` of the
    arena; `tensor` has its type and shape where it lies in compiled memory. In a model with symbols `at` counts the
    arenas, and `offset` is the position in the numbers of the byte."""

    name: str
    space: Literal["input", "output", "result", "constant", "arena"]
    at: int
    tensor: TensorSpec | None = None
    offset: int | None = None


@dataclass(frozen=True)
class CallOutput:
    """A value that a call computes under its `name` there: result number `at`; `tensor` has the type and shape that
    compiled code expects."""

    name: str
    at: int
    tensor: TensorSpec | None = None


@dataclass(frozen=True)
class CallSpec:
    """A cluster of nodes that onnxruntime runs (B19); `data` are the files that its own file refers to. The ends of a
    serial loop are calls without a file: see `tilec.ir.graph.Call`."""

    model: LibraryFile
    inputs: tuple[CallInput, ...]
    outputs: tuple[CallOutput, ...]
    data: tuple[LibraryFile, ...] = ()
    loop: Literal["", "start", "end"] = ""
    carried: int = 0


@dataclass(frozen=True)
class Manifest:
    """Everything that a session needs of a compiled model.

    Segment 0, call 0, segment 1 and so on run in turn. `scratch_bytes` is the working memory of each thread, `taken`
    says which outputs are results of calls (output -> result); `threads` is the default number of threads (None: one
    per usable CPU); `loader` the function, as `module:name`, that opens the library. `ranges` are checked in every run;
    `defaults` are further inputs, which may have no other value than that.

    A model with symbols has `sizes`: `arena_bytes` and the widths of its segments stand there, and working memory that
    depends on sizes. `gpu` are the kernels of a model for a GPU, which has no library.

    `states` are pairs of an input and the output that is its memory updated in place: where they lie apart, the input
    is copied to the output before a run.
    """

    abi: int
    library: LibraryFile | None
    inputs: tuple[PortSpec, ...]
    outputs: tuple[PortSpec, ...]
    arena_bytes: int
    segments: tuple[Segment, ...]
    scratch_bytes: int = 0
    weights: tuple[WeightsFile, ...] = ()
    constants: tuple[Constant, ...] = ()
    threads: int | None = None
    calls: tuple[CallSpec, ...] = ()
    taken: tuple[tuple[int, int], ...] = ()
    loader: str = LOADER
    ranges: tuple[IndexSpec, ...] = ()
    sizes: ShapeProgram | None = None
    gpu: GpuCode | None = None
    defaults: tuple[DefaultSpec, ...] = ()
    states: tuple[tuple[int, int], ...] = ()

    @property
    def interface(self) -> str:
        """sha256 of the facts that compiled code relies on: counts, types, shapes, sizes and alignment.

        The library holds it too: with another arena or shape the code would touch memory that is not there.
        """
        everything = encode(self)
        plain = {name: everything.get(name) for name in ("abi", "arena_bytes", "inputs", "outputs", "scratch_bytes")}
        calls = [{name: call.get(name) for name in ("inputs", "outputs")} for call in everything.get("calls", ())]
        more = {"segments": everything["segments"], "taken": everything.get("taken"), "calls": calls}
        more |= {name: everything[name] for name in ("sizes", "states") if name in everything}
        return digest_object({**plain, **more, "constants": [(c.bytes, c.offset % ALIGNMENT) for c in self.constants]})

    @property
    def results(self) -> int:
        """Number of values that the calls compute."""
        return sum(len(call.outputs) for call in self.calls)

    def __post_init__(self) -> None:
        if len(self.segments) != len(self.calls) + 1:
            raise ValueError(f"{len(self.calls)} calls lie between {len(self.segments)} segments")
        if self.library is None and self.gpu is None and any(segment.launches for segment in self.segments):
            raise ValueError("there are launches and no library")
        if self.gpu is not None:
            self._check_launches(self.gpu)
        for i, constant in enumerate(self.constants):
            if not 0 <= constant.file < len(self.weights):
                raise ValueError(f"constant {i} names weights file {constant.file}, there are {len(self.weights)}")
            size = self.weights[constant.file].bytes
            if constant.offset < 0 or constant.bytes < 0 or constant.offset + constant.bytes > size:
                raise ValueError(f"constant {i} lies outside its weights file")
        for each in self.ranges:
            if not 0 <= each.input < len(self.inputs) or isinstance(self.inputs[each.input], OpaqueSpec):
                raise ValueError(f"there is a range of input {each.input}, which is no tensor")
            if each.column is not None and not 0 <= each.column[0] < len(self.inputs[each.input].shape or ()):
                raise ValueError(f"there is a range of a dimension that input {each.input} does not have")
        for given, made in self.states:
            if not (0 <= given < len(self.inputs) and 0 <= made < len(self.outputs)):
                raise ValueError(f"input {given} and output {made} are a state, and are not there")
            one, other = self.inputs[given], self.outputs[made]
            same = isinstance(one, TensorSpec) and isinstance(other, TensorSpec) and one.shape == other.shape
            if not same:
                raise ValueError(f"{one.name} and {other.name} are a state, and have not the same shape")
        self._check_sizes()
        module, _, function = self.loader.partition(":")
        if not all(name.isidentifier() for name in (*module.split("."), function)):
            raise ValueError(f"{self.loader!r} names no loader as module:function")
        self._check_calls()

    def _check_launches(self, code: GpuCode) -> None:
        """Raise ValueError for launches on a GPU that are not those of the segments, or that leave their memory."""
        for number, segment in enumerate(self.segments):
            if tuple(launch.group for launch in code.segment(number)) != segment.groups:
                raise ValueError(f"the launches of segment {number} are not those of its groups")
        counts = {
            "input": len(self.inputs) + self.results,
            "output": len(self.outputs),
            "constant": len(self.constants),
            "arena": 1 if self.sizes is None else len(self.sizes.arenas),
        }
        for launch in code.launches:
            for each in launch.arguments:
                known = [size for size in (each.offset, each.bytes) if isinstance(size, int)]
                if not 0 <= each.index < counts[each.space] or min(known, default=0) < 0:
                    raise ValueError(f"{launch.symbol} has the argument {each.space} {each.index}, which is not there")
                if each.space == "arena" and self.sizes is None and sum(known) > self.arena_bytes:
                    raise ValueError(f"{launch.symbol} has an argument that lies outside the arena")

    def _check_sizes(self) -> None:
        """Raise ValueError for an extent that no number stands for, and for a symbol that no dimension defines."""
        operands = [each.tensor for call in self.calls for each in call.inputs]
        operands += [each.tensor for call in self.calls for each in call.outputs]
        tensors = [each for each in (*self.inputs, *self.outputs, *operands) if isinstance(each, TensorSpec)]
        known = self.sizes.extents if self.sizes is not None else {}
        for spec in tensors:
            for extent in spec.shape:
                if isinstance(extent, str) and extent not in known:
                    raise ValueError(f"tensor {spec.name} has the extent {extent!r}, which no number stands for")
        if any(isinstance(each.extent, str) and each.extent not in known for each in self.ranges):
            raise ValueError("a range of indices has an extent that no number stands for")
        if self.sizes is None:
            return
        counts = {len(self.sizes.tasks), len(self.sizes.widths), len(self.sizes.scratch)}
        if counts - {len(self.segments)} or any(
            len(tasks) != segment.launches for tasks, segment in zip(self.sizes.tasks, self.segments, strict=True)
        ):
            raise ValueError("the numbers of tasks and of working memory are not those of the launches")
        results = [each.tensor for call in self.calls for each in call.outputs]
        for symbol in self.sizes.symbols:
            places = self.inputs if symbol.space == "input" else results
            place = places[symbol.at] if 0 <= symbol.at < len(places) else None
            shape = place.shape if isinstance(place, TensorSpec) else ()
            plain = (symbol.factor, symbol.constant) == (1, 0)
            if not 0 <= symbol.dim < len(shape) or (plain and shape[symbol.dim] != symbol.name):
                raise ValueError(f"no dimension defines the symbol {symbol.name!r}")

    def _check_calls(self) -> None:
        """Raise ValueError for an operand of a call, or an output, whose place does not exist."""
        known = {"input": len(self.inputs), "output": len(self.outputs), "constant": len(self.constants)}
        results = 0
        for call in self.calls:
            for read in call.inputs:
                size = 1
                if read.space in ("arena", "constant"):
                    if read.tensor is None:
                        raise ValueError(f"{read.name} has no type")
                    if read.space == "arena" and self.sizes is not None:
                        self._check_offset(read, self.sizes)
                        continue
                    size = prod(read.tensor.bound_shape) * element_bytes(read.tensor.ttype)
                if read.space == "constant" and read.at < len(self.constants) and size > self.constants[read.at].bytes:
                    raise ValueError(f"{read.name} is larger than constant {read.at}")
                most = (
                    self.arena_bytes - size if read.space == "arena" else {**known, "result": results}[read.space] - 1
                )
                if not 0 <= read.at <= most:
                    raise ValueError(f"{read.name} is read from {read.space} {read.at}, which is not there")
            results += len(call.outputs)
        if any(not (0 <= output < len(self.outputs) and 0 <= result < results) for output, result in self.taken):
            raise ValueError("an output is taken from a result that is not there")
        numbers = (self.arena_bytes, self.scratch_bytes, *(n for s in self.segments for n in (s.launches, s.width)))
        if min(numbers) < 0:
            raise ValueError(f"{min(numbers)} bytes or launches")

    @staticmethod
    def _check_offset(read: CallInput, sizes: ShapeProgram) -> None:
        """Raise ValueError for an operand in an arena, or at an offset, that a model with symbols does not have."""
        known = read.offset is not None and 0 <= read.offset < len(sizes.numbers)
        if not known or not 0 <= read.at < len(sizes.arenas):
            raise ValueError(f"{read.name} is read from arena {read.at}, number {read.offset}, which is not there")


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
