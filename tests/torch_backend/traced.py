"""Functions as graphs of core ATen operators."""

from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx

from tilec.torch_backend.decompositions import decompositions


def traced(function: Callable[..., Any], *inputs: Any, varies: bool = False) -> fx.GraphModule:
    """The graph of a function for inputs like these; `varies`: of any size."""
    trace = make_fx(function, decomposition_table=decompositions(), tracing_mode="symbolic" if varies else "fake")
    with torch.no_grad():
        return trace(*inputs)
