"""States that are updated in place: an input of the model and an output that is the same with some rows replaced.

A cache that grows, by new rows behind those that there are, has room for them then (`tilec.importer.growing_states`).
The node of such an output has a body like `where(n <= t and t < n + s, rows[.., t - n, ..], past[.., t, ..])`, or is a
scatter along one dimension. In its place come a node of the rows alone, and a call that writes them into the memory of
the state. What reads the output runs behind that call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tilec.errors import ConfigError, did_you_mean
from tilec.importer.circular_states import ring_of
from tilec.importer.growing_states import Growth, growth_of, with_rooms
from tilec.importer.scattered_states import Scatter, scatter_of
from tilec.importer.valid_rows import with_valid_rows
from tilec.ir.algebra import linear_form, simplify
from tilec.ir.bind import simplify_tensor
from tilec.ir.call_segments import segment_of
from tilec.ir.expr import (
    Access,
    Binary,
    Call,
    Const,
    Expr,
    TensorExpr,
    Var,
    accesses,
    operands,
    rebuild,
    rename_tensors,
    substitute,
    variables,
    walk,
)
from tilec.ir.graph import Call as GraphCall
from tilec.ir.graph import Graph, Node, Port, Tensor, Update
from tilec.ir.negation import negation
from tilec.ir.sizes import Constraint

Pairs = Literal["separate", "same-shape", "in-place"] | Mapping[str, str]
"""Which states are updated in place: none, those that do not grow, all that can be, or these (input of the model ->
output)."""


def with_states(graph: Graph, pairs: Pairs, file: str) -> Graph:
    """The graph with its states updated in place. Raises ConfigError for a pair that is not there, or is no state."""
    if pairs == "separate":
        return graph
    named = isinstance(pairs, Mapping)
    wanted = list(_named(graph, pairs, file)) if isinstance(pairs, Mapping) else list(candidates(graph))
    found: dict[str, Found] = {}
    for past, present in wanted:
        update = update_of(graph, past.tensor, present.tensor)
        if isinstance(update, str) and named:
            hint = "Take the pair out of the recipe's `state`, or correct it."
            raise ConfigError(f"output {present.name!r} is not input {past.name!r} updated: {update}", file, hint)
        if isinstance(update, str) or (pairs == "same-shape" and update.growth is not None):
            continue
        if past.tensor not in {each.update.state for each in found.values()}:
            found.setdefault(present.tensor, update)
    if not found:
        return graph
    growing = [each.growth for each in found.values() if each.growth is not None]
    made = with_rooms(_rewritten(graph, _with_shared_places(found)), growing)
    return made if pairs == "same-shape" else with_valid_rows(made)


PLACES = "i64"
"""The tType of places of rows."""


@dataclass(frozen=True, slots=True)
class Found:
    """An update, the nodes that compute its rows and where they go, and what sizes must fulfil."""

    update: Update
    nodes: tuple[Node, ...]
    constraints: tuple[Constraint, ...] = ()
    growth: Growth | None = None


def _named(graph: Graph, pairs: Mapping[str, str], file: str) -> Iterator[tuple[Port, Port]]:
    inputs, outputs = ({port.name: port for port in ports} for ports in (graph.inputs, graph.outputs))
    for names, known, what in ((pairs, inputs, "input"), (pairs.values(), outputs, "output")):
        for name in names:
            if name not in known:
                near = did_you_mean(name, known)
                hint = f"Did you mean {near!r}?" if near else f"The {what}s are {', '.join(map(repr, known))}."
                raise ConfigError(f"`state` names {name!r}, which is no {what} of the model", file, hint)
    yield from ((inputs[past], outputs[present]) for past, present in pairs.items())


def candidates(graph: Graph) -> Iterator[tuple[Port, Port]]:
    """Every input and output of which the output's node reads the input, itself or moved."""
    nodes = {node.name: node for node in graph.nodes}
    for present in graph.outputs:
        if present.tensor in nodes:
            read = set(operands(_composed(graph, nodes[present.tensor]).expr))
            yield from ((past, present) for past in graph.inputs if past.tensor in read)


