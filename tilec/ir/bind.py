"""Binding of symbols: a graph with some of its symbolic sizes replaced by integers.

Import always builds the symbolic graph and binds it here afterwards, so that binding at import and binding at schedule
give the same graph, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tilec.errors import UsageError, did_you_mean
from tilec.ir.algebra import simplify, simplify_scalar
from tilec.ir.evaluate import integer
from tilec.ir.expr import Binary, Const, Expr, Reduce, TensorExpr, Var, operands, rebuild, substitute, variables
from tilec.ir.graph import Call as GraphCall
from tilec.ir.graph import Graph, Node, Room, Tensor, Update
from tilec.ir.known_ranges import Ranges
from tilec.ir.size_facts import ContradictionError, SizeFacts, accepted_divisor, settled
from tilec.ir.sizes import Constraint, Scenario, SymbolRange, broken_constraints


def iterator_ranges(expr: TensorExpr) -> Ranges:
    """Inclusive range of every iterator: 0 to extent - 1."""
    return {i: (Const(0), simplify(Binary("-", e, Const(1)))) for i, e in expr.domain.items()}


def simplify_tensor(expr: TensorExpr) -> TensorExpr:
    """The expression with canonical extents and with indices simplified over the iterators' ranges."""
    clean = replace(expr, extents=tuple(simplify(e) for e in expr.extents))
    ranges = iterator_ranges(clean)
    if isinstance(clean.body, Reduce):
        body: Expr = replace(clean.body, body=simplify_scalar(clean.body.body, ranges))
    else:
        body = simplify_scalar(clean.body, ranges)
    return replace(clean, body=body)


def simplify_reads(expr: TensorExpr) -> TensorExpr:
    """The expression simplified as far as it still reads every tensor that it reads: the decisions of a plan, and the
    buffers of a program, are about these."""
    plain = simplify_tensor(expr)
    if len(operands(plain)) == len(operands(expr)):
        return plain
    ranges = iterator_ranges(plain)
    if isinstance(expr.body, Reduce):
        return replace(plain, body=replace(expr.body, body=_simplified(expr.body.body, ranges)))
    return replace(plain, body=_simplified(expr.body, ranges))


def _simplified(expr: Expr, ranges: Ranges) -> Expr:
    plain = simplify_scalar(expr, ranges)
    kept = len(operands(plain)) == len(operands(expr))
    return plain if kept else rebuild(expr, lambda part: _simplified(part, ranges))


