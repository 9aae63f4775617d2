"""Iterators over products of sizes that vary, split into iterators over the factors.

`[b, s, k] -> [b*s, k] -> product -> [b, s, n]` computes over `m < b*s` what its neighbours see as (b, s). As long as
sizes are numbers, windows of the one are numbers in the other; with symbols they are not, so the product is computed
over (b, s) as well. Reshapes at both ends become copies that `compose` takes in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tilec.ir.algebra import polynomial, simplify
from tilec.ir.expr import (
    Access,
    Binary,
    Const,
    Expr,
    Reduce,
    TensorExpr,
    Var,
    accesses,
    operands,
    rebuild,
    substitute,
    variables,
    walk,
)
from tilec.ir.graph import Graph, Node
from tilec.scheduler.analysis.access import divisions
from tilec.scheduler.graph_passes.rewrite import fresh, iterator_names, with_nodes, with_value
from tilec.scheduler.refusals import RewrittenGraph

Place = tuple[str, str]
"""A node and one of its iterators."""

ONE = Const(1)


def unflatten(draft: RewrittenGraph) -> RewrittenGraph:
    """Split iterators over products of symbolic sizes where neighbours see the factors.

    args:
        draft: the graph, and the edges refused so far
    rewrite:
        F[m, k] = X[m // s, m % s, k];  Y[m, n] = sum(k, F[m, k] * W[k, n]);  Z[i, j, n] = Y[i*s + j, n]   m < b*s
        -> F[m1, m2, k] = X[m1, m2, k];  Y[m1, m2, n] = sum(k, F[m1, m2, k] * W[k, n]);  Z[i, j, n] = Y[i, j, n]
    checks:
        the extent is no number, and every divisor divides it and the next larger one
        all iterators that run along each other are split together; those of outputs stay
        no node gets more `//` and `%`
    """
    graph = draft.graph
    nodes = {node.name: node for node in graph.nodes}
    splits = _splits(graph, nodes) if graph.symbols else []
    after: dict[str, Node] = {}
    while splits:
        after = _split(nodes, {place: factors for places, factors in splits for place in places})
        worse = {name for name, node in after.items() if _divisions(node) > _divisions(nodes[name])}
        if not worse:
            break
        near = worse.union(*(operands(nodes[name].expr) for name in worse))
        splits = [(places, factors) for places, factors in splits if near.isdisjoint(node for node, _ in places)]
    if not splits:
        return draft
    return RewrittenGraph(with_nodes(graph, (nodes | after).values()), draft.refused)


def _divisions(node: Node) -> int:
    return divisions(node.expr.value)


def _splits(graph: Graph, nodes: Mapping[str, Node]) -> list[tuple[list[Place], tuple[Expr, ...]]]:
    """Iterators that run along each other, with the factors into which they may fall."""
    found = _divisors(graph, nodes)
    splits = []
    for places in _alike(graph, nodes) if found else ():
        node, iterator = places[0]
        divisors = frozenset[Expr]().union(*(found.get(place, frozenset()) for place in places))
        factors = factors_of(nodes[node].expr.domain[iterator], divisors)
        splits += [(places, factors)] if factors else []
    return splits


def factors_of(extent: Expr, divisors: frozenset[Expr]) -> tuple[Expr, ...]:
    """The extents, outermost first, into which an extent falls at some divisors; none where these do not nest.

    Numbers stay together: windows along their product are numbers too.
    """
    extent = simplify(extent)
    proper = {d for d in divisors if d not in (ONE, extent) and _ratio(extent, d) is not None}
    factors: list[Expr] = []
    while proper:
        largest = next((d for d in proper if all(_ratio(d, other) is not None for other in proper)), None)
        if largest is None:
            return ()
        proper.discard(largest)
        factors.append(simplify(Binary("//", extent, largest)))
        extent = largest
    return _numbers_together((*factors, extent))


def _numbers_together(factors: Sequence[Expr]) -> tuple[Expr, ...]:
    """Factors with the product of neighbours that are numbers in their place; none where only one is left."""
    merged: list[Expr] = []
    for factor in factors:
        if merged and not variables(factor) and not variables(merged[-1]):
            merged[-1] = simplify(Binary("*", merged[-1], factor))
        else:
            merged.append(factor)
    return tuple(merged) if len(merged) > 1 else ()


def _ratio(extent: Expr, divisor: Expr) -> Expr | None:
    """The quotient of two sizes if it is exact whatever the symbols are."""
    quotient = simplify(Binary("//", extent, divisor))
    return quotient if simplify(Binary("*", quotient, divisor)) == extent else None


def _open(graph: Graph, nodes: Mapping[str, Node]) -> set[Place]:
    """Iterators of a symbolic extent that may be split."""
    outputs = {port.tensor for port in graph.outputs}
    return {
        (node.name, iterator)
        for node in nodes.values()
        for iterator in (node.expr.reduce if node.name in outputs else node.expr.iterators)
        if variables(node.expr.domain[iterator])
    }


def _alike(graph: Graph, nodes: Mapping[str, Node]) -> list[list[Place]]:
    """Iterators that run along each other: those of a reader and of a node that it reads at just this iterator."""
    where = {place: [place] for place in _open(graph, nodes)}
    for node in nodes.values():
        domain = node.expr.domain
        for access in accesses(node.expr):
            if access.tensor not in nodes:
                continue
            producer = nodes[access.tensor].expr
            for index, along in zip(access.index, producer.spatial, strict=True):
                if isinstance(index, Var) and domain.get(index.name) == producer.domain[along]:
                    _join(where, (node.name, index.name), (access.tensor, along))
    ordered = [(node.name, iterator) for node in nodes.values() for iterator in node.expr.iterators]
    return list({id(where[place]): where[place] for place in ordered if place in where}.values())


def _join(where: dict[Place, list[Place]], a: Place, b: Place) -> None:
    if a in where and b in where and where[a] is not where[b]:
        where[a].extend(where[b])
        where.update(dict.fromkeys(where[b], where[a]))


def _divisors(graph: Graph, nodes: Mapping[str, Node]) -> dict[Place, frozenset[Expr]]:
    """Sizes by which nodes divide iterators, and by which readers multiply what they add up to an index."""
    places = _open(graph, nodes)
    found: dict[Place, frozenset[Expr]] = {}
    for node in nodes.values():
        pairs = [((node.name, iterator), size) for iterator, size in _quotients(node.expr)]
        for access in accesses(node.expr):
            if access.tensor in nodes:
                along = nodes[access.tensor].expr.spatial
                moving = frozenset(node.expr.iterators)
                weights = [(name, w) for name, i in zip(along, access.index, strict=True) for w in _weights(i, moving)]
                pairs += [((access.tensor, name), size) for name, size in weights]
        for place, size in pairs:
            if place in places:
                found[place] = found.get(place, frozenset()) | {simplify(size)}
    return found


def _quotients(expr: TensorExpr) -> Iterator[tuple[str, Expr]]:
    """Iterators and what `//` and `%` divide them by, in all."""
    for part in walk(expr.value):
        if isinstance(part, Binary) and part.op in ("//", "%") and (inner := _divided(part.left)) is not None:
            yield inner[0], Binary("*", inner[1], part.right)


def _divided(part: Expr) -> tuple[str, Expr] | None:
    """The iterator that an expression divides, and by what in all."""
    match part:
        case Var(name):
            return name, ONE
        case Binary("//", left, size) if (inner := _divided(left)) is not None:
            return inner[0], Binary("*", inner[1], size)
        case Binary("%", left, _):
            return _divided(left)
        case _:
            return None


def _weights(index: Expr, moving: frozenset[str]) -> Iterator[Expr]:
    """What the iterators in an index are multiplied by; where one runs backward the size of its steps."""
    for term, coefficient in polynomial(index).items():
        sizes = [atom for atom in term if moving.isdisjoint(variables(atom))]
        if len(sizes) < len(term):
            weight: Expr = Const(abs(coefficient))
            for size in sizes:
                weight = Binary("*", weight, size)
            yield weight


def _split(nodes: Mapping[str, Node], splits: Mapping[Place, Sequence[Expr]]) -> dict[str, Node]:
    """The nodes that change if iterators are split into factors."""
    dimensions: dict[str, dict[int, Sequence[Expr]]] = {}
    for name, node in nodes.items():
        places = enumerate((name, iterator) for iterator in node.expr.spatial)
        dimensions[name] = {d: splits[place] for d, place in places if place in splits}
    after: dict[str, Node] = {}
    for name, node in nodes.items():
        expr = node.expr
        for iterator in node.expr.iterators:
            if (name, iterator) in splits:
                expr = split_iterator(expr, iterator, splits[name, iterator])
        value = _through(expr.value, dimensions)
        if expr is not node.expr or value is not node.expr.value:
            after[name] = replace(node, expr=with_value(expr, value))
    return after


def split_iterator(expr: TensorExpr, iterator: str, factors: Sequence[Expr]) -> TensorExpr:
    """The expression with one iterator for each factor, outermost first, in place of an iterator."""
    taken, names = set(iterator_names(expr)), list[str]()
    for _ in factors:
        names.append(fresh(iterator, taken))
        taken.add(names[-1])
    number: Expr = Const(0)
    for name, factor in zip(names, factors, strict=True):
        number = Binary("+", Binary("*", number, factor), Var(name))
    domain = expr.domain | dict(zip(names, factors, strict=True))
    spatial, reduced = _replaced(expr.spatial, iterator, names), _replaced(expr.reduce, iterator, names)
    value = substitute(expr.value, {iterator: number})
    body = Reduce(expr.body.op, reduced, value) if isinstance(expr.body, Reduce) else value
    return TensorExpr(expr.tensor, spatial, reduced, tuple(domain[i] for i in spatial + reduced), body)


def _replaced(iterators: Sequence[str], old: str, new: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for i in iterators for name in (new if i == old else (i,)))


def _through(body: Expr, dimensions: Mapping[str, Mapping[int, Sequence[Expr]]]) -> Expr:
    """The body with accesses to tensors some of whose dimensions are split."""
    new = rebuild(body, lambda e: _through(e, dimensions))
    if not isinstance(new, Access) or not dimensions.get(new.tensor):
        return new
    index: list[Expr] = []
    for dimension, position in enumerate(new.index):
        factors = dimensions[new.tensor].get(dimension)
        index += digits(position, factors) if factors else [position]
    return Access(new.tensor, tuple(index))


def digits(position: Expr, factors: Sequence[Expr]) -> list[Expr]:
    """A position as one position along each factor, outermost first."""
    result: list[Expr] = []
    for factor in reversed(factors[1:]):
        result.append(Binary("%", position, factor))
        position = Binary("//", position, factor)
    return [position, *reversed(result)]
