"""Scenarios that the caches of a decoder imply: a step with one new token, and a first call without earlier ones.

A cache is an input of which an output has more rows, or others along one dimension. How many rows are new is a size,
and so is how many there were before, or how many there are afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tilec.importer.growing_states import growth_of
from tilec.importer.states import candidates, update_of
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Call, Const, Expr, Var, operands
from tilec.ir.graph import Graph
from tilec.ir.sizes import Scenario

DECODE, PREFILL = "decode", "prefill"

ORIGIN = "caches of the model"

LENGTH = 512
"""Tokens after a step that plans are made for, where nothing else is said."""

ROOM = 1024
"""Tokens that a cache of its own size has room for then."""

PROMPT = 128
"""Tokens of a first call."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """The sizes of a cache: `new` rows, those `before`, those there are `after`, its `room`; each "" for none."""

    new: str
    before: str = ""
    after: str = ""
    room: str = ""


def with_cache_scenarios(graph: Graph) -> Graph:
    """The graph with the scenarios of its caches, that of a step first; as it is where it has none."""
    found = list(dict.fromkeys(_caches(graph)))
    roles = [
        {s for s in names if s} for names in zip(*((c.new, c.before, c.after, c.room) for c in found), strict=True)
    ]
    if not found or sum(map(len, roles)) != len(set().union(*roles)):
        return graph
    step: dict[str, Expr] = {each.new: Const(1) for each in found}
    both = [each for each in found if each.after and each.before]
    step |= {each.after: simplify(Binary("+", Var(each.before), Const(1))) for each in both}
    first: dict[str, Expr] = {each.before: Const(0) for each in found if each.before}
    first |= {each.after: Var(each.new) for each in found if each.after}
    at = {each.before: LENGTH - 1 for each in found if each.before}
    at |= {each.after: LENGTH for each in found if each.after and not each.before}
    prompt = {each.new: PROMPT for each in found} | {each.after: PROMPT for each in found if each.after}
    room = {each.room: ROOM for each in found if each.room}
    scenarios = {
        DECODE: Scenario(step, ({**at, **room},), ORIGIN),
        PREFILL: Scenario(first, ({**prompt, **room},), ORIGIN),
    }
    return replace(graph, scenarios=scenarios)


def _caches(graph: Graph) -> Iterator[_Rows]:
    """The sizes of every cache, of those of one size in the model only the first."""
    ports = {port.name: port.tensor for port in graph.inputs}
    told = {room.tensor: graph.tensors[ports[room.told_by]].shape[0] for room in graph.rooms}
    updates = [update for call in graph.calls for update, _ in call.updated]
    for update in updates:
        sizes = _sizes_in_place(graph, update.rows, update.state, told.get(update.state))
        if sizes is not None:
            yield sizes
    if updates:
        return
    for past, present in candidates(graph):
        if not _is_read(graph, past.tensor, present.tensor):
            continue
        growth = growth_of(graph, past.tensor, present.tensor)
        if growth is not None:
            yield from _sizes_of_growth(graph, growth.rows, growth.after)
            continue
        found = update_of(graph, past.tensor, present.tensor)
        if not isinstance(found, str):
            rows = found.nodes[-1].expr
            shapes = {rows.tensor: replace(graph.tensors[present.tensor], shape=rows.shape)}
            sizes = _sizes_in_place(replace(graph, tensors={**graph.tensors, **shapes}), rows.tensor, past.tensor, None)
            if sizes is not None:
                yield sizes
                return


def _is_read(graph: Graph, past: str, present: str) -> bool:
    """Whether more is computed of a cache than what it is afterwards."""
    return any({past, present} & set(operands(node.expr)) for node in graph.nodes if node.name != present)


def _sizes_in_place(graph: Graph, rows: str, state: str, before: Expr | None) -> _Rows | None:
    """The sizes of a cache whose new rows are a tensor."""
    pairs = zip(graph.tensors[rows].shape, graph.tensors[state].shape, strict=True)
    apart = [(new, room) for new, room in pairs if new != room]
    match apart, before:
        case [(Var(new), _)], Var(earlier):
            return _Rows(new, before=earlier)
        case [(Var(new), Var(room))], None:
            held = {each.holds for each in graph.constraints}
            both = (s for s in graph.symbols if {_at_most(new, s), _at_most(s, room)} <= held)
            return _Rows(new, after=next(both, ""), room=room)
        case [(Var(new), _)], None:
            return _Rows(new)
    return None


def _sizes_of_growth(graph: Graph, before: str, after: Expr) -> Iterator[_Rows]:
    """The sizes of a cache that grows: its rows afterwards are those before and new ones, or as many as a mask has."""
    match simplify(Binary("-", after, Var(before))):
        case Var(new) if new in graph.symbols:
            yield _Rows(new, before=before)
            return
    for total in (s for s in graph.symbols if after in (_larger(before, s), _larger(s, before))):
        ends = [(s, total) for s in graph.symbols if _at_most(s, total) in {each.holds for each in graph.constraints}]
        yield from (_Rows(new, before=before, after=total) for new, _ in ends[:1])


def _at_most(small: str, large: str) -> Expr:
    return Binary("<=", Var(small), Var(large))


def _larger(one: str, other: str) -> Expr:
    return Call("maximum", (Var(one), Var(other)))
