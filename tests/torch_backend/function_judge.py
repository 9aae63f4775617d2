"""One function through the backend, at sizes and in a type: whether its results are eager PyTorch's.

Numbers are right where they are as near to the function's in float64 as eager's are, or as near to eager's as roundings
allow. Types, shapes, whole numbers, NaN and infinities are eager's.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from tilec.torch_backend import partition
from tilec.torch_backend.report import Report
from torch_backend.functions import Function

SIZES = (5, 8, 3)


@dataclass
class Outcome:
    """What a function became: its calls and how many tilec runs, why PyTorch runs the others, what is wrong."""

    calls: int = 0
    native: int = 0
    kept: list[str] = field(default_factory=list)
    trouble: str = ""


def judged(function: Function, dtype: torch.dtype, varies: bool, options: Mapping[str, Any]) -> Outcome | None:
    """Run a function at one size, or at several; None where eager PyTorch has not this type."""
    torch.manual_seed(0)
    sizes = SIZES if varies else SIZES[:1] * 2
    try:
        given = [converted(function.inputs(size), dtype) for size in sizes]
        wanted = [function.call(*inputs) for inputs in given]
    except (RuntimeError, TypeError):
        return None
    torch._dynamo.reset()
    outcome = Outcome()
    compiled = torch.compile(function.call, backend="tilec", dynamic=varies, options=dict(options))
    with watched(outcome), torch.no_grad():
        for inputs, theirs in zip(given, wanted, strict=True):
            try:
                ours = compiled(*inputs)
            except Exception as error:
                outcome.trouble = f"raises {type(error).__name__}: {error}"
                break
            outcome.trouble = difference(ours, theirs, exact(function, inputs))
            if outcome.trouble:
                break
    return outcome


def converted(inputs: Sequence[Any], dtype: torch.dtype) -> tuple[Any, ...]:
    """The inputs with another type in the place of float32."""

    def one(value: Any) -> Any:
        if not isinstance(value, Tensor) or value.dtype != torch.float32 or dtype == torch.float32:
            return value
        if dtype.is_floating_point:
            return value.to(dtype)
        return value > 0 if dtype == torch.bool else (value * 4).abs().round().to(dtype) * value.sign().to(dtype)

    return tuple(one(each) for each in inputs)


def exact(function: Function, inputs: Sequence[Any]) -> Any:
    """The results in float64; None where a function has none."""
    wide = [each.double() if isinstance(each, Tensor) and each.is_floating_point() else each for each in inputs]
    try:
        return function.call(*wide)
    except (RuntimeError, TypeError):
        return None


def difference(ours: Any, theirs: Any, exact: Any) -> str:
    """What is wrong with results, "" for nothing."""
    left, right = pytree.tree_leaves(ours), pytree.tree_leaves(theirs)
    wide = pytree.tree_leaves(exact)
    if len(left) != len(right):
        return f"{len(left)} results for {len(right)}"
    if len(wide) != len(right):
        wide = right
    for number, (a, b, c) in enumerate(zip(left, right, wide, strict=True)):
        wrong = _wrong(a, b, c)
        if wrong:
            return f"result {number}: {wrong}"
    return ""


def _wrong(ours: Any, theirs: Any, exact: Any) -> str:
    if not isinstance(theirs, Tensor):
        return "" if type(ours) is type(theirs) and ours == theirs else f"{ours!r} for {theirs!r}"
    if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        return f"{ours.dtype} {tuple(ours.shape)} for {theirs.dtype} {tuple(theirs.shape)}"
    if not theirs.is_floating_point():
        return "" if torch.equal(ours, theirs) else f"{ours.flatten()[:8]} for {theirs.flatten()[:8]}"
    a, b = ours.double(), theirs.double()
    c = exact.double() if isinstance(exact, Tensor) and exact.shape == theirs.shape else b
    finite = b.isfinite()
    if not torch.equal(a.isnan(), b.isnan()) or not torch.equal(a[b.isinf()], b[b.isinf()]):
        return f"NaN or infinities: {ours.flatten()[:8]} for {theirs.flatten()[:8]}"
    if not a[finite].isfinite().all():
        return "infinities where there are none"
    a, b, c = a[finite], b[finite], torch.where(c[finite].isfinite(), c[finite], b[finite])
    if not len(a):
        return ""
    rounding = 16 * torch.finfo(theirs.dtype).eps * max(b.abs().max().item(), torch.finfo(theirs.dtype).tiny)
    near = ((a - b).abs() <= rounding) | ((a - c).abs() <= rounding + 2 * (b - c).abs().max())
    if near.all():
        return ""
    worst = int((a - b).abs().argmax())
    return f"{a[worst].item():.9g} for {b[worst].item():.9g}, exactly {c[worst].item():.9g}"


@contextmanager
def watched(outcome: Outcome) -> Iterator[None]:
    """Add up the reports of graphs; warnings about them are part of these."""
    told = partition.tell

    def tell(report: Report, strict: bool) -> None:
        outcome.calls += report.calls
        outcome.native += report.native
        outcome.kept += [f"{each.operator}: {each.reason}" for each in report.kept.values()]
        told(report, strict)

    partition.tell = tell
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        outcome.kept += [
            str(each.message).partition("\n")[0] for each in caught if "PyTorch runs a graph" in str(each.message)
        ]
    finally:
        partition.tell = told


def share(outcomes: Sequence[Outcome]) -> float:
    """The share of calls that tilec runs, in geometric mean; one call in a hundred stands for none."""
    logs = [math.log(max(each.native / each.calls, 0.01)) for each in outcomes if each.calls]
    return math.exp(sum(logs) / len(logs)) if logs else 1.0
