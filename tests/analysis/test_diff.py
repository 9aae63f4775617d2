"""The semantic diff of plans: groups matched by what they compute, every decision and cost compared."""

from dataclasses import replace

import pytest
from report.plans import base, group, layers, plan, renamed
from work import calls

from tilec.analysis.change import GroupChange, PlanDiff
from tilec.analysis.diff import diff_plans
from tilec.ir.expr import Const, TensorExpr, rename_tensors
from tilec.ir.graph import Call, Inline, Node, Placement, Port, Tensor, Unsupported
from tilec.ir.plan import Cost, Group, Plan, PlanLevel, Refusal, Shared, Variant
from tilec.ir.text import parse_expr, parse_tensor


def only(diff: PlanDiff) -> GroupChange:
    (change,) = diff.groups
    return change


def facts(change: GroupChange) -> set[tuple[str, str, str, str, str]]:
    return {(c.kind, c.level, c.subject, str(c.before), str(c.after)) for c in change.changes}


def shapes(diff: PlanDiff) -> list[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]]:
    return [(change.kinds, change.before, change.after) for change in diff.groups]


def test_a_plan_does_not_differ_from_itself() -> None:
    diff = diff_plans(base(), base())
    assert diff.empty
    assert diff.unchanged == 3


def test_names_are_no_difference() -> None:
    other = renamed(base())
    assert {g.name for g in other.groups} == {"r_", "g_", "y_"}
    diff = diff_plans(base(), other)
    assert diff.empty, diff
    assert diff.unchanged == 3


def test_iterators_are_matched_by_their_place() -> None:
    first, *rest = layers()
    text = {"m": "a", "n": "b"}
    nodes = tuple(
        replace(n, expr=replace(n.expr, spatial=("a", "b"), body=_renamed(n.expr.body, text))) for n in first.nodes
    )
    variant = replace(first.variants[0], tiles={"smem": {"r": {"a": 16, "b": 32}}})
    assert diff_plans(base(), plan(replace(first, nodes=nodes, variants=(variant,)), *rest)).empty


def _renamed(body, names):  # type: ignore[no-untyped-def]
    from tilec.ir.expr import Reduce, Var, substitute

    values = {old: Var(new) for old, new in names.items()}
    if isinstance(body, Reduce):
        return replace(body, body=substitute(body.body, values))
    return substitute(body, values)


@pytest.mark.parametrize(
    ("decision", "value", "expected"),
    [
        ("tiles", {"smem": {"r": {"m": 8, "n": 32}}}, ("tile", "smem", "r", "{'m': 16, 'n': 32}", "{'m': 8, 'n': 32}")),
        ("tiles", {}, ("tile", "smem", "r", "{'m': 16, 'n': 32}", "None")),
        ("steps", {"reg": {"h": {"k": 4}}}, ("step", "reg", "h", "None", "{'k': 4}")),
        ("order", {"smem": {"r": ("n", "m")}}, ("order", "smem", "r", "None", "['n', 'm']")),
        ("tails", {"smem": {"r": "clip"}}, ("tail", "smem", "r", "None", "clip")),
        ("loads", {"x": ()}, ("load", "", "x", "['smem']", "[]")),
        ("layouts", {"smem": {"w": (1, 0)}}, ("layout", "smem", "w", "None", "[1, 0]")),
        (
            "shared",
            {"h": Shared("h", {"k": "k"}, parse_expr("h[m, n]"))},
            ("shared", "", "h", "None", "['h', 'k with k', 'h[m, n]']"),
        ),
        ("units", {"h": "mma"}, ("unit", "", "h", "None", "mma")),
        ("held", {"smem": {"h": "f32"}}, ("held", "smem", "h", "None", "f32")),
        ("copies", {"smem": {"x": 2}}, ("copies", "smem", "x", "None", "2")),
        ("levels", ("dram", "reg"), ("levels", "", "", "['dram', 'smem', 'reg']", "['dram', 'reg']")),
    ],
)
def test_every_decision_on_tiles_counts(decision: str, value: object, expected: tuple[str, ...]) -> None:
    first, *rest = layers()
    variant = replace(first.variants[0], kernel="another", **{decision: value})
    change = only(diff_plans(base(), plan(replace(first, variants=(variant,)), *rest)))
    assert change.kinds == ("retiled",)
    assert facts(change) == {expected}


def test_another_kernel_alone_is_told() -> None:
    first, *rest = layers()
    variant = replace(first.variants[0], kernel="another")
    change = only(diff_plans(base(), plan(replace(first, variants=(variant,)), *rest)))
    assert change.kinds == ("other kernel",)


def test_a_variant_more_is_told_by_its_guard() -> None:
    first, *rest = layers()
    variant = replace(first.variants[0], guard=parse_expr("s >= 64"))
    change = only(diff_plans(base(), plan(replace(first, variants=(variant, *first.variants)), *rest)))
    assert change.kinds == ("retiled",)
    assert {(c.kind, c.guard) for c in change.changes} >= {("variant", "s >= 64"), ("variant", "True")}


