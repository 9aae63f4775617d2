"""Random plans (hypothesis): one to six levels, anything that a plan may say, for a whole graph as one group.

Levels are explicit or implicit, have one unit or up to 2000, and need not all be used.  Tiles, reduce steps, orders,
tails, connections at any level, levels that a tensor skips, pipeline copies and layouts are drawn independently.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from tests.random_graphs import Case, models
from tilec.ir.expr import Const, TensorExpr, operands
from tilec.ir.graph import Graph
from tilec.ir.plan import Cost, Group, Plan, PlanLevel, Variant

NAMES = ("ssd", "host", "dram", "l2", "shared", "reg")
"""Names of levels, lowest first."""

CPU = st.integers(2, 4).flatmap(lambda depth: hierarchies(NAMES[1:5][-depth:], fans=(4,)))
"""Two to four levels, four units or one."""

ANY = st.lists(st.sampled_from(NAMES), min_size=1, max_size=6, unique=True).flatmap(
    lambda names: hierarchies(tuple(name for name in NAMES if name in names), fans=(2, 3, 8, 108, 1472, 2000))
)
"""One to six levels with up to 2000 units each."""


@st.composite
def hierarchies(draw: Callable, names: tuple[str, ...], fans: tuple[int, ...]) -> tuple[PlanLevel, ...]:
    """Unbounded levels of these names; about a third of them, never the lowest, has as many units as one of `fans`.

    Some explicit ones have addresses, with one of three alignments.
    """
    levels = []
    for position, name in enumerate(names):
        units = draw(st.sampled_from(fans)) if position and draw(st.integers(0, 99)) < 30 else 1
        scope = f"unit{name}" if units > 1 and draw(st.booleans()) else ""
        managed = draw(st.sampled_from(("explicit", "implicit")))
        alignment = (None, 1, 4, 64)[(position + units + len(names)) % 4] if managed == "explicit" else None
        levels.append(PlanLevel(name, None, units, managed, scope, alignment=alignment))
    return tuple(levels)


@st.composite
def plans(draw: Callable, graph: Graph, hierarchy: st.SearchStrategy = CPU) -> Plan:
    """A plan that runs the whole graph as one group; it may leave out levels between the lowest and the highest."""

    def chance(percent: int) -> bool:
        return bool(draw(st.integers(0, 99)) < percent)

    levels = draw(hierarchy)
    used = tuple(lv for i, lv in enumerate(levels) if i in (0, len(levels) - 1) or not chance(10))
    names = tuple(level.name for level in used)
    upper = names[1:]
    exprs = {node.name: node.expr for node in graph.nodes}
    edges = [f"{t}->{e.tensor}" for e in exprs.values() for t in operands(e) if t in exprs]

    def sizes(expr: TensorExpr, iterators: tuple[str, ...], percent: int) -> dict[str, int]:
        chosen = [i for i in iterators if chance(percent)]
        return {i: draw(st.integers(1, max(1, int(expr.domain[i].value)))) for i in chosen}  # type: ignore[union-attr]

    tiled = 50 if len(upper) < 4 else 30
    tiles = {lv: {n: t for n, e in exprs.items() if (t := sizes(e, e.spatial, tiled))} for lv in upper}
    steps = {lv: {n: t for n, e in exprs.items() if (t := sizes(e, e.reduce, tiled - 10))} for lv in upper}
    order = {lv: {n: tuple(draw(st.permutations(e.spatial))) for n, e in exprs.items() if chance(20)} for lv in upper}
    tails = {lv: {n: draw(st.sampled_from(("shift", "clip"))) for n in exprs if chance(30)} for lv in upper}
    read = [t for t in graph.tensors if chance(15)]
    loads = {t: tuple(lv for lv in upper if chance(60)) for t in read}
    copies = {lv: {t: draw(st.integers(2, 3)) for t in graph.tensors if chance(8)} for lv in upper}
    layouts = {
        lv: {t: tuple(draw(st.permutations(range(len(x.shape))))) for t, x in graph.tensors.items() if chance(8)}
        for lv in upper
    }
    variant = Variant(
        guard=Const(True),
        levels=names,
        tiles=tiles,
        steps=steps,
        kernel="kernel",
        order=order,
        tails=tails,
        loads=loads,
        copies=copies,
        layouts=layouts,
    )
    outputs = tuple(port.tensor for port in graph.outputs)
    # Now and then an edge stays at the lowest level: its tensor is held there as a whole.
    connect = {edge: draw(st.sampled_from(upper if upper and not chance(5) else names)) for edge in edges}
    group = Group("g0", graph.nodes, outputs, connect, (variant,), Cost({}, {}, {}))
    return Plan(
        name="random",
        device="random",
        levels=levels,
        symbols=(),
        inputs=graph.inputs,
        outputs=graph.outputs,
        tensors=graph.tensors,
        constants={},
        prepared=(),
        groups=(group,),
        refusals=(),
    )


@st.composite
def cases(
    draw: Callable,
    ttypes: tuple[str, ...] = ("f64", "f32", "i32"),
    operators: int = 6,
    hierarchy: st.SearchStrategy = CPU,
) -> Case:
    """A graph with a plan."""
    model = draw(models(ttypes, operators))
    return Case(model.graph, model.indices, draw(plans(model.graph, hierarchy)))
