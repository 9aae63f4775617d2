"""Binding of symbols: a graph with some of its symbolic sizes replaced by integers.

Import always builds the symbolic graph and binds it here afterwards, so that binding at import and binding at schedule
give the same graph, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tilec.errors import UsageError, did_you_mean
from tilec.ir.algebra import Ranges, simplify, simplify_scalar
from tilec.ir.expr import Binary, Const, Expr, Reduce, TensorExpr, substitute, variables
from tilec.ir.graph import Graph, Node, Tensor
from tilec.ir.sizes import Constraint, broken_constraints


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


def bind(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """Replace symbols by sizes everywhere and simplify; symbols not in `sizes` remain.

    Raises UsageError for a symbol that the graph does not have and for a negative size.
    """
    for symbol, size in sizes.items():
        if symbol not in graph.symbols:
            near = did_you_mean(symbol, graph.symbols)
            known = ", ".join(graph.symbols) or "none left to bind"
            raise UsageError(
                f"the graph has no symbol {symbol!r} (symbols: {known})",
                place=f"--shape {symbol}={size}",
                hint=f"Did you mean {near!r}?" if near else None,
            )
        if size < 0:
            raise UsageError(f"a size cannot be negative: {symbol}={size}", place=f"--shape {symbol}={size}")
    if not sizes:
        return graph
    _require_fulfilled(graph, sizes)
    values: dict[str, Expr] = {symbol: Const(size) for symbol, size in sizes.items()}
    return replace(
        graph,
        symbols=tuple(s for s in graph.symbols if s not in sizes),
        tensors={name: bound_tensor(tensor, values) for name, tensor in graph.tensors.items()},
        nodes=tuple(bound_node(node, values) for node in graph.nodes),
        ranges=tuple(replace(r, extent=simplify(substitute(r.extent, values))) for r in graph.ranges),
        symbol_ranges={symbol: entry for symbol, entry in graph.symbol_ranges.items() if symbol not in sizes},
        constraints=bound_constraints(graph.constraints, values),
    )


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


def _require_fulfilled(graph: Graph, sizes: Mapping[str, int]) -> None:
    """Raise UsageError for sizes that break a range of the graph, or a constraint that they decide."""
    decided = [each for each in graph.constraints if variables(each.holds) <= set(sizes)]
    problems = broken_constraints(decided, graph.symbol_ranges, sizes)
    if problems:
        flags = " ".join(f"--shape {symbol}={size}" for symbol, size in sizes.items())
        raise UsageError(problems[0], flags, "Take sizes that the model accepts.")
