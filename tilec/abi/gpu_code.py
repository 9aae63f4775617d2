"""The part of a manifest that kernels of a GPU have: their text, what it was compiled to, and the launches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tilec.abi.shape_program import NUMBERS
from tilec.artifact.filenames import require_inside

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Space = Literal["input", "output", "arena", "constant"]

Size = int | str
"""An integer, or in a model with symbols the position of a number of its shape program, `numbers[7]`."""


def size_at(size: Size, numbers: "Sequence[int] | NDArray[np.int64]") -> int:
    """The value of a launch's size where a model's numbers are these."""
    return size if isinstance(size, int) else int(numbers[int(size[len(NUMBERS) + 1 : -1])])


@dataclass(frozen=True)
class CodeFile:
    """A file beside 3-kernels.json, by its path relative to that."""

    file: str
    sha256: str

    def __post_init__(self) -> None:
        require_inside(self.file)


@dataclass(frozen=True)
class GpuKernel:
    """An entry point of the text and how it is launched: blocks, threads of a block, bytes of dynamic shared memory of
    a block; `kernel` is its tile program's name. Blocks and bytes that depend on symbols are 0 here: launches tell
    them. Where it was compiled, `registers` of a thread, and the bytes that it stores to and loads from its stack for
    want of more."""

    symbol: str
    kernel: str
    grid: int
    block: int
    shared_bytes: int = 0
    registers: int | None = None
    spilled_bytes: int | None = None

    def __post_init__(self) -> None:
        if not self.symbol.isidentifier():
            raise ValueError(f"{self.symbol!r} is no name of a function")
        if self.grid < 0 or not 1 <= self.block <= 1024 or self.shared_bytes < 0:
            raise ValueError(f"kernel {self.symbol} cannot be launched on {self.grid} blocks of {self.block} threads")


@dataclass(frozen=True)
class GpuArgument:
    """The memory behind a pointer: `bytes` bytes from byte `offset` of an input, output, constant or arena number
    `index`; results of calls count as inputs behind the model's own. `writes` if the kernel stores there."""

    space: Space
    index: int
    offset: Size
    bytes: Size
    writes: bool = False


@dataclass(frozen=True)
class GpuLaunch:
    """One launch of a kernel, by its symbol, in its segment, on arguments in the order of its parameters, behind which
    it takes `sizes`, integers of 32 bits. In a model with symbols it tells how many blocks there are, none at sizes of
    another variant of its group, and their bytes of shared memory."""

    symbol: str
    arguments: tuple[GpuArgument, ...]
    segment: int = 0
    group: str = ""
    sizes: tuple[Size, ...] = ()
    grid: Size | None = None
    shared_bytes: Size | None = None


@dataclass(frozen=True)
class GpuCode:
    """Kernels for a `processor` (sm_80, gfx90a) as text that includes `headers`, and what it was compiled to: `binary`
    for this processor, `portable` (PTX) for later ones; launches in the order of the segments' groups. A warp of the
    processor has so many `lanes`."""

    processor: str
    text: CodeFile
    kernels: tuple[GpuKernel, ...]
    launches: tuple[GpuLaunch, ...]
    headers: tuple[CodeFile, ...] = ()
    binary: CodeFile | None = None
    portable: CodeFile | None = None
    lanes: int = 32

    def __post_init__(self) -> None:
        known = {kernel.symbol for kernel in self.kernels}
        for launch in self.launches:
            if launch.symbol not in known:
                raise ValueError(f"there is a launch of {launch.symbol!r}, which is no kernel")

    def kernel(self, symbol: str) -> GpuKernel:
        """The kernel of a symbol."""
        return next(each for each in self.kernels if each.symbol == symbol)

    def segment(self, number: int) -> tuple[GpuLaunch, ...]:
        """The launches of a segment, in order."""
        return tuple(launch for launch in self.launches if launch.segment == number)
