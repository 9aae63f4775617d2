"""States in place whose rows are rounded to 8 bits as a recipe's `types` asks: codes, and scales of groups of a row.

A state `past` becomes one of codes and one of scales. New rows are rounded when they are written, each group by its
largest magnitude, and what reads the state reads codes times scales.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from tilec.errors import ConfigError
from tilec.importer.formula import formula
from tilec.importer.growing_states import free_name
from tilec.importer.retype import Formats
from tilec.ir.algebra import simplify
from tilec.ir.bind import simplify_tensor
from tilec.ir.expr import Access, Binary, Call, Const, Expr, Reduce, TensorExpr, Var, constant_value, rebuild
from tilec.ir.formats import Format
from tilec.ir.graph import Call as GraphCall
from tilec.ir.graph import Graph, Node, Port, RoundedState, Tensor, Update
from tilec.ir.types import is_float

CODES = "i8"

MOST = 127.0
"""The largest code."""


def of_states(formats: Formats, inputs: Collection[str], weights: Collection[str]) -> Formats:
    """The patterns that are for states: they match inputs, and none of the weights."""
    return {
        pattern: kind
        for pattern, kind in formats.items()
        if any(fnmatchcase(name, pattern) for name in inputs)
        and not any(fnmatchcase(name, pattern) for name in weights)
    }


def with_rounded_states(graph: Graph, formats: Formats, file: str, same_inputs: bool = False) -> Graph:
    """The graph with the float states in place that patterns name in their formats.

    Raises ConfigError for a pattern that names no such state, for a format of other than 8 bits, and where a model is
    to have the `same_inputs` as before.
    """
    if not formats:
        return graph
    names = {port.tensor: port.name for port in graph.inputs}
    states = {update.state for call in graph.calls for update in call.updates}
    states = {state for state in states if is_float(graph.tensors[state].ttype)}
    for pattern in formats:
        if same_inputs:
            message = f"types: {pattern!r} names states, and rounded ones are other inputs than the model's"
            raise ConfigError(message, file, "Compile it with `state: in-place`; `tilec generate` does.")
        if not any(fnmatchcase(names[state], pattern) for state in states):
            known = ", ".join(sorted(names[state] for state in states)) or "none: see `state`"
            message = f"types: {pattern!r} matches no weight and no state that is updated in place"
            raise ConfigError(message, file, f"Such states of floats are {known}.")
    for state in sorted(states):
        kind = next((formats[each] for each in formats if fnmatchcase(names[state], each)), None)
        if kind is not None:
            graph = _rounded(graph, _State.of(graph, state, kind, f"{file}: state {names[state]!r}"))
    return graph


@dataclass(frozen=True, slots=True)
class _State:
    """A state to be rounded: the `call` that updates it, and by which of its updates."""

    past: str
    present: str
    call: GraphCall
    update: Update
    format: Format
    group: int

    @classmethod
    def of(cls, graph: Graph, past: str, kind: Format, place: str) -> _State:
        """The state of an input. Raises ConfigError for one that a format does not fit."""
        if kind.element != CODES or kind.zero or kind.scale not in ("f32", "f16"):
            raise ConfigError(f"it cannot be rounded to {kind}", place, "Take i8[GROUP]*f16 or i8[GROUP]*f32.")
        call, update, present = next(
            (call, update, present) for call in graph.calls for update, present in call.updated if update.state == past
        )
        extent = constant_value(graph.tensors[past].shape[-1])
        if extent is None or update.place[-1] != Var(update.iterators[-1]):
            raise ConfigError("its last dimension is not that of the elements of a row", place, "Take it out of types.")
        group = kind.group or int(extent)
        if int(extent) % group:
            hint = "Take a group that divides them, or i8[column] for one scale a row."
            raise ConfigError(f"groups of {group} do not divide the {extent} elements of a row", place, hint)
        return cls(past, present, call, update, kind, group)


def _rounded(graph: Graph, state: _State) -> Graph:
    """The graph with codes and scales in place of a state."""
    ttype = graph.tensors[state.past].ttype
    taken = set(graph.names)

    def fresh(name: str) -> str:
        taken.add(made := free_name(name, frozenset(taken)))
        return made

    rows = state.update.rows
    past, present = (fresh(f"{name}_scales") for name in (state.past, state.present))
    largest, scales, codes = (fresh(f"{rows}_{part}") for part in ("largest", "scales", "codes"))
    nodes = _rounding(graph, state, largest, scales, codes)
    tensors = dict(graph.tensors)
    for each, kind in ((largest, "f32"), (scales, state.format.scale), (codes, CODES)):
        tensors[each] = Tensor(next(node.expr.shape for node in nodes if node.name == each), kind)
    groups = Const(constant_value(tensors[state.past].shape[-1]) or 0)
    for whole, of in ((state.past, past), (state.present, present)):
        shape = tensors[whole].shape
        tensors[of] = Tensor((*shape[:-1], simplify(Binary("//", groups, Const(state.group)))), state.format.scale)
        tensors[whole] = Tensor(shape, CODES)
    made = [_reading(node, state, present, ttype) for node in graph.nodes]
    at = next(number for number, node in enumerate(made) if node.name == rows) + 1
    scaled = {state.past: past, state.present: present}
    told = [replace(room, tensor=scaled[room.tensor]) for room in graph.rooms if room.tensor in scaled]
    return replace(
        graph,
        nodes=(*made[:at], *nodes, *made[at:]),
        tensors=tensors,
        calls=tuple(_call(each, state, codes, scales, past, present) for each in graph.calls),
        inputs=_ports(graph.inputs, state.past, past),
        outputs=_ports(graph.outputs, state.present, present),
        rooms=(*graph.rooms, *told),
        rounded=(
            *graph.rounded,
            RoundedState(state.past, past, state.group, ttype),
            RoundedState(state.present, present, state.group, ttype),
        ),
    )


def _rounding(graph: Graph, state: _State, largest: str, scales: str, codes: str) -> tuple[Node, ...]:
    """The nodes of the scales and codes of new rows; a group of zeros has the scale 0, and codes of 0."""
    origin = next(node for node in graph.nodes if node.name == state.update.rows)
    shape, spatial = origin.expr.shape, origin.expr.spatial
    last, of_group = Var(spatial[-1]), tuple(map(Var, spatial))
    inner = free_name("r", frozenset((*spatial, *graph.symbols)))
    at = simplify(Binary("+", Binary("*", last, Const(state.group)), Var(inner)))
    wide = graph.tensors[state.update.rows].ttype
    groups = simplify(Binary("//", shape[-1], Const(state.group)))

    def exact(index: Sequence[Expr]) -> Expr:
        read = Access(state.update.rows, tuple(index))
        return read if wide == "f32" else Call("f32", (read,))

    magnitude = Call("abs", (exact((*of_group[:-1], at)),))
    first = TensorExpr(
        largest,
        spatial,
        (inner,),
        (*shape[:-1], groups, Const(state.group)),
        Reduce("max", (inner,), magnitude),
    )
    scale: Expr = Binary("/", Access(largest, of_group), Const(MOST))
    scale = scale if state.format.scale == "f32" else Call(state.format.scale, (scale,))
    second = TensorExpr(scales, spatial, (), (*shape[:-1], groups), scale)
    divisor = _scale(scales, of_group, state)
    body = formula(
        "i8(round(maximum(minimum(x / where(s == 0.0, 1.0, s), most), least)))",
        x=exact(of_group),
        s=divisor,
        most=MOST,
        least=-MOST,
    )
    third = TensorExpr(codes, spatial, (), shape, body)
    return tuple(Node(simplify_tensor(each), origin.op, origin.origin) for each in (first, second, third))


def _scale(scales: str, index: Sequence[Expr], state: _State) -> Expr:
    """The scale of an element, as f32."""
    place = simplify(Binary("//", index[-1], Const(state.group)))
    read = Access(scales, (*index[:-1], place))
    return read if state.format.scale == "f32" else Call("f32", (read,))


def _reading(node: Node, state: _State, scales: str, ttype: str) -> Node:
    """A node that reads codes times scales in place of the state."""

    def read(expr: Expr) -> Expr:
        inside = rebuild(expr, read)
        if not isinstance(inside, Access) or inside.tensor != state.present:
            return inside
        number: Expr = Binary("*", Call("f32", (inside,)), _scale(scales, inside.index, state))
        return number if ttype == "f32" else Call(ttype, (number,))

    body = read(node.expr.body)
    return node if body == node.expr.body else replace(node, expr=simplify_tensor(replace(node.expr, body=body)))


def _call(call: GraphCall, state: _State, codes: str, scales: str, past: str, present: str) -> GraphCall:
    """The call that updates codes and scales."""
    if call.file != state.call.file:
        return call
    inputs = [replace(p, name=codes, tensor=codes) if p.tensor == state.update.rows else p for p in call.inputs]
    outputs, updates = list[Port](), list[Update]()
    for update, port in zip(call.updates, call.outputs, strict=True):
        outputs.append(port)
        if port.tensor != state.present:
            updates.append(update)
            continue
        outputs.append(Port(present, present))
        updates += [replace(update, rows=codes), replace(update, rows=scales, state=past)]
    return replace(call, inputs=(*inputs, Port(scales, scales)), outputs=tuple(outputs), updates=tuple(updates))


def _ports(ports: Sequence[Port], tensor: str, scales: str) -> tuple[Port, ...]:
    """The ports with one for scales behind that of a state."""
    names = frozenset(port.name for port in ports)
    made = list[Port]()
    for port in ports:
        made.append(port)
        if port.tensor == tensor:
            made.append(Port(free_name(f"{port.name}_scales", names), scales))
    return tuple(made)
