"""Differences beside the groups: device, sizes, ports, placement, calls, packed weights, types, refusals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilec.analysis.change import Change, Fact
from tilec.analysis.match import PLAIN, Matching
from tilec.artifact import digest_object
from tilec.errors import several
from tilec.ir.canonical import content
from tilec.ir.graph import Call, Constant, Inline, Port, Unsupported
from tilec.ir.plan import Plan, PlanLevel
from tilec.ir.sizes import SymbolRange
from tilec.ir.text import text_of

_DIGITS = 12
"""Digits of a digest in a fact."""

_SHOWN = 4
"""Largest number of values of a constant in a fact; longer constants are given by digest."""


def diff_context(old: Plan, new: Plan, matching: Matching) -> tuple[Change, ...]:
    """Facts of the whole plan that differ, in the names of the new plan."""
    return tuple(
        change for kind, before, after in _tables(old, new, matching) for change in _different(kind, before, after)
    )


def _tables(old: Plan, new: Plan, matching: Matching) -> Iterator[tuple[str, Mapping[str, Fact], Mapping[str, Fact]]]:
    names = matching.names
    yield "device", {"": old.device}, {"": new.device}
    yield "level", {x.name: _level(x) for x in old.levels}, {x.name: _level(x) for x in new.levels}
    yield "symbols", {"": " ".join(old.symbols)}, {"": " ".join(new.symbols)}
    yield "size", _sizes(old), _sizes(new)
    yield "constraint", _constraints(old), _constraints(new)
    yield "input", _ports(old, old.inputs), _ports(new, new.inputs)
    yield "output", _results(old, names), _results(new, {})
    yield "placement", {"": _placement(old)}, {"": _placement(new)}
    yield "fallback", _fallback(old), _fallback(new)
    yield "call", {_call(c, names): _runs(c) for c in old.calls}, {_call(c, {}): _runs(c) for c in new.calls}
    yield "prepared", _prepared(old, names), _prepared(new, {})
    yield "type", *_types(old, new, names)
    yield "retyped", _retyped(old), _retyped(new)
    yield "rounded", _rounded(old, names), _rounded(new, {})
    yield "constant", *_constants(old, new, names)
    yield "weights", {n: d[:_DIGITS] for n, d in old.files.items()}, {n: d[:_DIGITS] for n, d in new.files.items()}
    yield "refusal", _refusals(old, matching), _refusals(new, PLAIN)


def _different(kind: str, before: Mapping[str, Fact], after: Mapping[str, Fact]) -> list[Change]:
    return [
        Change(kind, subject, before.get(subject), after.get(subject))
        for subject in dict.fromkeys((*sorted(before), *sorted(after)))
        if before.get(subject) != after.get(subject)
    ]


def _sizes(plan: Plan) -> dict[str, Fact]:
    """Map from symbol to the sizes that are allowed, and those that decisions and figures are made for; a symbol of
    which nothing is known has none."""
    return {symbol: _size(entry) for symbol, entry in plan.symbol_ranges.items() if symbol in plan.symbols}


def _size(entry: SymbolRange) -> str:
    likely = f", likely {' '.join(map(str, entry.likely))}" if entry.likely else ""
    return f"{entry.text}{likely}, planned at {entry.pivot}"


def _constraints(plan: Plan) -> dict[str, Fact]:
    """Map from condition on sizes to who demands it."""
    return {text_of(each.holds): each.origin or "demanded" for each in plan.constraints}


def _level(level: PlanLevel) -> str:
    capacity = "unbounded" if level.capacity is None else f"{level.capacity} bytes"
    text = f"{capacity}, {level.units} x {level.scope or 'one'}, {level.managed}, {level.transaction} at once"
    text += "" if level.alignment is None else f", aligned to {level.alignment}"
    return text if level.pool is None else f"{text}, pool {level.pool.name} of {level.pool.capacity} bytes"


def _ports(plan: Plan, ports: tuple[Port, ...]) -> dict[str, Fact]:
    """Map from port to type and shape."""
    facts: dict[str, Fact] = {}
    for port in ports:
        tensor, opaque = plan.tensors.get(port.tensor), plan.opaque.get(port.tensor)
        if tensor is not None:
            facts[port.name] = _tensor(plan, port.tensor)
        else:
            facts[port.name] = opaque.type if opaque is not None else "?"
    return facts


def _results(plan: Plan, names: Mapping[str, str]) -> dict[str, Fact]:
    """Map from output to type, shape and tensor."""
    types = _ports(plan, plan.outputs)
    return {port.name: f"{types[port.name]} of {names.get(port.tensor, port.tensor)}" for port in plan.outputs}


def _tensor(plan: Plan, name: str) -> str:
    tensor = plan.tensors[name]
    return f"{tensor.ttype}[{', '.join(text_of(extent) for extent in tensor.shape)}]"


def _placement(plan: Plan) -> str:
    return f"{plan.placement.compiled} of {several(plan.placement.total, 'node')} compiled"


def _fallback(plan: Plan) -> dict[str, Fact]:
    def told(node: Unsupported) -> str:
        return f"{node.op}: {node.reason}"

    return {node.node: told(node) for node in plan.placement.fallback}


def _call(call: Call, names: Mapping[str, str]) -> str:
    """A call by its inputs and outputs; the file that holds it has a number only."""
    given = " ".join(names.get(port.tensor, port.tensor) for port in call.inputs)
    return f"{given} -> {' '.join(names.get(port.tensor, port.tensor) for port in call.outputs)}"


def _runs(call: Call) -> str:
    """What runs a call: the end of a loop and an update of states are no calls of another runtime."""
    if call.updates:
        return "; ".join(f"{each.state}[{', '.join(map(text_of, each.place))}] in place" for each in call.updates)
    return f"loop {call.loop}" if call.loop else "onnxruntime"


def _prepared(plan: Plan, names: Mapping[str, str]) -> dict[str, Fact]:
    """Map from packed or converted weight to its expression up to names."""
    return {names.get(node.name, node.name): content(node.expr)[0] for node in plan.prepared}


def _types(old: Plan, new: Plan, names: Mapping[str, str]) -> tuple[dict[str, Fact], dict[str, Fact]]:
    """tTypes of tensors that are in both plans."""
    by_new_name = {names.get(name, name): name for name in old.tensors}
    both = sorted(set(by_new_name) & set(new.tensors))
    return {n: old.tensors[by_new_name[n]].ttype for n in both}, {n: new.tensors[n].ttype for n in both}


def _retyped(plan: Plan) -> dict[str, Fact]:
    """Map from weight that import rounded to its format, bytes and errors."""
    return {
        name: f"{of.format}, {of.before} -> {of.after} bytes, rms {of.rms:.2g}, largest {of.largest:.2g}"
        for name, of in plan.retyped.items()
    }


def _rounded(plan: Plan, names: Mapping[str, str]) -> dict[str, Fact]:
    """Map from product whose activations may be rounded to what came of it."""
    return {
        names.get(name, name): f"{of.compute}, blocks of {of.block}, {of.unit}" if of.unit else f"exact, {of.reason}"
        for name, of in plan.roundings.items()
    }


def _constants(old: Plan, new: Plan, names: Mapping[str, str]) -> tuple[dict[str, Fact], dict[str, Fact]]:
    """Constants that are in both plans."""
    by_new_name = {names.get(name, name): name for name in old.constants}
    both = sorted(set(by_new_name) & set(new.constants))
    return {n: _constant(old.constants[by_new_name[n]]) for n in both}, {n: _constant(new.constants[n]) for n in both}


def _constant(constant: Constant) -> str:
    """The values of a constant; values in files are compared by the digests of the files."""
    if not isinstance(constant, Inline):
        return f"{constant.size} bytes"
    if len(constant.values) <= _SHOWN:
        return " ".join(str(value) for value in constant.values)
    return f"{len(constant.values)} values, {digest_object([str(v) for v in constant.values])[:_DIGITS]}"


def _refusals(plan: Plan, matching: Matching) -> dict[str, Fact]:
    return {matching.edge(refusal.edge): refusal.text for refusal in plan.refusals}
