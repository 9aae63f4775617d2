"""Programs of users: what they are made of, and a table that all are in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

SCENARIOS: dict[str, Callable[[Wrap], list[Any]]] = {}
"""Programs by name. One takes what compiles modules and functions, or leaves them as they are, and returns what it
computed."""

LEAVES: dict[str, str] = {}
"""What the warning says of those that PyTorch runs in part."""

X = torch.linspace(-1, 1, 24).reshape(4, 6)
IMAGE = torch.linspace(-1, 1, 2 * 2 * 5 * 5).reshape(2, 2, 5, 5)


class Wrap:
    """`torch.compile`, or nothing."""

    def __init__(self, backend: str | None, options: dict[str, Any]) -> None:
        self.backend = backend
        self.options = options

    def __call__(self, function: Any, **more: Any) -> Any:
        """A compiled module or function."""
        if self.backend is None:
            return function
        return torch.compile(function, backend=self.backend, options=self.options, **more)

    def in_place(self, module: nn.Module) -> None:
        """Compile the module itself."""
        if self.backend is not None:
            module.compile(backend=self.backend, options=self.options)


Program = Callable[[Wrap], list[Any]]


def scenario(function: Program | None = None, *, leaves: str = "") -> Any:
    """Register a program. What PyTorch `leaves` to itself of it is a part of the warning that says so."""
    if function is None:
        return lambda each: scenario(each, leaves=leaves)
    SCENARIOS[function.__name__] = function
    if leaves:
        LEAVES[function.__name__] = leaves
    return function


def linear() -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh()).eval()


def batch_norm() -> nn.Sequential:
    module = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU()).eval()
    module[1].running_mean.normal_()
    return module


def written(wrap: Wrap, write: Any, module: Any = None, x: torch.Tensor = X) -> list[Any]:
    """Results before and after a write."""
    module = linear() if module is None else module
    run = wrap(module)
    with torch.no_grad():
        before = run(x)
        write(module)
        return [before, run(x), run(x)]


def on_tensors(*inputs: Any, leaves: str = "", **more: Any) -> Any:
    """Register a program that calls a function twice."""

    def register(function: Any) -> Any:
        def program(wrap: Wrap) -> list[Any]:
            run = wrap(function, **more)
            with torch.no_grad():
                return [*run(*inputs), *run(*inputs)]

        program.__name__ = function.__name__
        scenario(program, leaves=leaves)
        return function

    return register
