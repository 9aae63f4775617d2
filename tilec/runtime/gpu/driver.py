"""What a session asks of a GPU's driver: memory, copies, launches, graphs, events."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tilec.abi.gpu_code import GpuCode, GpuKernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Driver(Protocol):
    """A device and one stream on it. What is asked for runs on the stream, in order; addresses are the device's.

    Between `begin_graph` and `end_graph` launches are recorded instead, to run together as often as `launch_graph`
    says. Every method may raise UnavailableError with the driver's words.
    """

    @property
    def name(self) -> str:
        """The device, in the driver's words."""

    def on(self, stream: int) -> "Driver":
        """The same device, asked on a stream of somebody else's, by its handle (0: the default stream)."""

    @property
    def is_capturing(self) -> bool:
        """Whether what is asked for is recorded, by whomever."""

    def load(self, code: GpuCode, folder: Path) -> Any:
        """The module of compiled kernels, for `launch`."""

    def allocate(self, size: int) -> int:
        """The address of `size` bytes, aligned to 256."""

    def free(self, address: int) -> None:
        """Give memory back when the stream no longer uses it."""

    def upload(self, address: int, array: "NDArray[Any]") -> None:
        """Copy a C-contiguous array to the device; it may be changed when this returns."""

    def download(self, array: "NDArray[Any]", address: int) -> None:
        """Copy from the device into a C-contiguous array, after everything before; returns when it is there."""

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy between places on the device."""

    def fill(self, address: int, byte: int, size: int) -> None:
        """Set every byte."""

    def launch(self, module: Any, kernel: GpuKernel, pointers: Sequence[int], sizes: Sequence[int] = ()) -> None:
        """Launch a kernel, whose blocks are known, on these pointers and sizes."""

    def begin_graph(self) -> None:
        """Record launches from now on."""

    def end_graph(self) -> Any:
        """The launches since `begin_graph`, ready to run."""

    def launch_graph(self, graph: Any) -> None:
        """Run a graph."""

    def event(self) -> Any:
        """A mark in the stream."""

    def elapsed(self, first: Any, last: Any, /) -> float:
        """Seconds between two marks that the stream has passed."""

    def synchronize(self) -> None:
        """Return when the stream has done everything."""
