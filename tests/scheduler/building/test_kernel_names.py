"""Names of kernels and costs: equal content, equal name; every byte of a plan is counted on its programs."""

from dataclasses import replace

import numpy as np
import pytest
from scheduler.graphs import make_graph
from scheduler.models import attention, convolutions
from scheduler.running import tiny

from tilec.ir.evaluate import integer
from tilec.ir.expr import Const, Expr, constant_value
from tilec.ir.graph import Graph, Inline
from tilec.ir.plan import Plan, Shared
from tilec.ir.text import parse_expr, parse_tensor
from tilec.lower.lowering import lower
from tilec.machine import execute
from tilec.scheduler import schedule
from tilec.scheduler.building.kernel_names import kernel_name
from tilec.scheduler.building.plan_costs import flops
from tilec.spec.recipe import ScheduleOptions

E = {"s": 8, "n": 6, "k": 6}
SECOND = {"a": 8, "b": 6, "c": 6}


def chain() -> Graph:
    nodes = [
        ("p[s, n] = sum(k, x[s, k] * w[k, n])", E),
        ("q[s, n] = p[s, n] + v[n]", E),
        ("r[a, b] = sum(c, q[a, c] * u[c, b])", SECOND),
        ("t[a, b] = r[a, b] + z[b]", SECOND),
        ("y[s, n] = sum(k, t[s, k] * w[k, n])", E),
    ]
    return make_graph({"x": (8, 6)}, nodes, ["y"], {"w": (6, 6), "u": (6, 6), "v": (6,), "z": (6,)})


def kernels(plan: Plan) -> list[str]:
    return [group.variants[0].kernel for group in plan.groups]


@pytest.mark.feature("W41")
def test_equal_groups_share_a_kernel_whatever_their_names() -> None:
    first, second, last = kernels(schedule(chain(), tiny(), ScheduleOptions(fusion="register")))
    assert first == second
    assert last != first, "without the sum it is another kernel"


def test_names_depend_on_shapes_tiles_and_types() -> None:
    plan = schedule(chain(), tiny())
    group, variant = plan.groups[0], plan.groups[0].variants[0]

    def name(plan: Plan = plan, **changes: object) -> str:
        changed = replace(variant, **changes)  # type: ignore[arg-type]
        return kernel_name(group.nodes, group.outputs, group.connect, changed, plan.tensors, plan.levels)

    assert name() == variant.kernel
    assert name(tiles={"reg": {group.name: {"s": 1}}}) != variant.kernel
    decided: dict[str, tuple[object, object]] = {
        "steps": ({"l2": {"p": {"k": 2}}}, {"l2": {"p": {"k": 3}}}),
        "order": ({"l2": {group.name: ("s", "n")}}, {"l2": {group.name: ("n", "s")}}),
        "tails": ({"l2": {group.name: "shift"}}, {"l2": {group.name: "clip"}}),
        "loads": ({"w": ("l2",)}, {"w": ("l2", "reg")}),
        "units": ({"p": "fma"}, {"p": "mma"}),
        "copies": ({"l2": {"w": 2}}, {"l2": {"w": 3}}),
        "pads": ({}, {"l2": {"w": 8}}),
        "layouts": ({"l2": {"w": (0, 1)}}, {"l2": {"w": (1, 0)}}),
        "held": ({}, {"l2": {"p": "f32"}}),
        "guard": (Const(True), parse_expr("s > 4")),
    }
    for decision, (one, other) in decided.items():
        assert name(**{decision: one}) != name(**{decision: other}), decision
    element = parse_expr("p[s, n]")
    assert name(shared={"p": Shared("p", {"k": "k"}, element)}) != variant.kernel
    doubled = {n: replace(t, ttype="f64") for n, t in plan.tensors.items()}
    assert name(replace(plan, tensors=doubled)) != variant.kernel
    assert variant.kernel.isidentifier()


@pytest.mark.slow_cases("attention")
@pytest.mark.feature("W07", "W50")
@pytest.mark.parametrize("graph", [attention(), convolutions()], ids=["attention", "convolutions"])
def test_planned_bytes_are_what_the_machine_moves(graph: Graph) -> None:
    plan = schedule(graph, tiny())
    for group in plan.groups:
        program = lower(group, group.variants[0], plan)
        arrays = {
            b.tensor: np.ones([int(integer(e, {})) for e in b.shape], np.float32)
            for b in program.parameters
            if b.tensor not in program.outputs
        }
        moved = execute(program, arrays).moved
        assert {level: (Const(m.read), Const(m.written)) for level, m in moved.items()} == {
            level: (group.cost.read[level], group.cost.written[level]) for level in moved
        }


def test_connections_save_what_would_be_written_and_read() -> None:
    plan = schedule(chain(), tiny(), ScheduleOptions(fusion="register"))

    def moved(plan: Plan) -> int:
        return sum(int(integer(table["l2"], {})) for g in plan.groups for table in (g.cost.read, g.cost.written))

    saved = 2 * 2 * 8 * 6 * 4  # p and r, each written and read
    assert constant_value(plan.unfused["l2"]) == moved(plan) + saved


def test_flops_count_arithmetic_only() -> None:
    def count(text: str) -> Expr:
        return flops(parse_tensor(text, {"i": 4, "j": 5, "k": 3}))

    assert count("Y[i, j] = sum(k, A[i, k] * B[k, j])") == Const(2 * 60)
    assert count("Y[i, j] = A[i*2 + 1, j // 2]") == Const(0)
    assert count("Y[i] = where(i + 1 < 3, A[i], 0.0) + f32(B[i])") == Const(4)
    assert count("Y[i] = max(k, A[i, k])") == Const(12)


def test_constants_that_only_packing_read_are_kept_for_it() -> None:
    plan = schedule(convolutions(), tiny())
    assert all(isinstance(c, Inline) for c in plan.constants.values())
    read = {name for node in plan.prepared for name in plan.constants if name in str(node.expr)}
    assert "a_weight" in read
