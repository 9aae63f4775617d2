"""Areas of nodes that grow by rules until none applies (Apollo, aggregating primitive operators; A05, A06, A08)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tilec.ir.expr import operands
from tilec.ir.graph import Graph, Node
from tilec.ir.intervals import Candidates
from tilec.scheduler.analysis.reachability import Reachability
from tilec.scheduler.analysis.window_propagation import extent_of
from tilec.scheduler.fusion.patterns import edge_pattern, node_pattern
from tilec.scheduler.fusion.rule_table import Rule, RuleTable
from tilec.scheduler.refusals import edge_name


@dataclass(frozen=True, slots=True)
class Areas:
    """Nodes by area, and for every edge inside of one the rule that joined its ends."""

    home: Mapping[str, int]
    rules: Mapping[str, str]


def aggregate(nodes: Sequence[Node], graph: Graph, numbers: Candidates, table: RuleTable) -> Areas:
    """The areas of some nodes of a graph, in topological order; `numbers` are the sizes that symbols are taken for."""
    growing = _Growing.of(nodes, graph, numbers, table)
    while sum(growing.apply(rule) for rule in table.rules):
        pass
    return Areas(growing.home, growing.rules)


@dataclass(frozen=True)
class _Growing:
    """Areas by number, those that were joined into others empty.

    readers, reads  areas next to each, and the largest relation between them
    elements        elements of the last result
    reductions      extents that an area's reductions run over, and elements that its first one reads
    """

    table: RuleTable
    home: dict[str, int]
    rules: dict[str, str]
    edges: tuple[tuple[str, str], ...]
    nodes: list[int]
    patterns: list[int]
    reads: list[dict[int, int]]
    readers: list[set[int]]
    elements: list[int]
    reductions: list[tuple[frozenset[tuple[int, ...]], int]]
    ancestry: Reachability

    @classmethod
    def of(cls, nodes: Sequence[Node], graph: Graph, numbers: Candidates, table: RuleTable) -> _Growing:
        """Every node an area of its own."""
        home = {node.name: number for number, node in enumerate(nodes)}
        made = cls(table, home, {}, tuple(_edges(nodes, home)), [], [], [], [], [], [], Reachability())
        for number, node in enumerate(nodes):
            sizes = {name: int(extent_of(extent, numbers)) for name, extent in node.expr.domain.items()}
            axes = tuple(sizes[name] for name in node.expr.reduce)
            made.nodes.append(1)
            made.patterns.append(table.rank(node_pattern(node, graph)))
            made.elements.append(prod(sizes[name] for name in node.expr.spatial))
            made.reductions.append((frozenset({axes} if axes else ()), prod(sizes.values()) if axes else 0))
            inside = dict.fromkeys(t for t in operands(node.expr) if t in home)
            made.reads.append({home[t]: table.rank(edge_pattern(t, node, graph)) for t in inside})
            made.readers.append(set())
            made.ancestry.add()
            made.ancestry.read(number, made.reads[number])
            for producer in made.reads[number]:
                made.readers[producer].add(number)
        return made

    def apply(self, rule: Rule) -> int:
        """Join areas by one rule as often as it applies; returns how often it did."""
        applied = 0
        for area in range(len(self.nodes)):
            while (pair := next(self._pairs(rule, area), None)) is not None:
                area = self._join(*pair, rule.name)
                applied += 1
        return applied

    def _pairs(self, rule: Rule, area: int) -> Iterator[tuple[int, int]]:
        """Producers and readers that a rule joins, of which `area` is one."""
        if not self.nodes[area] or self.table.patterns[self.patterns[area]] not in rule.area:
            return
        pairs = [(other, area) for other in sorted(self.reads[area])] if rule.side != "outputs" else []
        pairs += [(area, other) for other in sorted(self.readers[area])] if rule.side != "inputs" else []
        yield from (pair for pair in pairs if self._applies(rule, area, *pair))

    def _applies(self, rule: Rule, area: int, producer: int, reader: int) -> bool:
        other = producer if area == reader else reader
        axes, read = self.reductions[area]
        return (
            self.patterns[other] <= self.table.rank(rule.neighbour)
            and self.reads[reader][producer] <= self.table.rank(rule.relation)
            and (not rule.only_input or len(self.reads[reader]) == 1)
            and (not rule.only_reader or len(self.readers[producer]) == 1)
            and (not rule.same_size or self.elements[producer] == self.elements[reader])
            and (not rule.same_axes or axes == self.reductions[other][0])
            and read >= rule.least_elements
            and self.nodes[producer] + self.nodes[reader] <= self.table.most_nodes
            and not self._through_others(producer, reader)
        )

    def _through_others(self, producer: int, reader: int) -> bool:
        """Whether another path from the producer to the reader leaves both (A07)."""
        outside = (self.reads[producer].keys() | self.reads[reader].keys()) - {producer, reader}
        return any(self.ancestry.leads(producer, other) for other in outside)

    def _join(self, producer: int, reader: int, rule: str) -> int:
        """Make the producer part of the reader's area."""
        for tensor, name in self.edges:
            if (self.home[tensor], self.home[name]) == (producer, reader):
                self.rules[edge_name(tensor, name)] = rule
        self.home.update({name: reader for name, number in self.home.items() if number == producer})
        self.nodes[reader] += self.nodes[producer]
        self.nodes[producer] = 0
        self.patterns[reader] = max(self.patterns[reader], self.patterns[producer])
        axes, read = self.reductions[producer]
        more, other = self.reductions[reader]
        self.reductions[reader] = (axes | more, read or other)
        self._rewire(producer, reader)
        self.ancestry.read(producer, [reader])
        self.ancestry.read(reader, [producer])
        return reader

    def _rewire(self, producer: int, reader: int) -> None:
        del self.reads[reader][producer]
        for other, relation in self.reads[producer].items():
            self.reads[reader][other] = max(relation, self.reads[reader].get(other, 0))
            self.readers[other] = self.readers[other] - {producer} | {reader}
        for other in self.readers[producer] - {reader}:
            relation = self.reads[other].pop(producer)
            self.reads[other][reader] = max(relation, self.reads[other].get(reader, 0))
        self.readers[reader] |= self.readers[producer] - {reader}
        self.reads[producer], self.readers[producer] = {}, set()


def _edges(nodes: Sequence[Node], home: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """(tensor, reader) of the edges between nodes."""
    for node in nodes:
        yield from ((tensor, node.name) for tensor in dict.fromkeys(operands(node.expr)) if tensor in home)
