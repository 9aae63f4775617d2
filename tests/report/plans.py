"""Plans written by hand: two layers and a softmax on a device of three levels, and what may become of them."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilec.artifact import compact, digest_object
from tilec.ir.codec import plan_from_json, plan_to_json
from tilec.ir.expr import Const, Expr, as_expr
from tilec.ir.graph import Inline, Node, Placement, Port, Tensor, WeightRef
from tilec.ir.plan import Cost, Group, Plan, PlanLevel, Refusal, Variant
from tilec.ir.text import parse_expr, parse_tensor

LEVELS = ("dram", "smem", "reg")
E = {"m": 64, "n": 32, "k": 16}
TEXTS = {
    "h": ("MatMul", "h[m, n] = sum(k, x[m, k] * w[k, n])", E),
    "r": ("Relu", "r[m, n] = maximum(h[m, n], 0.0)", {"m": 64, "n": 32}),
    "g": ("MatMul", "g[m, n] = sum(k, r[m, k] * u[k, n])", {"m": 64, "n": 8, "k": 32}),
    "top": ("Softmax", "top[m] = max(n, g[m, n])", {"m": 64, "n": 8}),
    "y": ("Softmax", "y[m, n] = exp(g[m, n] - top[m])", {"m": 64, "n": 8}),
}


def size(value: int | str) -> Expr:
    return as_expr(value) if isinstance(value, int) else parse_expr(value)


def node(name: str) -> Node:
    op, text, extents = TEXTS[name]
    return Node(parse_tensor(text, {i: Const(e) for i, e in extents.items()}), op, (f"/{op}_{name}",))


def group(
    nodes: str,
    connect: Mapping[str, str] | None = None,
    traffic: int | str = 4096,
    *,
    tile: Mapping[str, int] | None = None,
    held: int | str = 1024,
    outputs: Sequence[str] = (),
    **decisions: object,
) -> Group:
    """A group of the named nodes; its kernel is named by what decides it."""
    names = nodes.split()
    last = names[-1]
    tiles = {"smem": {last: tile or {"m": 16}}}
    kernel = f"k{digest_object([nodes, repr(tiles), repr(connect), repr(decisions)])[:8]}"
    variant = Variant(Const(True), LEVELS, tiles, kernel=kernel, **{"steps": {}, **decisions})  # type: ignore[arg-type]
    cost = Cost({"smem": size(traffic)}, {"smem": Const(512)}, {"smem": size(held), "reg": Const(64)}, Const(1000))
    return Group(last, tuple(node(n) for n in names), tuple(outputs or [last]), connect or {}, (variant,), cost)


def plan(*groups: Group, **changes: object) -> Plan:
    """The groups as a plan; x, w and u come from outside."""
    f32 = {"x": (64, 16), "w": (16, 32), "u": (32, 8), "h": (64, 32), "r": (64, 32), "g": (64, 8), "top": (64,)}
    made = Plan(
        name="net",
        device="toy",
        levels=(PlanLevel("dram", None), PlanLevel("smem", 65536, 8, "explicit", "block"), PlanLevel("reg", 1020)),
        symbols=(),
        inputs=(Port("input", "x"),),
        outputs=(Port("output", "y"),),
        tensors={n: Tensor(tuple(Const(e) for e in s), "f32") for n, s in {**f32, "y": (64, 8)}.items()},
        constants={"w": WeightRef("net.onnx", 0, 2048), "u": Inline((1.0,) * 8)},
        prepared=(),
        groups=groups,
        refusals=(Refusal("r->g", "reduction", {"iterators": "k"}),),
        files={"net.onnx": "a" * 64},
        placement=Placement(4, 4),
        unfused={"smem": Const(32768)},
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def layers() -> tuple[Group, ...]:
    """The network in three groups."""
    return (
        group("h r", {"h->r": "reg"}, tile={"m": 16, "n": 32}, loads={"x": ("smem",)}),
        group("g"),
        group("top y", {"top->y": "smem"}, 2048),
    )


def base() -> Plan:
    return plan(*layers())


def renamed(given: Plan, by: str = "_") -> Plan:
    """The same plan with other names of tensors, groups and kernels."""
    text = compact(plan_to_json(given))
    for name in (*TEXTS, "x", "w", "u"):
        text = re.sub(rf"(?<![\w/.]){name}(?![\w.])", name + by, text)
    return plan_from_json(json.loads(text))


def tuned() -> Plan:
    """The network after a change: the last two groups merged, the first with wider tiles, a refusal gone."""
    joined = group(
        "g top y", {"g->top": "smem", "g->y": "smem", "top->y": "smem"}, 3000, held=2048, steps={"reg": {"g": {"k": 8}}}
    )
    first = group("h r", {"h->r": "reg"}, 4000, tile={"m": 32, "n": 32}, held=1500, loads={"x": ("smem",)})
    return plan(first, joined, refusals=(Refusal("r->g", "capacity", {"needs": 70000, "has": 65536}),))