def _composed(graph: Graph, node: Node) -> Node:
    """A node that computes what it would only move itself, and reads what others only move where these have it from."""
    moves = {n.name: n.expr for n in graph.nodes if isinstance(n.expr.body, Access)}
    plain = {n.name: n.expr for n in graph.nodes if not n.expr.reducer}
    expr = node.expr
    while isinstance(expr.body, Access) and expr.body.tensor in plain:
        moved = plain[expr.body.tensor]
        at = substitute(moved.body, dict(zip(moved.spatial, expr.body.index, strict=True)))
        expr = simplify_tensor(replace(expr, body=at))

    def read(expr: Expr) -> Expr:
        inside = rebuild(expr, read)
        if not isinstance(inside, Access) or inside.tensor not in moves:
            return inside
        move = moves[inside.tensor]
        return read(substitute(move.body, dict(zip(move.spatial, inside.index, strict=True))))

    return replace(node, expr=simplify_tensor(replace(expr, body=read(expr.body))))


def update_of(graph: Graph, past: str, present: str) -> Found | str:
    """The update that makes one tensor of another, or why there is none."""
    given = next((node for node in graph.nodes if node.name == present), None)
    if given is None:
        return "no compiled node computes it"
    growth = growth_of(graph, past, present)
    if growth is None and graph.tensors.get(past) != graph.tensors[present]:
        return "they have not the same shape and type"
    node = _composed(graph, given)
    others = _live(replace(graph, nodes=tuple(node if n is given else n for n in graph.nodes))).nodes
    early = [f"node {n.name}" for n in others if n.name != present and past in operands(n.expr)]
    early += [call.file for call in graph.calls if any(port.tensor == past for port in call.inputs)]
    early += [f"output {port.name!r}" for port in graph.outputs if port.tensor == past]
    if early:
        return f"{early[0]} reads it too, and would see the new rows too early"
    written = None if node.expr.reducer else _written(node.expr, past)
    region = None if written is None else _region(node.expr, *written)
    if growth is not None:
        if region is None or region.iterator != node.expr.spatial[growth.dim] or region.first != Var(growth.rows):
            return "it is not the input with rows appended along one dimension"
        return replace(_rows(graph, node, past, region), growth=growth)
    if region is not None:
        return _rows(graph, node, past, region)
    exprs = {each.name: each.expr for each in graph.nodes}
    scatter = None
    if written is not None:
        scatter = ring_of(node.expr, *written) or scatter_of(node.expr, *written, exprs, graph.ttypes)
    if scatter is None:
        return "it is not the input with rows along one dimension replaced"
    return _scattered(graph, node, past, scatter)


def _live(graph: Graph) -> Graph:
    """The graph without nodes that nothing needs."""
    needed = {port.tensor for port in graph.outputs} | {p.tensor for call in graph.calls for p in call.inputs}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if node.name in needed:
            kept.append(node)
            needed.update(operands(node.expr))
    return replace(graph, nodes=tuple(reversed(kept)))


@dataclass(frozen=True, slots=True)
class _Region:
    """`count` rows along an iterator, from `first` on, where an expression has the value `body`."""

    iterator: str
    first: Expr
    count: Expr
    body: Expr


def _written(expr: TensorExpr, past: str) -> tuple[Expr, tuple[Expr, ...]] | None:
    """What an expression is where it is not its own element of a tensor, and what holds there."""
    own = Access(past, tuple(map(Var, expr.spatial)))
    written = [leaf for leaf in _leaves(expr.value, own, ()) if leaf[0] != own]
    if len(written) != 1 or any(access.tensor == past for access in accesses(written[0][0])):
        return None
    return written[0]


def _region(expr: TensorExpr, body: Expr, conditions: Sequence[Expr]) -> _Region | None:
    """Where an expression is its body: a run of rows along one dimension, None if it is none."""
    limits = [limit for condition in conditions for limit in _limits(condition, expr.spatial)]
    named = {limit[0] for limit in limits if limit is not None}
    if len(named) != 1 or None in limits:
        return None
    (iterator,) = named
    ends = [limit for limit in limits if limit is not None]
    extent = expr.domain[iterator]
    first = _joined("maximum", [low for _, low, _ in ends if low is not None] or [Const(0)])
    last = _joined("minimum", [high for _, _, high in ends if high is not None] or [extent])
    if not any(isinstance(part, Access) for part in walk(first)):
        # What sizes decide lies inside of the state at all of them; a place that data decide is kept there when it is
        # stored to.
        first = simplify(Call("minimum", (Call("maximum", (first, Const(0))), extent)))
        last = simplify(Call("maximum", (Call("minimum", (last, extent)), first)))
    count = simplify(Binary("-", last, first))
    if any(isinstance(part, Access) for part in walk(count)) or variables(count) & set(expr.iterators):
        return None
    return _Region(iterator, first, count, body)


