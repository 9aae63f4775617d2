"""A model in a device's memory, and the launch of one of its kernels on the tensors of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tilec.abi.gpu_code import GpuCode, GpuLaunch, size_at
from tilec.abi.manifest import Manifest
from tilec.runtime.gpu.driver import Driver

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Loaded:
    """A manifest with its code, the module that a driver has loaded, the addresses of constants."""

    driver: Driver
    manifest: Manifest
    code: GpuCode
    module: Any
    constants: Sequence[int]


@dataclass(frozen=True)
class Places:
    """Addresses of a run's tensors on the device; results of calls count as inputs behind the model's own."""

    inputs: Sequence[int]
    outputs: Sequence[int]
    arenas: Sequence[int]


def launch(
    model: Loaded, driver: Driver, what: GpuLaunch, places: Places, numbers: Sequence[int] | NDArray[np.int64]
) -> None:
    """Launch a kernel on a driver's stream, where it has tasks at the sizes that the numbers say."""
    kernel = model.code.kernel(what.symbol)
    if what.grid is not None:
        grid, shared = size_at(what.grid, numbers), size_at(what.shared_bytes or 0, numbers)
        if grid == 0:
            return
        kernel = replace(kernel, grid=grid, shared_bytes=shared)
    bases = {"input": places.inputs, "output": places.outputs, "arena": places.arenas, "constant": model.constants}
    pointers = [bases[each.space][each.index] + size_at(each.offset, numbers) for each in what.arguments]
    driver.launch(model.module, kernel, pointers, [size_at(size, numbers) for size in what.sizes])