def bind(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """Replace symbols by sizes everywhere and simplify; symbols not in `sizes` remain. A size that equals an expression
    of symbols binds the last of these, or is compared.

    Raises UsageError for a symbol that the graph does not have, for a negative size, and for sizes that break a range
    or a constraint.
    """
    for symbol, size in sizes.items():
        if symbol not in graph.symbols and symbol not in graph.symbol_values:
            raise unknown_symbol(graph, symbol, str(size))
        if size < 0:
            raise UsageError(f"a size cannot be negative: {symbol}={size}", place=f"--shape {symbol}={size}")
    if not sizes:
        return graph
    own, conditions = _own_sizes(graph, sizes)
    constraints = (*graph.constraints, *conditions)
    _require_fulfilled(constraints, graph.symbol_ranges, own, sizes)
    bound = substituted(
        replace(
            graph,
            symbols=tuple(s for s in graph.symbols if s not in own),
            symbol_ranges={symbol: entry for symbol, entry in graph.symbol_ranges.items() if symbol not in own},
            symbol_values={symbol: each for symbol, each in graph.symbol_values.items() if symbol not in sizes},
            constraints=constraints,
            calls=tuple(replace(c, symbols=tuple(s for s in c.symbols if s not in own)) for c in graph.calls),
            scenarios=_bound_scenarios(graph.scenarios, own),
        ),
        {symbol: Const(size) for symbol, size in own.items()},
    )
    return _settled(bound, sizes) if bound.constraints else bound


def _settled(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """The graph with constraints that are left on one symbol alone as its range."""
    facts = SizeFacts((), graph.symbol_ranges, graph.symbol_values, graph.constraints)
    try:
        known = settled(facts)
    except ContradictionError as error:
        raise UsageError(str(error), _flags(sizes), "Take sizes that the model accepts.") from error
    return replace(graph, symbol_ranges=known.ranges, constraints=known.constraints)


def _flags(sizes: Mapping[str, int]) -> str:
    return " ".join(f"--shape {symbol}={size}" for symbol, size in sizes.items())


def unknown_symbol(graph: Graph, symbol: str, given: str) -> UsageError:
    """The error for a symbol that a graph does not have; `given` is what --shape says of it."""
    near = did_you_mean(symbol, (*graph.symbols, *graph.symbol_values))
    fix = f"Its symbols: {', '.join(graph.symbols)}." if graph.symbols else "All of its sizes are fixed: leave it out."
    message = f"the graph has no symbol {symbol!r}"
    return UsageError(message, f"--shape {symbol}={given}", f"Did you mean {near!r}?" if near else fix)


def substituted(graph: Graph, values: Mapping[str, Expr]) -> Graph:
    """The graph with symbols replaced by integer expressions in all shapes, bodies, ranges and constraints."""

    known = ((s, replace(v, value=simplify(substitute(v.value, values)))) for s, v in graph.symbol_values.items())
    return replace(
        graph,
        tensors={name: bound_tensor(tensor, values) for name, tensor in graph.tensors.items()},
        nodes=tuple(bound_node(node, values) for node in graph.nodes),
        ranges=tuple(replace(r, extent=simplify(substitute(r.extent, values))) for r in graph.ranges),
        constraints=bound_constraints(graph.constraints, values),
        calls=bound_calls(graph.calls, values),
        rooms=bound_rooms(graph.rooms, values),
        symbol_values={symbol: value for symbol, value in known if not isinstance(value.value, Const)},
    )


def bound_calls(calls: Iterable[GraphCall], values: Mapping[str, Expr]) -> tuple[GraphCall, ...]:
    """The calls with values for symbols in the places of what they update."""

    def bound(update: Update) -> Update:
        inside = {name: value for name, value in values.items() if name not in update.iterators}
        return replace(update, place=tuple(simplify(substitute(index, inside)) for index in update.place))

    return tuple(replace(call, updates=tuple(map(bound, call.updates))) if call.updates else call for call in calls)


def bound_rooms(rooms: Iterable[Room], values: Mapping[str, Expr]) -> tuple[Room, ...]:
    """The rooms with values for symbols in their numbers of rows."""
    return tuple(replace(each, rows=simplify(substitute(each.rows, values))) for each in rooms)


def bound_node(node: Node, values: Mapping[str, Expr]) -> Node:
    """The node with values for symbols, simplified."""
    expr = node.expr
    extents = tuple(substitute(e, values) for e in expr.extents)
    return replace(node, expr=simplify_tensor(replace(expr, extents=extents, body=substitute(expr.body, values))))


def bound_tensor(tensor: Tensor, values: Mapping[str, Expr]) -> Tensor:
    """The tensor with values for symbols in its shape."""
    return replace(tensor, shape=tuple(simplify(substitute(e, values)) for e in tensor.shape))


def bound_constraints(constraints: Iterable[Constraint], values: Mapping[str, Expr]) -> tuple[Constraint, ...]:
    """The constraints on the symbols that remain when others have these values; those that hold are gone."""
    bound = (replace(each, holds=simplify_scalar(substitute(each.holds, values))) for each in constraints)
    return tuple(each for each in bound if each.holds != Const(True))


def _bound_scenarios(scenarios: Mapping[str, Scenario], sizes: Mapping[str, int]) -> dict[str, Scenario]:
    """The scenarios of the symbols that remain; those that give one that is bound another size are gone."""
    values: dict[str, Expr] = {symbol: Const(size) for symbol, size in sizes.items()}
    bound = {}
    for name, each in scenarios.items():
        told = {symbol: simplify(substitute(expr, values)) for symbol, expr in each.sizes.items()}
        if all(told[symbol] == values[symbol] for symbol in told.keys() & values.keys()):
            at = tuple({symbol: n for symbol, n in point.items() if symbol not in sizes} for point in each.at)
            left = {symbol: expr for symbol, expr in told.items() if symbol not in sizes}
            bound[name] = replace(each, sizes=left, at=at)
    return bound


def _own_sizes(graph: Graph, sizes: Mapping[str, int]) -> tuple[dict[str, int], list[Constraint]]:
    """The sizes of the graph's own symbols, and what those of others demand of them."""
    own = {symbol: size for symbol, size in sizes.items() if symbol in graph.symbols}
    conditions = []
    for symbol in (each for each in sizes if each not in own):
        known = graph.symbol_values[symbol]
        if isinstance(known.value, Var) and known.value.name not in own:
            own[known.value.name] = sizes[symbol]
        origin = f"{symbol}={sizes[symbol]}, {known.origin}" if known.origin else f"{symbol}={sizes[symbol]}"
        conditions.append(Constraint(Binary("==", known.value, Const(sizes[symbol])), origin))
    return own, conditions


def _require_fulfilled(
    constraints: Iterable[Constraint],
    ranges: Mapping[str, SymbolRange],
    own: Mapping[str, int],
    sizes: Mapping[str, int],
) -> None:
    """Raise UsageError for sizes that break a range of the graph, or a constraint that they decide."""
    decided = [each for each in constraints if variables(each.holds) <= set(own)]
    problems = broken_constraints(decided, ranges, own)
    if not problems:
        return
    broken = next((each for each in decided if not integer(each.holds, own)), None)
    divisor = None if broken is None else accepted_divisor(broken.holds)
    hint = (
        "Take sizes that the model accepts."
        if divisor is None
        else f"Take a multiple of {divisor[1]} for {divisor[0]}."
    )
    raise UsageError(problems[0], _flags(sizes), hint)
