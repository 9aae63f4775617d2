"""A backend of `torch.compile` in a process of its own, asked by case: it compiles the module, checks it, times it."""

from __future__ import annotations

import logging
import os
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tests.torch_backend.models import Case
from tests.torch_backend.timing.cases import cases, in_float64
from tilec.bench.runners import Runner

os.environ.setdefault("TILEC_WHILE_COMPILING", "wait")  # compiled code is timed, not what serves before

SEED = 0

TOLERANCE, OF_16_BITS = 1e-4, 2e-2
"""Errors of results in 32 bits and in 16 that are roundings."""


@dataclass(frozen=True, slots=True)
class Made:
    """A case that a backend has compiled: seconds of the first call, the largest error of floating-point results
    relative to the largest value, against PyTorch in float64, and whether other results are equal; `trouble` says why a
    backend has none."""

    seconds: float = 0.0
    error: float = 0.0
    trouble: str = ""
    tolerance: float = TOLERANCE

    @property
    def right(self) -> bool:
        """Whether there are results, near enough to the exact ones."""
        return not self.trouble and self.error <= self.tolerance


class Timed:
    """One backend, with folders of its own for what it caches."""

    def __init__(self, backend: str, threads: int, scratch: Path) -> None:
        warnings.simplefilter("ignore")
        torch._logging.set_logs(all=logging.CRITICAL)
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(scratch / "inductor")
        torch.set_num_threads(threads)
        torch.backends.mha.set_fastpath_enabled(False)  # it is not captured
        torch._dynamo.config.allow_rnn = True
        torch._dynamo.config.automatic_dynamic_shapes = False  # sizes of modules before have no effect
        if backend == "openvino":
            import openvino.torch  # noqa: F401
        options = {"tilec": {"cache": str(scratch / "tilec")}, "openvino": {"device": "CPU"}}.get(backend)
        self._how: dict[str, Any] = {"backend": backend, **({"options": options} if options else {})}
        self._cases = cases(backend)
        self._runner: Runner | None = None

    def compile(self, name: str, size: int) -> Made:
        """Compile a module for its inputs at a size, and compare its results."""
        torch._dynamo.reset()
        self._runner = None
        case = self._cases[name]
        module, inputs = drawn(case, size)
        wanted = exact(case, size)
        run = torch.compile(module, fullgraph=not case.breaks, **self._how)

        def once() -> Any:
            with torch.no_grad():
                return run(*inputs)

        begin = time.perf_counter()
        try:
            results = flat(once())
        except Exception as error:  # whatever a backend raises is its result
            return Made(trouble=f"{type(error).__name__}: {str(error).strip().splitlines()[0]}")
        seconds = time.perf_counter() - begin
        self._runner = Runner(once)
        narrow = any(each.dtype in (torch.bfloat16, torch.float16) for each in results)
        error = max(map(difference, results, wanted))
        return Made(seconds, error, tolerance=OF_16_BITS if narrow else TOLERANCE)

    def calibrate(self, seconds: float) -> int:
        """As `Runner.calibrate`."""
        return self._ready.calibrate(seconds)

    def round(self, runs: int) -> float:
        """As `Runner.round`."""
        return self._ready.round(runs)

    @property
    def _ready(self) -> Runner:
        assert self._runner is not None
        return self._runner


def drawn(case: Case, size: int) -> tuple[torch.nn.Module, tuple[Any, ...]]:
    """The module and its inputs: the same in every process."""
    torch.manual_seed(SEED)
    module = case.module().eval()
    return module, case.inputs(size)


def exact(case: Case, size: int) -> tuple[Tensor, ...]:
    """The results in float64, of a first call."""
    module, inputs = drawn(case, size)
    with torch.no_grad():
        return flat(in_float64(module)(*(each.double() if each.is_floating_point() else each for each in inputs)))


def flat(results: Any) -> tuple[Tensor, ...]:
    """The tensors of a result."""
    return tuple(results) if isinstance(results, tuple | list) else (results,)


def difference(found: Tensor, wanted: Tensor) -> float:
    """The largest difference relative to the largest value; infinite where shapes differ, values that should be finite
    are not, or integers are not equal."""
    if found.shape != wanted.shape or not torch.equal(found.isfinite(), wanted.isfinite()):
        return float("inf")
    if not wanted.is_floating_point():
        return 0.0 if torch.equal(found, wanted) else float("inf")
    finite = wanted.isfinite()
    if not finite.any():
        return 0.0
    largest = max(float(wanted[finite].abs().max()), torch.finfo(torch.float32).tiny)
    return float((found.double() - wanted)[finite].abs().max()) / largest
