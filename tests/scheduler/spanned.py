"""Plans made of spans alone: the lowest level, the one that holds the spans, and one on top in which parts compute."""

from collections.abc import Sequence
from dataclasses import replace

from scheduler.running import tiny

from tilec.ir.expr import Const, accesses, operands
from tilec.ir.graph import Graph, Node
from tilec.ir.intervals import Candidates
from tilec.ir.plan import Cost, Group, Plan, PlanLevel, Variant
from tilec.lower.counts.footprint import footprint
from tilec.lower.counts.traffic import traffic
from tilec.lower.lowering import lower
from tilec.scheduler.analysis.access import is_data_dependent
from tilec.scheduler.memory_levels.level_groups import level_groups
from tilec.scheduler.refusals import edge_name
from tilec.scheduler.state import LevelGroup
from tilec.scheduler.target_model import TargetModel, target_model_of

Parts = Sequence[Sequence[Node]]
LOW, MIDDLE, TOP = "low", "middle", "top"


def target(capacity: int, link: float = 1e9, units: int = 1) -> TargetModel:
    """Three levels, the middle one of that many bytes; the cores get ten times what comes over the link."""
    middle = PlanLevel(MIDDLE, capacity, units, scope="chip" if units > 1 else "")
    levels = (PlanLevel(LOW, None), middle, PlanLevel(TOP, None))
    return replace(target_model_of(tiny()), levels=levels, core=2, links=(link, link, 10 * link), peak=1e12, launch=0.0)


def spans_of(
    parts: Parts, graph: Graph, capacity: int, *, objective: str = "time", closed: bool = False, units: int = 1
) -> tuple[LevelGroup, ...]:
    """The spans of parts on the middle level."""
    return level_groups(parts, graph, target(capacity, units=units), 1, Candidates(), objective, closed)  # type: ignore[arg-type]


def plan_of(graph: Graph, parts: Parts, found: Sequence[LevelGroup], capacity: int, units: int = 1) -> Plan:
    """Every span a group, connected at the middle level, its parts at the top."""
    groups = tuple(_group(graph, parts, span, number) for number, span in enumerate(found))
    return Plan(
        name=graph.name,
        device="test",
        levels=target(capacity, units=units).levels,
        symbols=graph.symbols,
        inputs=graph.inputs,
        outputs=graph.outputs,
        tensors=graph.tensors,
        constants=graph.constants,
        prepared=(),
        groups=groups,
        refusals=(),
    )


def _group(graph: Graph, parts: Parts, span: LevelGroup, number: int) -> Group:
    nodes = tuple(node for member in span.members for node in parts[member])
    home = {node.name: member for member in span.members for node in parts[member]}
    results = {port.tensor for port in graph.outputs}
    readers = graph.consumers()
    loads: dict[str, tuple[str, ...]] = {}
    for node in nodes:
        for access in accesses(node.expr):
            stays = access.tensor in home or is_data_dependent(access)
            loads[access.tensor] = () if stays else loads.get(access.tensor, (MIDDLE,))
    final = nodes[-1].name
    variant = Variant(
        guard=Const(True),
        levels=(LOW, MIDDLE, TOP),
        tiles={MIDDLE: {final: span.sizes}} if span.sizes else {},
        steps={},
        kernel=f"span_{number}",
        order={MIDDLE: {final: span.order}} if span.sizes else {},
        loads=loads,
    )
    return Group(
        name=final,
        nodes=nodes,
        outputs=tuple(n for n in home if n in results or any(r.name not in home for r in readers[n])),
        connect={
            edge_name(t, node.name): TOP if home[t] == home[node.name] else MIDDLE
            for node in nodes
            for t in operands(node.expr)
            if t in home
        },
        variants=(variant,),
        cost=Cost({}, {}, {}),
    )


def counted(plan: Plan) -> tuple[list[int], list[int]]:
    """For every group the bytes over the link and the most bytes that the middle level holds, of its program."""
    moved, held = [], []
    for group in plan.groups:
        program = lower(group, group.variants[0], plan)
        count = traffic(program)[MIDDLE]
        moved.append(count.read + count.written)
        size = footprint(program)[MIDDLE]
        assert isinstance(size, Const)
        held.append(int(size.value))
    return moved, held
