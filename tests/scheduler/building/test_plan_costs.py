"""What plans say that groups ask of their levels: counted on their programs."""

from __future__ import annotations

import pytest

from tests.scheduler.graphs import make_graph
from tilec.codegen.gpu.printed_kernel import printed_kernel
from tilec.codegen.gpu.target import GpuTarget
from tilec.ir.expr import Const
from tilec.ir.lifetimes import statements
from tilec.ir.program import Allocate
from tilec.lower.counts.transactions import transactions
from tilec.lower.lowering import lower
from tilec.scheduler import schedule
from tilec.spec.recipe import CodegenOptions
from tilec.spec.resolve import resolve_device

E = {"m": 33, "n": 20}


@pytest.mark.feature("W22", "W50")
def test_transactions_are_counted_beside_raw_bytes() -> None:
    texts = [("h[m, n] = x[m, n] + 1.0", E), ("s[m] = sum(n, h[m, n])", E), ("y[n, m] = h[m, n] / s[m]", E)]
    plan = schedule(make_graph({"x": (33, 20)}, texts, ["y"]), resolve_device("a100"))
    assert [level.transaction for level in plan.levels] == [32, 32, 128, 4]
    for group in plan.groups:
        counted = transactions(lower(group, group.variants[0], plan))
        assert group.cost.transactions == {level: Const(n) for level, n in counted.items()}
        raw = group.cost.read["smem"].value + group.cost.written["smem"].value  # type: ignore[union-attr]
        assert counted["dram"] * 32 >= raw > 0


@pytest.mark.feature("L24")
def test_halves_are_added_up_in_f32_whoever_reads_the_sums() -> None:
    """A product in steps of a loop, behind it rows of its result: registers hold f32, shared memory halves."""
    e = {"m": 4096, "n": 64, "k": 1024, "r": 64}
    texts = [
        ("c[m, n] = sum(k, x[m, k] * w[k, n])", e),
        ("s[m] = sum(r, f32(c[m, r]))", e),
        ("y[m, n] = f32(c[m, n]) / s[m]", e),
    ]
    shapes, halves = {"x": (4096, 1024), "w": (1024, 64)}, dict.fromkeys("xwc", "f16")
    plan = schedule(make_graph(shapes, texts, ["c", "y"], ttypes=halves), resolve_device("a100"))
    variant = next(each.variants[0] for each in plan.groups if any(node.name == "c" for node in each.nodes))
    assert variant.steps["smem"].keys() == {"c"}
    assert variant.held["reg"]["c"] == "f32"
    assert "c" not in variant.held.get("smem", {})


def test_sums_read_in_registers_and_below_are_halves_below() -> None:
    """Elementwise work on the sums of a product, and a product of them that wants halves in shared memory."""
    e = {"m": 4096, "n": 64, "k": 1024, "p": 64}
    texts = [
        ("c[m, n] = sum(k, x[m, k] * w[k, n])", e),
        ("z[m, n] = f32(c[m, n]) * 2.0 + 1.0", e),
        ("d[m, p] = sum(n, c[m, n] * v[n, p])", e),
    ]
    shapes = {"x": (4096, 1024), "w": (1024, 64), "v": (64, 64)}
    device = resolve_device("a100")
    plan = schedule(make_graph(shapes, texts, ["z", "d"], ttypes=dict.fromkeys("xwcvd", "f16")), device)
    group = next(each for each in plan.groups if {"c->z", "c->d"} <= each.connect.keys())
    assert (group.connect["c->z"], group.connect["c->d"]) == ("reg", "smem")
    program = lower(group, group.variants[0], plan)
    held = {
        s.buffer.level: s.buffer.ttype
        for s in statements(program.body)
        if isinstance(s, Allocate) and s.buffer.tensor == "c"
    }
    assert held == {"smem": "f16", "reg": "f32"}
    assert printed_kernel(program, plan, group, GpuTarget.of(device, CodegenOptions())).text
