"""Back ends by the kind that a device's `target.backend` names: what each builds, whether it can, and what loads it.

A back end is one folder that defines a `Backend`. Those of this package are in a table; those of others come from the
entry points of group `tilec.backends` (`c = "my_package.backend:BACKEND"`) or from `register`. A device of another
kind gets tile programs only, which the tile machine runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tilec.errors import UnavailableError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from pathlib import Path

    from tilec.abi.manifest import Manifest
    from tilec.calls_ahead import CallsAhead
    from tilec.codegen.kernels import Kernels
    from tilec.ir.plan import Group, Plan, Variant
    from tilec.ir.program import Program
    from tilec.progress import Advance
    from tilec.spec.device import DeviceSpec
    from tilec.spec.host import Host
    from tilec.spec.recipe import CodegenOptions

ENTRY_POINTS = "tilec.backends"

_BUILT_IN = {
    "cpu": "tilec.codegen.cpu.backend:BACKEND",
    "cuda": "tilec.codegen.gpu.backend:CUDA",
    "hip": "tilec.codegen.gpu.backend:HIP",
}

_REGISTERED: dict[str, Backend] = {}


class Obstacle(NamedTuple):
    """A reason why a back end cannot compile here, and the fix."""

    reason: str
    fix: str


class KernelPass(Protocol):
    """A pass over a back end's kernel IR: its name, and its rule in one sentence."""

    @property
    def name(self) -> str:
        """The field's term for the transformation."""

    @property
    def rule(self) -> str:
        """Under which condition it changes what."""


Observe = Callable[[str, str, str], None]
"""Called after every pass over a kernel with the kernel's name, the pass's name and the kernel as text."""


class Build(Protocol):
    """Compiles a lowered plan into `folder`; returns `runtime` of 3-kernels.json (see `tilec.abi.manifest`)."""

    def __call__(
        self,
        plan: Plan,
        kernels: Kernels,
        device: DeviceSpec,
        options: CodegenOptions,
        folder: Path,
        cache: Path | None,
        observe: Observe | None,
        ahead: CallsAhead | None,
        advance: Advance,
    ) -> Mapping[str, Any]:
        """`cache` keeps object files across models, `ahead` has calls that began before, `advance` counts what is
        compiled. Raises TilecError."""


class BeginKernel(Protocol):
    """Lets another process compile a kernel before its model is built (A17)."""

    def __call__(
        self,
        plan: Plan,
        groups: Sequence[Group],
        program: Program,
        code: object,
        device: DeviceSpec,
        options: CodegenOptions,
        cache: Path | None,
        ahead: CallsAhead,
    ) -> None:
        """The kernel of a tile program, which `groups` of a plan, each with the kernel's variant alone, share, with
        what `decide` returned of its code."""


class Decide(Protocol):
    """Decides about the code of a kernel."""

    def __call__(
        self, device: DeviceSpec, plan: Plan, groups: Sequence[Group], program: Program
    ) -> tuple[Variant, object]:
        """The variant of groups that share a kernel, in the names of the first of them, whose tile program is given,
        and what is known of its code by then, which `begin` gets."""


class Emit(Protocol):
    """Writes a compiled model in another form."""

    def __call__(self, name: str, manifest: Manifest, source: Path, folder: Path) -> tuple[str, ...]:
        """Write model `name`, whose `manifest` and files lie in `source`, to `folder`; returns the names of the files.
        Raises TilecError."""


@dataclass(frozen=True, slots=True)
class Backend:
    """A code generator and how its code runs.

    `kind` is the `target.backend` of its devices, `loader` the function, as `module:name`, by which the runtime opens
    its models (`tilec.runtime.executor.Loader`; the manifest records it, and it must need no compiler); `passes` are
    those over its kernel IR, in the order in which they run, imported when they are asked for.

    `decide` has the rules by which the plan of a device fixes vectors, unrolling, fetches and stores of a kernel
    (`tilec.scheduler.schedule` is called with them); it needs no compiler. `can_build` tells what is missing to compile
    for a device, `can_run` why a machine cannot run the device's code, and `can_time` why times measured on a machine
    that runs it are not the device's; None where nothing is in the way. `lacks` tells what is missing to take code
    further than text. `serves` is whether it has code for the levels of a device of its kind; others get tile programs,
    and so do models of an `optional` one that hold something without code.

    `begin` lets a kernel be compiled as soon as it is decided.

    `forms` are what `tilec codegen --emit` writes, by name.
    """

    kind: str
    loader: str
    build: Build
    can_build: Callable[[DeviceSpec], Obstacle | None]
    can_run: Callable[[DeviceSpec, Host], str | None]
    can_time: Callable[[DeviceSpec, Host], str | None]
    passes: Callable[[], Sequence[KernelPass]] = tuple
    decide: Decide | None = None
    forms: Callable[[], Mapping[str, Emit]] = dict
    lacks: Callable[[DeviceSpec], Obstacle | None] = lambda _device: None
    serves: Callable[[DeviceSpec], bool] = lambda _device: True
    optional: bool = False
    begin: BeginKernel | None = None


def register(backend: Backend) -> None:
    """Make a back end known in this process, in place of another one of its kind."""
    _REGISTERED[backend.kind] = backend


def backend_of(device: DeviceSpec) -> Backend | None:
    """The back end of a device's kind; None when there is none, or it does not serve the device.

    Raises UnavailableError when the package that provides it cannot be imported.
    """
    backend = _of_kind(device.target.backend)
    return backend if backend is not None and backend.serves(device) else None


def _of_kind(kind: str) -> Backend | None:
    if kind in _REGISTERED:
        return _REGISTERED[kind]
    if kind in _BUILT_IN:
        module, _, name = _BUILT_IN[kind].partition(":")
        built_in: Backend = getattr(import_module(module), name)
        return built_in
    point = _installed(tuple(sys.path)).get(kind)
    if point is None:
        return None
    try:
        installed: Backend = point.load()
    except (ImportError, AttributeError) as error:
        raise UnavailableError(
            f"the back end {kind!r} cannot be imported from {point.value}: {error}",
            hint="Install the package that provides it again.",
        ) from error
    return installed


def backend_kinds() -> list[str]:
    """The kinds of devices that code can be generated for, built-in ones first."""
    return list(dict.fromkeys((*_BUILT_IN, *_REGISTERED, *_installed(tuple(sys.path)))))


def no_backend(device: str) -> str:
    """The reason why nothing runs the code of a device of this name that has no back end."""
    return f"no {device} code generator yet"


@cache
def _installed(_path: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    """Kind -> entry point of the packages on a search path."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}
