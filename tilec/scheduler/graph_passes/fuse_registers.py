"""Register fusion: elementwise operators stay in the registers of the producer they read pointwise (Welder, 4.2).

The result is a partition of the nodes into parts, which are connected at the highest level. Every reduction starts a
part. An elementwise node joins the part of a producer that it reads pointwise, unless another path from that part leads
to the node (Apollo, aggregating primitive operators). Parts are in execution order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from tilec.ir.expr import accesses, operands
from tilec.ir.graph import Graph, Node
from tilec.ir.plan import Refusal
from tilec.scheduler.analysis.access import reads_pointwise, recomputed
from tilec.scheduler.analysis.contraction import is_contraction
from tilec.scheduler.analysis.reachability import Reachability
from tilec.scheduler.graph_passes.rewrite import constant_tensors
from tilec.scheduler.refusals import edge_name, refusal


@dataclass(frozen=True, slots=True)
class RegisterFusion:
    """Parts in execution order, each a tuple of nodes in topological order; refusals of the edges between parts."""

    parts: tuple[tuple[Node, ...], ...]
    refused: Mapping[str, Refusal]


def computed_nodes(graph: Graph) -> tuple[Node, ...]:
    """Nodes that depend on the model's inputs; all others are evaluated once, at compile time."""
    constants = constant_tensors(graph)
    return tuple(node for node in graph.nodes if node.name not in constants)


def single_nodes(graph: Graph) -> RegisterFusion:
    """Every node as a part of its own: the ablation without fusion."""
    nodes = computed_nodes(graph)
    produced = {node.name for node in nodes}
    refused = [
        refusal(tensor, node.name, "fusion-off")
        for node in nodes
        for tensor in operands(node.expr)
        if tensor in produced
    ]
    return RegisterFusion(tuple((node,) for node in nodes), {r.edge: r for r in refused})


def fuse_registers(graph: Graph, max_nodes: int | None = None) -> RegisterFusion:
    """Partition of the graph's nodes into parts of elementwise nodes around reductions.

    args:
        graph: a graph in topological order
        max_nodes: nodes of a part at most; None: any number
    rewrite:
        C[m, n] = sum(k, A[m, k] * B[k, n]);  D[m, n] = C[m, n] + bias[n];  E[m, n] = relu(D[m, n])
        -> one part {C, D, E}, whose values between nodes stay in registers
    checks:
        the reader is no reduction and reads every element of the producer at its own point
        the part has room for another node
        no other path leads from the part to the reader (the parts would depend on each other in a circle)
        every node of a part leads to its last node; others are cut off (`with_one_final`)
    """
    members: list[list[Node]] = []
    home: dict[str, int] = {}
    multiplies: list[bool] = []
    ancestry = Reachability()
    refused: dict[str, Refusal] = {}
    reads: dict[str, tuple[str, ...]] = {}
    for node in computed_nodes(graph):
        part = None
        reads[node.name] = operands(node.expr)
        reasons = {tensor: _objection(tensor, node, graph) for tensor in reads[node.name] if tensor in home}
        producers = {home[t] for t in reasons}
        candidates = {home[t] for t, reason in reasons.items() if reason is None}
        for candidate in sorted(candidates, key=lambda p: (multiplies[p], p), reverse=True):
            inside = [t for t in reasons if home[t] == candidate]
            if any(reasons[t] is not None for t in inside):
                continue
            if max_nodes is not None and len(members[candidate]) >= max_nodes:
                for tensor in inside:
                    reasons[tensor] = refusal(tensor, node.name, "length", nodes=max_nodes + 1, most=max_nodes)
                continue
            if any(ancestry.leads(candidate, other) for other in producers - {candidate}):
                for tensor in inside:
                    reasons[tensor] = refusal(tensor, node.name, "cycle")
                continue
            part = candidate
            break
        if part is None:
            part = len(members)
            members.append([])
            multiplies.append(False)
            ancestry.add()
        for tensor, reason in reasons.items():
            if home[tensor] != part:
                refused[edge_name(tensor, node.name)] = reason or refusal(tensor, node.name, "outputs-differ")
        ancestry.read(part, producers - {part})
        members[part].append(node)
        multiplies[part] = multiplies[part] or is_contraction(node.expr)
        home[node.name] = part
    whole, split_off = with_one_final(members, reads)
    refused |= split_off
    return RegisterFusion(in_order(whole, {node.name: n for n, node in enumerate(graph.nodes)}, reads), refused)


