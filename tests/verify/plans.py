"""Small plans by hand: every line of text is a node and a group of its own."""

from collections.abc import Mapping, Sequence

from tilec.ir.expr import Const, as_expr
from tilec.ir.graph import Constant, Node, Port, Tensor
from tilec.ir.plan import Cost, Group, Plan, PlanLevel, Variant
from tilec.ir.text import parse_tensor

LEVELS = (PlanLevel("dram", None), PlanLevel("smem", 1 << 20), PlanLevel("reg", 1 << 16))


def tensor(ttype: str, *shape: int) -> Tensor:
    return Tensor(tuple(as_expr(extent) for extent in shape), ttype)


def node(text: str, extents: Mapping[str, int]) -> Node:
    expr = parse_tensor(text, extents)
    return Node(expr, "", (f"/{expr.tensor}",))


def plan_of(
    nodes: Sequence[Node],
    inputs: Mapping[str, Tensor],
    outputs: Sequence[str],
    ttypes: Mapping[str, str] | None = None,
    constants: Mapping[str, Constant] | None = None,
) -> Plan:
    """Inputs and outputs keep their tensors' names; nodes are f32 unless `ttypes` says otherwise."""
    given = dict(inputs)
    types = ttypes or {}
    own = {n.name: Tensor(n.expr.shape, types.get(n.name, "f32")) for n in nodes}
    groups = tuple(
        Group(
            n.name,
            (n,),
            (n.name,),
            {},
            (Variant(Const(True), tuple(level.name for level in LEVELS), {}, {}, f"kernel_{n.name}"),),
            Cost({}, {}, {}),
        )
        for n in nodes
    )
    return Plan(
        "model",
        "toy",
        LEVELS,
        (),
        tuple(Port(name, name) for name in given if name not in (constants or {})),
        tuple(Port(name, name) for name in outputs),
        {**given, **own},
        constants or {},
        (),
        groups,
        (),
    )
