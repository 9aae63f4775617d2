"""Cheap elementwise producers recomputed in the reductions that read them (Apollo, recomputation).

`sum((x - mean)**2)` needs no tensor of differences: a part of cheap elementwise nodes that a reduction reads once per
element is substituted into all its readers. A producer whose elements a contraction reads many times stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilec.ir.expr import Access, Binary, Call, Expr, TensorExpr, accesses, operands, variables, walk
from tilec.ir.graph import Graph, Node
from tilec.ir.types import TTYPES
from tilec.scheduler.analysis.access import choices, is_data_dependent, is_movement, recomputed
from tilec.scheduler.analysis.contraction import is_contraction
from tilec.scheduler.graph_passes.fuse_registers import fuse_registers
from tilec.scheduler.graph_passes.rewrite import substitute_accesses, with_nodes, with_value
from tilec.scheduler.refusals import RewrittenGraph

CHEAP = 4
"""Largest number of scalar operations of a part that several readers recompute."""

MAX_OPERATORS = 128
"""Operators and functions of an expression at most into which others were substituted; a longer chain is stored."""

SLOW = 12
"""Number of scalar operations that a transcendental function counts as."""

_FAST = {"maximum", "minimum", "neg", "abs", "not", "where", "floor", "ceil", "round", "sign"}


def rematerialize(draft: RewrittenGraph) -> RewrittenGraph:
    """Substitute cheap elementwise parts into the reductions and elementwise nodes that read them.

    args:
        draft: the graph, and the edges refused so far
    rewrite:
        c[s, n] = x[s, n] - mean[s];  v[s] = sum(n, c[s, n] * c[s, n]);  y[s, n] = c[s, n] * r[s]
        -> v[s] = sum(n, (x[s, n] - mean[s]) * (x[s, n] - mean[s]));  y[s, n] = (x[s, n] - mean[s]) * r[s]
    checks:
        no reduction and no data-dependent access in the part, and no output
        every reader needs each element at one point only, and is no contraction
        the part has at most CHEAP operations, or a single reader
        no reader's expression becomes longer than MAX_OPERATORS
    """
    graph = draft.graph
    while parts := _dissolvable(graph):
        graph = _dissolve(graph, parts)
    return RewrittenGraph(graph, draft.refused)


def _dissolvable(graph: Graph) -> list[tuple[Node, ...]]:
    """Sets of nodes to be recomputed by their readers, of which none reads another."""
    readers = graph.consumers()
    sets: list[tuple[Node, ...]] = []
    touched: set[str] = set()
    for part in fuse_registers(graph).parts:
        for nodes in _candidates(part, graph, readers):
            names = {node.name for node in nodes}
            outside = [(n, reader) for n in names for reader in readers[n] if reader.name not in names]
            around = names | {t for node in nodes for t in operands(node.expr)}
            if not around & touched and _pays(nodes, outside):
                sets.append(nodes)
                touched |= names | {reader.name for _, reader in outside}
    return sets


def _candidates(
    part: tuple[Node, ...], graph: Graph, readers: Mapping[str, tuple[Node, ...]]
) -> list[tuple[Node, ...]]:
    """Sets of nodes of a part that may be recomputed.

    Of a part without a reduction all nodes. Of any other part single nodes that nothing in it reads and whose operands
    are stored for other readers as well, so that staying in registers saves nothing.
    """
    outputs = {port.tensor for port in graph.outputs}
    names = {node.name for node in part}
    if not any(node.expr.reduce for node in part):
        return [] if names & outputs else [part]
    sets: list[tuple[Node, ...]] = []
    for node in part[1:]:
        inside = [t for t in operands(node.expr) if t in names]
        read_here = any(reader.name in names for reader in readers[node.name])
        stored = all(t in outputs or any(r.name not in names for r in readers[t]) for t in inside)
        if not read_here and stored and node.name not in outputs:
            sets.append((node,))
    return sets


def _pays(nodes: tuple[Node, ...], outside: list[tuple[str, Node]]) -> bool:
    """Whether recomputing the nodes in all their readers costs less than storing them."""
    if any(node.expr.reduce for node in nodes) or not all(_once(tensor, reader.expr) for tensor, reader in outside):
        return False
    if any(is_data_dependent(a) for node in nodes for a in accesses(node.expr)):
        return False
    taken = [a for tensor, reader in outside for a in accesses(reader.expr) if a.tensor == tensor]
    if any(map(_guards, nodes)) and any(map(is_data_dependent, taken)):
        return False
    longest = max((_operators(reader) for _, reader in outside), default=0)
    if longest + sum(map(_operators, nodes)) > MAX_OPERATORS:
        return False
    cheap = sum(operations(n.expr) for n in nodes) <= CHEAP
    alone = len({reader.name for _, reader in outside}) == 1
    reduced = any(reader.expr.reduce for _, reader in outside)
    return (reduced and (cheap or alone)) or (alone and (cheap or not choices(outside[0][1].expr.value)))


def _operators(node: Node) -> int:
    """Operators and functions in the scalar expression of a node."""
    return sum(isinstance(e, Binary | Call) for e in walk(node.expr.value))


def _guards(node: Node) -> bool:
    """Whether a node has conditions on positions: a reader's data-dependent index would turn them into conditions on
    data."""
    return any(isinstance(e, Call) and e.fn == "where" and variables(e.args[0]) for e in walk(node.expr.value))


def _once(tensor: str, reader: TensorExpr) -> bool:
    """Whether a reader needs every element at one of its points only, and is no contraction."""
    reads = [a for a in accesses(reader) if a.tensor == tensor]
    return not is_contraction(reader) and all(recomputed(reader, a) == 1 for a in reads)


def operations(expr: TensorExpr) -> int:
    """Scalar operations per point; a transcendental function counts as SLOW, conditions on iterators alone as none."""
    return arithmetic(expr.value)


def arithmetic(body: Expr) -> int:
    """Scalar operations of one expression, counted as in `operations`."""
    match body:
        case Access():
            return 0
        case Binary(op, left, right):
            return (SLOW // 3 if op in ("/", "//", "%") else 1) + arithmetic(left) + arithmetic(right)
        case Call("where", (condition, yes, no)) if not accesses(condition):
            return 1 + arithmetic(yes) + arithmetic(no)  # iterators alone decide
        case Call(fn, args):
            return (1 if fn in _FAST or fn in TTYPES else SLOW) + sum(arithmetic(a) for a in args)
        case _:
            return 0


def _dissolve(graph: Graph, parts: Sequence[tuple[Node, ...]]) -> Graph:
    """The graph without the nodes of `parts`, of which none reads another, each substituted into its readers."""
    gone: dict[str, TensorExpr] = {}
    home = {node.name: number for number, part in enumerate(parts) for node in part}
    nodes: list[Node] = []
    for node in graph.nodes:
        expr = node.expr
        for tensor in sorted((t for t in operands(expr) if t in gone), key=lambda t: home[t]):
            expr = with_value(expr, substitute_accesses(expr.value, gone[tensor]))
        if node.name in home:
            gone[node.name] = _as_stored(expr, graph.tensors[node.name].ttype)
        else:
            nodes.append(node if expr is node.expr else replace(node, expr=expr))
    return with_nodes(graph, nodes)


def _as_stored(expr: TensorExpr, ttype: str) -> TensorExpr:
    """The expression rounded as if stored: f16 and bf16 are computed in f32.

    All readers must see the same number, for some compare it with the maximum of all elements.
    """
    rounds = TTYPES[ttype].kind == "float" and TTYPES[ttype].bits < 32
    return with_value(expr, Call(ttype, (expr.value,))) if rounds and not is_movement(expr) else expr