def with_one_final(
    members: Sequence[Sequence[Node]], reads: Mapping[str, Sequence[str]]
) -> tuple[list[list[Node]], dict[str, Refusal]]:
    """Parts whose last node depends on all others; nodes that do not lead to it become parts of their own."""
    waiting, done = [list(m) for m in members], list[list[Node]]()
    refused: dict[str, Refusal] = {}
    while waiting:
        part = waiting.pop()
        needed = {part[-1].name}
        for node in reversed(part):
            if node.name in needed:
                needed.update(reads[node.name])
        connected = [node for node in part if node.name in needed]
        loose = [node for node in part if node.name not in needed]
        done.append(connected)
        names = {node.name for node in connected}
        for node in loose:
            refused |= {
                edge_name(t, node.name): refusal(t, node.name, "outputs-differ") for t in reads[node.name] if t in names
            }
        waiting += _pieces(loose, reads)
    return done, refused


def _pieces(nodes: Sequence[Node], reads: Mapping[str, Sequence[str]]) -> list[list[Node]]:
    """Connected components of the nodes."""
    pieces: list[list[Node]] = []
    for node in nodes:
        joined = [piece for piece in pieces if any(n.name in reads[node.name] for n in piece)]
        pieces = [piece for piece in pieces if piece not in joined]
        pieces.append([*(n for piece in joined for n in piece), node])
    return pieces


def in_order(
    members: Sequence[Sequence[Node]], places: Mapping[str, int], reads: Mapping[str, Sequence[str]]
) -> tuple[tuple[Node, ...], ...]:
    """Parts in execution order, ties in the order of their last nodes' places, each with its nodes by place.

    Raises ValueError where parts depend on each other in a circle.
    """
    home = {node.name: number for number, part in enumerate(members) for node in part}
    needs = [
        {home[t] for node in part for t in reads[node.name] if t in home} - {number}
        for number, part in enumerate(members)
    ]
    order = execution_order(needs, [places[part[-1].name] for part in members])
    return tuple(tuple(sorted(members[i], key=lambda node: places[node.name])) for i in order)


def _objection(tensor: str, node: Node, graph: Graph) -> Refusal | None:
    """The refusal of a node to share registers with the producer of a tensor that it reads; None if it may."""
    reads = [a for a in accesses(node.expr) if a.tensor == tensor]
    if node.expr.reduce:
        times = max((recomputed(node.expr, a) or 0 for a in reads), default=0)
        if times > 1:
            return refusal(tensor, node.name, "recomputed", times=times)
        return refusal(tensor, node.name, "reduction", iterators=", ".join(node.expr.reduce))
    shape = graph.tensors[tensor].shape
    if any(reads_pointwise(a, node.expr, shape) is None for a in reads):
        return refusal(tensor, node.name, "iterates-differently")
    return None


def execution_order(needs: Sequence[set[int]], rank: Sequence[int]) -> list[int]:
    """A topological order of numbers that depend on others; of those that are ready the lowest rank comes first.

    Raises ValueError for a cycle.
    """
    missing = [len(below) for below in needs]
    above: list[list[int]] = [[] for _ in needs]
    for number, below in enumerate(needs):
        for other in below:
            above[other].append(number)
    ready = [(rank[number], number) for number, count in enumerate(missing) if count == 0]
    heapify(ready)
    order: list[int] = []
    while ready:
        _, chosen = heappop(ready)
        order.append(chosen)
        for number in above[chosen]:
            missing[number] -= 1
            if missing[number] == 0:
                heappush(ready, (rank[number], number))
    if len(order) < len(needs):
        raise ValueError("groups depend on each other in a circle")
    return order