def test_reconnected_at_another_level() -> None:
    first, *rest = layers()
    change = only(diff_plans(base(), plan(replace(first, connect={"h->r": "smem"}), *rest)))
    assert change.kinds == ("reconnected",)
    assert facts(change) == {("connect", "", "h->r", "reg", "smem")}


def test_merged_and_split() -> None:
    first, *_ = layers()
    joined = group("g top y", {"g->top": "smem", "g->y": "smem", "top->y": "smem"}, 3000)
    diff = diff_plans(base(), plan(first, joined))
    change = only(diff)
    assert (change.kinds, change.before, change.after) == (("merged",), ("g", "y"), ("y",))
    assert facts(change) == {("connect", "", "g->top", "None", "smem"), ("connect", "", "g->y", "None", "smem")}
    assert [(m.name, m.before, m.after) for m in change.costs if m.changed] == [
        ("traffic@smem", Const(4096 + 2048 + 1024), Const(3512)),
        ("flops", Const(2000), Const(1000)),
    ]
    assert diff.unchanged == 1
    back = only(diff_plans(plan(first, joined), base()))
    assert (back.kinds, back.before, back.after) == (("split",), ("y",), ("g", "y"))


def test_nodes_that_move_between_groups_regroup_them() -> None:
    first, _, _ = layers()
    moved = (first, group("g top", {"g->top": "smem"}, outputs=("g", "top")), group("y"))
    assert shapes(diff_plans(base(), plan(*moved))) == [(("regrouped",), ("g", "y"), ("top", "y"))]


def test_added_and_removed() -> None:
    first, second, _ = layers()
    assert shapes(diff_plans(plan(first, second), base())) == [(("added",), (), ("y",))]
    assert shapes(diff_plans(base(), plan(first, second))) == [(("removed",), ("y",), ())]


def test_plans_of_other_models_share_nothing() -> None:
    first, _, last = layers()
    diff = diff_plans(plan(first), renamed(plan(last)))
    assert shapes(diff) == [(("added",), (), ("y_",)), (("removed",), ("r",), ())]


def test_another_expression_under_the_same_name_is_rewritten() -> None:
    first, *rest = layers()
    wider = replace(first.nodes[0], expr=replace(first.nodes[0].expr, extents=(Const(128), Const(32), Const(16))))
    change = only(diff_plans(base(), plan(replace(first, nodes=(wider, first.nodes[1])), *rest)))
    assert change.kinds == ("rewritten",)
    (fact,) = change.changes
    assert str(fact.before).endswith("over m=64 n=32 k=16")
    assert str(fact.after).endswith("over m=128 n=32 k=16")


def test_other_operands_of_the_same_expression_are_told() -> None:
    """y = exp(g - top) of another g."""
    first, second, last = layers()
    again = replace(second, name="g2", outputs=("g2",), nodes=renamed(plan(second), "2").groups[0].nodes)
    again = replace(again, nodes=(replace(again.nodes[0], expr=rename(again.nodes[0].expr, "r2", "r")),))
    again = replace(again, nodes=(replace(again.nodes[0], expr=rename(again.nodes[0].expr, "u2", "w")),))
    both = plan(first, second, again, last)
    moved = replace(last, nodes=tuple(replace(n, expr=rename(n.expr, "g", "g2")) for n in last.nodes))
    change = only(diff_plans(both, plan(first, second, again, moved)))
    assert change.kinds == ("rewritten",)
    assert facts(change) == {
        ("operands", "", "top", "['g']", "['g2']"),
        ("operands", "", "y", "['g', 'top']", "['g2', 'top']"),
    }


def rename(expr: TensorExpr, old: str, new: str) -> TensorExpr:
    return replace(expr, body=rename_tensors(expr.body, {old: new}))


def test_an_output_of_another_tensor_is_told() -> None:
    (change,) = diff_plans(base(), replace(base(), outputs=(Port("output", "g"),))).changes
    assert (change.kind, change.before, change.after) == ("output", "f32[64, 8] of y", "f32[64, 8] of g")


def test_costs_alone_are_told() -> None:
    first, *rest = layers()
    cost = replace(first.cost, read={"smem": Const(5000)})
    change = only(diff_plans(base(), plan(replace(first, cost=cost), *rest)))
    assert change.kinds == ("recosted",)
    assert [(m.name, m.before, m.after) for m in change.costs] == [("traffic@smem", Const(4608), Const(5512))]


def test_symbolic_costs_are_compared_as_algebra() -> None:
    first, *rest = layers()
    before = replace(first, cost=replace(first.cost, read={"smem": parse_expr("s*4 + s*4")}))
    equal = replace(first, cost=replace(first.cost, read={"smem": parse_expr("8*s")}))
    other = replace(first, cost=replace(first.cost, read={"smem": parse_expr("9*s")}))
    assert diff_plans(plan(before, *rest), plan(equal, *rest)).empty
    assert only(diff_plans(plan(before, *rest), plan(other, *rest))).kinds == ("recosted",)