def _leaves(expr: Expr, own: Access, conditions: tuple[Expr, ...]) -> Iterator[tuple[Expr, tuple[Expr, ...]]]:
    """The branches of choices that hold an element itself, each with what holds there."""
    if isinstance(expr, Call) and expr.fn == "where" and own in set(accesses(expr)):
        condition, yes, no = expr.args
        yield from _leaves(yes, own, (*conditions, condition))
        yield from _leaves(no, own, (*conditions, negation(condition)))
    else:
        yield expr, conditions


Limit = tuple[str, Expr | None, Expr | None]
"""Iterator, its least value, the end of its values."""


def _limits(condition: Expr, iterators: Sequence[str]) -> Iterator[Limit | None]:
    """What a condition says of an iterator; None for one that says anything else."""
    match condition:
        case Binary("and", left, right):
            yield from _limits(left, iterators)
            yield from _limits(right, iterators)
        case Binary("<" | "<=" | ">" | ">=" as op, left, right):
            yield _limit(op, left, right, iterators)
        case Const(True):
            return
        case _:
            yield None


def _limit(op: str, left: Expr, right: Expr, iterators: Sequence[str]) -> Limit | None:
    """`left op right` as a limit of an iterator that stands alone on one side."""
    if op in (">", ">="):
        op, left, right = "<" if op == ">" else "<=", right, left
    room = Binary("-", right, left)  # at least 0, or 1 where op is <
    terms, _ = linear_form(room)
    for name in iterators:
        factor = terms.get(Var(name))
        rest = simplify(Binary("-", room, Binary("*", Var(name), Const(factor)))) if factor in (1, -1) else None
        if rest is None or name in variables(rest):
            continue
        least = Const(1 if op == "<" else 0)
        if factor == 1:  # name + rest >= least
            return name, simplify(Binary("-", least, rest)), None
        return name, None, simplify(Binary("+", Binary("-", rest, least), Const(1)))
    return None


def _joined(fn: str, ends: Sequence[Expr]) -> Expr:
    distinct = list(dict.fromkeys(ends))
    return distinct[0] if len(distinct) == 1 else simplify(Call(fn, tuple(distinct)))


def _rows(graph: Graph, node: Node, past: str, region: _Region) -> Found:
    """The node of the rows of a region, and where they go."""
    expr = node.expr
    name = _free(f"{node.name}_rows", graph)
    at = simplify(Binary("+", region.first, Var(region.iterator)))
    extents = tuple(
        region.count if i == region.iterator else extent for i, extent in zip(expr.spatial, expr.extents, strict=True)
    )
    # What the first row is read from stands for a number: its own cancel out.
    numbers = {each: Var(f"@{n}") for n, each in enumerate(dict.fromkeys(accesses(region.first)))}
    body = substitute(_with(region.body, numbers), {region.iterator: _with(at, numbers)})
    rows = simplify_tensor(TensorExpr(name, expr.spatial, (), extents, body))
    rows = replace(rows, body=substitute(rows.body, {var.name: each for each, var in numbers.items()}))
    place = tuple(at if i == region.iterator else Var(i) for i in expr.spatial)
    update = Update(name, past, expr.spatial, place)
    return Found(update, (Node(rows, node.op, node.origin),))


def _scattered(graph: Graph, node: Node, past: str, scatter: Scatter) -> Found:
    """The node of the rows of a scatter, and that of their places."""
    expr = node.expr
    extents = tuple(
        scatter.count if i == scatter.iterator else extent for i, extent in zip(expr.spatial, expr.extents, strict=True)
    )
    name, places = _free(f"{node.name}_rows", graph), _free(f"{node.name}_places", graph)
    rows = simplify_tensor(TensorExpr(name, expr.spatial, (), extents, scatter.body))
    of = tuple(i for i in expr.spatial if i in variables(scatter.place) or i == scatter.iterator)
    domain = dict(zip(expr.spatial, extents, strict=True))
    told = simplify_tensor(TensorExpr(places, of, (), tuple(domain[i] for i in of), scatter.place))
    at = Access(places, tuple(map(Var, of)))
    place = tuple(at if i == scatter.iterator else Var(i) for i in expr.spatial)
    nodes = tuple(Node(each, node.op, node.origin) for each in (told, rows))
    return Found(Update(name, past, expr.spatial, place), nodes, scatter.constraints)


