"""Sizes that depend on data: what calls of onnxruntime report, found by running the model there (B01)."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tilec.errors import TilecError
from tilec.ir.bind_plan import plan_sizes
from tilec.ir.expr import variables
from tilec.ir.plan import Plan
from tilec.ir.port_sizes import port_sizes, told_symbols
from tilec.ir.sizes import SymbolRange
from tilec.verify.inputs import Array
from tilec.verify.remote import Remote
from tilec.verify.runners import Reference, write_watched


def reported_symbols(plan: Plan) -> tuple[str, ...]:
    """The symbols that no input tells."""
    told = told_symbols(plan.inputs, plan.tensors)
    return tuple(symbol for symbol in plan.symbols if symbol not in told)


def with_told_sizes_alone(plan: Plan) -> Plan:
    """The plan as samples are drawn for: sizes that calls report stay as the plan is made for, nothing is asked of
    them."""
    reported = reported_symbols(plan)
    sizes = plan_sizes(plan)
    held = {symbol: SymbolRange(sizes[symbol], sizes[symbol]) for symbol in reported}
    free = tuple(each for each in plan.constraints if not variables(each.holds) & set(reported))
    return replace(plan, symbol_ranges={**plan.symbol_ranges, **held}, constraints=free)


def reported_sizes(
    plan: Plan, model: Path, draws: Sequence[Mapping[str, Array]], *, all_run: bool
) -> list[dict[str, int] | None]:
    """For each set of inputs the sizes of symbols that calls report, from the model on onnxruntime; None where it
    cannot run, unless all must.

    Raises TilecError where it has no such tensors or runs at none.
    """
    import onnx

    ports = [port for call in plan.calls for port in call.outputs if port.tensor in plan.tensors]
    telling = [port for port in ports if told_symbols([port], plan.tensors) & set(reported_symbols(plan))]
    names = list(dict.fromkeys(port.name for port in telling))
    proto = onnx.load(str(model), load_external_data=False)
    with tempfile.TemporaryDirectory(prefix="tilec-") as folder:
        opened = write_watched(model, proto, names, Path(folder))
        with Remote("onnxruntime", Reference, opened, None, model.parent) as reference:
            reference.ready()
            found = [reference.call("attempted", feeds, names) for feeds in draws]
    refused = [each for each in found if isinstance(each, TilecError)]
    if refused and (all_run or len(refused) == len(found)):
        raise refused[0]
    return [
        None
        if isinstance(arrays, TilecError)
        else port_sizes(telling, plan.tensors, {name: array.shape for name, array in arrays.items()})
        for arrays in found
    ]
