"""`python -m tests.torch_backend.timing.cost MODULE BACKEND THREADS`: what the first calls of a module take, as JSON.

Processor seconds are those of this process and of all that it started, which are of one session (`run_limited`).
"""

from __future__ import annotations

import json
import logging
import os
import pkgutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from tests.cpu_limit import used_by
from tests.torch_backend.models import CASES, Case

SIZES = (12, 7, 5)
"""Sizes of the calls in turn."""


class Tied(nn.Module):
    """Words whose table is the last layer, too."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.hidden = nn.Embedding(8192, 1024), nn.Linear(1024, 1024)

    def forward(self, ids: Tensor) -> Tensor:
        return torch.relu(self.hidden(self.words(ids))) @ self.words.weight.t()


def _images(n: int) -> tuple[Tensor, ...]:
    return (torch.randn(n, 512, 8, 8),)


LARGE: Mapping[str, Case] = {
    "large layers": Case(
        lambda: nn.Sequential(nn.Linear(2048, 4096), nn.GELU(), nn.Linear(4096, 2048)),
        lambda n: (torch.randn(n, 2048),),
    ),
    "large layers, bf16": Case(
        lambda: nn.Sequential(nn.Linear(4096, 4096), nn.GELU(), nn.Linear(4096, 4096)).bfloat16(),
        lambda n: (torch.randn(n, 4096).bfloat16(),),
    ),
    "large words": Case(Tied, lambda n: (torch.randint(8192, (n,)),)),
    "large convolutions": Case(
        lambda: nn.Sequential(*(nn.Conv2d(512, 512, 3, padding=1) for _ in range(6))),
        _images,
    ),
}
"""Modules with some 60 MB of weights, of which memory is measured."""

COSTS: Mapping[str, Case] = {**CASES, **LARGE}


@dataclass(frozen=True, slots=True)
class Cost:
    """Processor seconds of the first call of a module, in a fresh process but for LARGE; bytes that memory has grown
    after two calls, those of the weights; graphs that were compiled for calls of all SIZES."""

    seconds: float
    grown: int
    weights: int
    compilations: int


def main(name: str, backend: str, threads: str) -> None:
    """Print what a module costs."""
    warnings.simplefilter("ignore")
    torch._logging.set_logs(all=logging.CRITICAL)
    torch.set_num_threads(int(threads))
    torch.backends.mha.set_fastpath_enabled(False)
    torch._dynamo.config.allow_rnn = True
    with tempfile.TemporaryDirectory(prefix="tilec-costs-") as scratch, torch.no_grad():
        os.environ |= {"TILEC_WHILE_COMPILING": "wait", "TORCHINDUCTOR_CACHE_DIR": scratch}
        options = {"options": {"cache": scratch}} if backend == "tilec" else {}
        print(json.dumps(asdict(_cost(name, partial(torch.compile, backend=backend, **options), backend))))


def _cost(name: str, compiled: Callable[[nn.Module], Any], backend: str) -> Cost:
    case = COSTS[name]
    torch.manual_seed(0)
    if name in LARGE:  # what any module takes is there
        compiled(nn.Sequential(nn.Linear(8, 8), nn.GELU()))(torch.randn(3, 8))
    module = case.module().eval()
    given = [case.inputs(size) for size in SIZES]
    module(*given[0])  # memory of eager PyTorch
    weights = sum(each.numel() * each.element_size() for each in module.parameters())
    before, memory = used_by(os.getsid(0)), _memory()
    run = compiled(module)
    with _counted(backend) as compilations:
        run(*given[0])
        seconds = used_by(os.getsid(0)) - before
        run(*given[0])
        grown = _memory() - memory
        for inputs in given[1:]:
            run(*inputs)
    return Cost(seconds, grown, weights, len(compilations))


def _memory() -> int:
    """Bytes of this process that lie in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def _counted(backend: str) -> Iterator[list[None]]:
    """A list that grows with each graph that a backend compiles."""
    place, method = {
        "tilec": ("tilec.torch_backend.compiled_graph.CompiledGraph", "_begun"),
        "inductor": ("torch._inductor.graph.GraphLowering", "compile_to_module"),
    }[backend]
    owner = pkgutil.resolve_name(place)
    made, function = list[None](), getattr(owner, method)

    def call(*given: Any, **more: Any) -> Any:
        made.append(None)
        return function(*given, **more)

    with patch.object(owner, method, call):
        yield made


if __name__ == "__main__":
    main(*sys.argv[1:])