def _with_shared_places(found: Mapping[str, Found]) -> dict[str, Found]:
    """The updates with one node of all places that are alike."""
    names: dict[tuple[object, ...], str] = {}
    shared = {}
    for present, each in found.items():
        *told, rows = each.nodes
        same = {n.name: names.setdefault((n.expr.spatial, n.expr.extents, n.expr.body), n.name) for n in told}
        place = tuple(rename_tensors(index, same) for index in each.update.place)
        new = tuple(n for n in told if same[n.name] == n.name)
        shared[present] = replace(each, update=replace(each.update, place=place), nodes=(*new, rows))
    return shared


def _with(expr: Expr, numbers: Mapping[Access, Var]) -> Expr:
    """An expression with variables in place of some of its accesses."""
    if isinstance(expr, Access) and expr in numbers:
        return numbers[expr]
    return rebuild(expr, lambda part: _with(part, numbers))


def _free(wish: str, graph: Graph) -> str:
    name, number = wish, 1
    while name in graph.names:
        number += 1
        name = f"{wish}_{number}"
    return name


def _rewritten(graph: Graph, found: Mapping[str, Found]) -> Graph:
    """The graph with rows in place of whole states, and calls that write them, those of one moment together."""
    nodes = tuple(new for node in graph.nodes for new in (found[node.name].nodes if node.name in found else (node,)))
    tensors = dict(graph.tensors)
    for present, each in found.items():
        for node in each.nodes:
            ttype = graph.tensors[present].ttype if node.name == each.update.rows else PLACES
            tensors[node.name] = Tensor(node.expr.shape, ttype)
    calls, left = list(graph.calls), dict(found)
    while left:
        there = segment_of(nodes, calls)
        ready = _ready(nodes, left)
        when = {name: max(there.get(t, 0) for t in _reads(found[name].update)) for name in ready}
        first = min(when.values())
        now = [name for name in ready if when[name] == first]
        calls.insert(first, _call(now, found))
        left = {name: each for name, each in left.items() if name not in now}
    constraints = tuple(dict.fromkeys((*graph.constraints, *(c for each in found.values() for c in each.constraints))))
    live = _live(replace(graph, nodes=nodes, tensors=tensors, calls=tuple(calls), constraints=constraints))
    gone = {node.name for node in nodes} - {node.name for node in live.nodes}
    tensors = {name: tensor for name, tensor in tensors.items() if name not in gone}
    return replace(live, nodes=_in_order(live.nodes, calls), tensors=tensors)


def _ready(nodes: Sequence[Node], left: Mapping[str, Found]) -> list[str]:
    """Of the states left those whose updates depend on none of the others."""
    behind: set[str] = set(left)
    for node in nodes:
        if behind.intersection(operands(node.expr)):
            behind.add(node.name)
    return [name for name, each in left.items() if not behind.intersection(_reads(each.update))]


def _reads(update: Update) -> tuple[str, ...]:
    """The tensors that an update reads: rows, then what places read."""
    return tuple(dict.fromkeys((update.rows, *(a.tensor for index in update.place for a in accesses(index)))))


def _call(states: Sequence[str], found: Mapping[str, Found]) -> GraphCall:
    updates = tuple(found[name].update for name in states)
    names = dict.fromkeys(tensor for update in updates for tensor in _reads(update))
    return GraphCall(
        f"state/{states[0]}",
        tuple(Port(name, name) for name in names),
        tuple(Port(name, name) for name in states),
        updates=updates,
    )


def _in_order(nodes: Sequence[Node], calls: Sequence[GraphCall]) -> tuple[Node, ...]:
    """The nodes by segment, in the order that they have otherwise."""
    there = segment_of(nodes, calls)
    return tuple(sorted(nodes, key=lambda node: there[node.name]))
