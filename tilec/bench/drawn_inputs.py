"""Inputs to time a model on: drawn so that the model accepts them, or refused before anything is timed.

Inputs may depend on one another: a mask has as many columns as there are tokens, and a place lies inside of a cache.
Where values are no plain floats onnxruntime is asked first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tilec.errors import TilecError, UsageError
from tilec.ir.bind_plan import bind_plan
from tilec.ir.evaluate import integer
from tilec.ir.expr import Expr, Var, variables
from tilec.ir.plan import Plan
from tilec.ir.port_sizes import port_sizes
from tilec.ir.scenarios import governed_symbols
from tilec.ir.sizes import SMALLER, broken_constraints
from tilec.ir.types import TTYPES
from tilec.verify.input_files import InputFile, feeds_of
from tilec.verify.inputs import Array, Draw, random_inputs
from tilec.verify.remote import Remote
from tilec.verify.runners import Reference
from tilec.verify.state_updates import model_feeds


@dataclass(frozen=True)
class DrawnInputs:
    """One array for every input of a model, at these sizes of its symbols; `model_feeds` are the same as the model
    takes them."""

    feeds: Mapping[str, Array]
    model_feeds: Mapping[str, Array]
    sizes: Mapping[str, int]


def drawn_inputs(
    plan: Plan, model: Path, draw: Draw, sizes: Mapping[str, int], given: Mapping[str, int]
) -> DrawnInputs:
    """Inputs at some sizes of which only those that are `given` may not be others. Raises UsageError for a model that
    accepts none of those that are tried, with its reason and the inputs to give."""
    tried = (_drawn(plan, each, at) for at in _sizes(plan, sizes, given) for each in _draws(plan, draw))
    if all(_is_plain(plan, port.tensor) for port in plan.inputs):
        return next(tried)
    reason = ""
    with Remote("onnxruntime", Reference, model) as reference:
        reference.ready()
        for each in tried:
            answer = reference.call("attempted", each.model_feeds)
            if not isinstance(answer, TilecError):
                return each
            reason = reason or answer.message
    listed = ", ".join(f"{name} {array.dtype}{list(array.shape)}" for name, array in each.model_feeds.items())
    values = [port.name for port in plan.inputs if not _is_plain(plan, port.tensor)]
    hint = f"Give {', '.join(values)} and the rest in a file, --inputs FILE.npz; tried were {listed}."
    raise UsageError(f"the model accepts none of the inputs that were drawn: {reason}", model.name, hint)


def inputs_of_file(plan: Plan, file: Path) -> DrawnInputs:
    """The inputs in a file, and their sizes. Raises UsageError."""
    feeds = feeds_of(plan, InputFile(file))
    sizes = port_sizes(plan.inputs, plan.tensors, {name: array.shape for name, array in feeds.items()})
    bound = bind_plan(plan, sizes) if plan.rooms else plan
    return DrawnInputs(feeds, model_feeds(bound, feeds), sizes)


def _is_plain(plan: Plan, tensor: str) -> bool:
    """Whether any values of an input are as good as others."""
    return tensor in plan.tensors and TTYPES[plan.tensors[tensor].ttype].kind == "float"


def _drawn(plan: Plan, draw: Draw, sizes: Mapping[str, int]) -> DrawnInputs:
    feeds = random_inputs(plan, draw, sizes)
    return DrawnInputs(feeds, model_feeds(bind_plan(plan, sizes), feeds), sizes)


def _draws(plan: Plan, draw: Draw) -> Iterator[Draw]:
    """The draw; of a model with caches first the one whose masks leave no token out."""
    if plan.scenarios:
        yield replace(draw, whole=True)
    yield draw


def _sizes(plan: Plan, sizes: Mapping[str, int], given: Mapping[str, int]) -> Iterator[Mapping[str, int]]:
    """The sizes, then those of one item of a batch, and smaller ones of the same scenario, as tables of positions may
    end; each also with what single inputs alone have, as the columns of a mask, as large as any other size."""
    held = (each.sizes for each in plan.scenarios.values() if _follows(sizes, each.sizes))
    relations: Mapping[str, Expr] = next(held, {})
    tried: list[Mapping[str, int]] = []
    scenario = governed_symbols(plan.scenarios)
    single = {s: n if s in given or s in scenario else min(n, 1) for s, n in sizes.items()} if scenario else sizes
    shorter = ({s: n if s in given else min(n, most) for s, n in single.items()} for most in SMALLER)
    for least in (sizes, single, *shorter):
        there = {**least, **{s: int(integer(expr, least)) for s, expr in relations.items()}}
        for each in (there, _with_columns(plan, there, given)):
            if each not in tried and not broken_constraints(plan.constraints, plan.symbol_ranges, each):
                tried.append(each)
                yield each


def _follows(sizes: Mapping[str, int], relations: Mapping[str, Expr]) -> bool:
    return all(sizes[symbol] == integer(expr, sizes) for symbol, expr in relations.items())


def _with_columns(plan: Plan, sizes: Mapping[str, int], given: Mapping[str, int]) -> Mapping[str, int]:
    """The sizes with what single inputs alone have as large as any other size."""
    readers: dict[str, set[str]] = {}
    for port in plan.inputs:
        for extent in plan.tensors[port.tensor].shape if port.tensor in plan.tensors else ():
            if isinstance(extent, Var):
                readers.setdefault(extent.name, set()).add(port.tensor)
    told = governed_symbols(plan.scenarios) | given.keys()
    alone = [symbol for symbol, tensors in readers.items() if len(tensors) == 1 and symbol not in told]
    ports = [plan.tensors[port.tensor] for port in (*plan.inputs, *plan.outputs) if port.tensor in plan.tensors]
    open_ = [extent for tensor in ports for extent in tensor.shape if variables(extent)]
    return {**sizes, **dict.fromkeys(alone, max((int(integer(extent, sizes)) for extent in open_), default=0))}