def test_totals() -> None:
    totals = {m.name: m.after for m in diff_plans(base(), base()).totals}
    assert totals == {
        "traffic": Const(4096 + 4096 + 2048 + 3 * 512),
        "groups": Const(3),
        "launches": Const(3),
        "kernels": Const(3),
        "unfused": Const(32768),
        "traffic@smem": Const(4096 + 4096 + 2048 + 3 * 512),
        "footprint@smem": Const(1024),
        "footprint@reg": Const(64),
        "flops": Const(3000),
    }


def test_execution_order() -> None:
    first, second, last = layers()
    (change,) = diff_plans(base(), plan(second, last, first)).changes
    assert (change.kind, change.subject, change.before, change.after) == ("order", "r", 1, 3)


WIDER = PlanLevel("smem", 131072, 8, "explicit", "block")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"device": "other"}, ("device", "", "toy", "other")),
        (
            {"levels": (base().levels[0], WIDER, base().levels[2])},
            ("level", "smem", *(f"{n} bytes, 8 x block, explicit, 1 at once" for n in (65536, 131072))),
        ),
        ({"symbols": ("batch",)}, ("symbols", "", "", "batch")),
        ({"inputs": (Port("image", "x"), Port("input", "x"))}, ("input", "image", None, "f32[64, 16]")),
        ({"placement": Placement(5, 4)}, ("placement", "", "4 of 4 nodes compiled", "4 of 5 nodes compiled")),
        (
            {"placement": Placement(4, 4, (Unsupported("n", "Nms", "depends on data"),))},
            ("fallback", "n", None, "Nms: depends on data"),
        ),
        ({"calls": (Call("0.onnx", (Port("a", "y"),), (Port("b", "z"),)),)}, ("call", "y -> z", None, "onnxruntime")),
        ({"refusals": ()}, ("refusal", "r->g", "reduction iterators=k", None)),
        (
            {"refusals": (Refusal("r->g", "capacity", {"bytes": 9}),)},
            ("refusal", "r->g", "reduction iterators=k", "capacity bytes=9"),
        ),
        ({"files": {"net.onnx": "b" * 64}}, ("weights", "net.onnx", "a" * 12, "b" * 12)),
        ({"constants": {**base().constants, "u": Inline((1.0, 2.0))}}, None),
        ({"tensors": {**base().tensors, "r": Tensor(base().tensors["r"].shape, "f16")}}, ("type", "r", "f32", "f16")),
        ({"prepared": (base().groups[0].nodes[1],)}, ("prepared", "r", None, "t1[i0, i1] = maximum(t0[i0, i1], 0.0)")),
    ],
)
def test_facts_of_the_whole_plan(changes: dict[str, object], expected: tuple[object, ...] | None) -> None:
    other: Plan = replace(base(), **changes)  # type: ignore[arg-type]
    (change,) = diff_plans(base(), other).changes
    if expected is not None:
        assert (change.kind, change.subject, change.before, change.after) == expected
    else:
        assert (change.kind, change.subject, change.after) == ("constant", "u", "1.0 2.0")


def test_large_plans_with_other_names_take_no_time() -> None:
    """Chains of two operators in two orders: hundreds of equal nodes on both sides."""

    def chain(pattern: str, by: str) -> Plan:
        groups = []
        for k in range(1, 801):
            text = f"{by}{k}[m] = {'maximum' if pattern[k % len(pattern)] == 'a' else 'minimum'}({by}{k - 1}[m], 0.0)"
            cost = Cost({"smem": Const(8)}, {}, {"smem": Const(4)})
            node = Node(parse_tensor(text, {"m": Const(64)}), "Op")
            variant = Variant(Const(True), ("dram", "smem"), {}, {}, "k")
            groups.append(Group(f"{by}{k}", (node,), (f"{by}{k}",), {}, (variant,), cost))
        return plan(*groups, outputs=())

    assert diff_plans(chain("ab", "p"), chain("ab", "q")).empty
    before, after = chain("ab", "p"), chain("aabb", "q")
    assert calls(lambda: diff_plans(before, after)) < 3_000_000


def test_of_equal_layers_the_one_that_is_new_is_added() -> None:
    """Layers with the same content are told apart by their order."""
    first, second, last = layers()
    again = replace(
        first,
        name="r2",
        outputs=("r2",),
        connect={"h2->r2": "reg"},
        nodes=tuple(replace(n, origin=()) for n in renamed(plan(first), "2").groups[0].nodes),
        variants=(replace(first.variants[0], tiles={"smem": {"r2": {"m": 16, "n": 32}}}, loads={"x2": ("smem",)}),),
    )
    diff = diff_plans(base(), plan(first, again, second, last))
    assert [kinds for kinds, *_ in shapes(diff)] == [("added",)]
    assert diff.groups[0].after == ("r2",)
