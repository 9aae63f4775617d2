"""The part of a session that belongs to a back end: compiled code in memory, and the working memory of one run."""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from tilec.abi.manifest import CallInput, Manifest
from tilec.errors import ArtifactError, UnavailableError
from tilec.runtime.device_array import DeviceArray
from tilec.runtime.times import Times

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Run(Protocol):
    """Working memory that one run at a time uses: pointers to its tensors, the arena, scratch.

    Tensors are numbered as in the manifest: inputs, results of calls, outputs.
    """

    def bind(self, first: int, arrays: Sequence[Any]) -> None:
        """Let the tensors from number `first` on be these arrays; values that are no arrays leave theirs unbound."""

    def launch(self, segment: int, times: Times | None) -> None:
        """Run the launches of a segment to their end; write their times where these are wanted."""

    def operand(self, spec: CallInput) -> Any:
        """The value that a call reads from the arena or the constants, as a NumPy array in host memory."""


@runtime_checkable
class SteppableRun(Run, Protocol):
    """A run that can launch one group at a time, so that each can be verified where it stands."""

    def poison(self) -> None:
        """Fill the arena with bytes that are NaN in every floating-point type, so that stale values are seen."""

    def step(self, segment: int, launch: int) -> None:
        """Run one launch of a segment alone. The segment has run as a whole before, on this working memory."""


@runtime_checkable
class RemoteRun(SteppableRun, Protocol):
    """A steppable run whose operands are copies of memory that the host does not reach."""

    def replace(self, spec: CallInput, array: "NDArray[Any]") -> None:
        """Let a place of the arena hold what a copy of it holds now."""


@runtime_checkable
class SizedRun(Run, Protocol):
    """A run of a model with symbols: its working memory has the sizes that its numbers say."""

    @property
    def numbers(self) -> "NDArray[np.int64]":
        """The numbers of this run, to be written by its caller."""

    def resize(self, part: int) -> None:
        """Make room for the tensors whose sizes are among the numbers of a part, before the segment of that number."""


class Executor(Protocol):
    """The compiled segments of a model, opened once a session."""

    def take_run(self) -> Run:
        """Working memory that no other run uses; from any thread."""

    def give_run(self, run: Run) -> None:
        """Take working memory back."""


@runtime_checkable
class SizedExecutor(Executor, Protocol):
    """An executor of models with symbols; its runs are `SizedRun`."""

    def evaluate(self, numbers: "NDArray[np.int64]", part: int) -> None:
        """Compute the numbers of a part from symbols and the numbers of earlier parts."""


@runtime_checkable
class DeviceExecutor(Executor, Protocol):
    """An executor whose memory is that of a GPU."""

    @property
    def takes_device_arrays(self) -> bool:
        """Whether inputs may be `tilec.runtime.device_array.DeviceArray`."""

    def to_host(self, array: DeviceArray) -> "NDArray[Any]":
        """A copy of an array on the device."""

    @property
    def device_name(self) -> str:
        """The GPU, in its driver's words."""

    def to_device(self, array: "NDArray[Any]") -> DeviceArray:
        """A copy of an array on the device, which lives as long as it is held."""


Loader = Callable[[Path, Manifest, int, bool, bool], Executor]
"""Opens a model: (folder, manifest, threads, pin workers to CPUs, compare the sha256 of weights).

Raises ArtifactError for files that are not those that were compiled, UnavailableError without what it needs.
"""


def loader_of(manifest: Manifest, place: str) -> Loader:
    """The loader that a manifest names. Raises UnavailableError where its package is not installed."""
    module, _, name = manifest.loader.partition(":")
    try:
        loader: Loader = getattr(import_module(module), name)
    except ImportError as error:
        raise UnavailableError(
            f"the loader {manifest.loader} cannot be imported: {error}",
            place,
            "Install the package of the back end that this model was compiled by.",
        ) from error
    except AttributeError as error:
        raise ArtifactError(f"{module} has no loader {name!r}", place, "Run `tilec codegen` again.") from error
    return loader
