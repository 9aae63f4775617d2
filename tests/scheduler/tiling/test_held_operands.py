"""Operands of half precision: staged once in the type that is computed in where that pays, read as stored elsewhere."""

from dataclasses import replace

import numpy as np
import pytest
from scheduler.graphs import make_graph
from scheduler.running import device, illegal, problem_of, run_plan

from tilec.analysis.totals import predicted
from tilec.ir.expr import Const, operands
from tilec.ir.graph import Graph
from tilec.ir.plan import Plan
from tilec.ir.types import numpy_dtype
from tilec.lower.counts.footprint import footprint
from tilec.lower.lowering import lower
from tilec.machine import execute
from tilec.scheduler import schedule
from tilec.scheduler.schedule import recounted_plan
from tilec.scheduler.target_model import target_model_of
from tilec.scheduler.tiling.register_options import held_options
from tilec.spec.machine_costs import CpuCosts

BOTH = pytest.mark.parametrize("ttype", ["f16", "bf16"])


def product(m: int, n: int, k: int, ttype: str, constant: bool = True) -> Graph:
    """A product of activations and weights, or of two activations."""
    text = "y[m, n] = sum(k, x[m, k] * w[k, n])"
    weights = {"w": (k, n)}
    inputs = {"x": (m, k)} | ({} if constant else weights)
    ttypes = dict.fromkeys("xw", ttype)
    return make_graph(inputs, [(text, {"m": m, "n": n, "k": k})], ["y"], weights if constant else {}, ttypes=ttypes)


def convolution(ttype: str) -> Graph:
    """A convolution of 3 x 3 with padding."""
    inside = "h + r - 1 >= 0 and h + r - 1 < 13 and (w + s - 1 >= 0 and w + s - 1 < 16)"
    text = f"y[o, h, w] = sum(c, r, s, where({inside}, x[c, h + r - 1, w + s - 1], 0.0) * k[o, c, r, s])"
    extents = {"o": 24, "h": 13, "w": 16, "c": 8, "r": 3, "s": 3}
    return make_graph(
        {"x": (8, 13, 16)}, [(text, extents)], ["y"], {"k": (24, 8, 3, 3)}, ttypes=dict.fromkeys("xk", ttype)
    )


def held(plan: Plan) -> set[str]:
    """Operands that a core's level holds as f32."""
    made = {node.name for group in plan.groups for node in group.nodes}
    found = {t for g in plan.groups for of in g.variants[0].held.values() for t in of}
    assert all(ttype == "f32" for g in plan.groups for of in g.variants[0].held.values() for ttype in of.values())
    return found - made


def planned(graph: Graph, name: str = "avx2") -> Plan:
    plan = schedule(graph, device(name))
    assert illegal(plan) == []
    return plan


@pytest.mark.feature("L17")
@BOTH
def test_what_many_register_tiles_read_is_converted_once(ttype: str) -> None:
    assert held(planned(product(64, 192, 96, ttype))) == {"x"}
    assert "x" in held(planned(product(64, 192, 96, ttype, constant=False)))
    assert held(planned(convolution(ttype))) & {"x", "k"}


@pytest.mark.feature("L17")
@BOTH
@pytest.mark.parametrize("m", [1, 2])
def test_weights_that_are_read_once_keep_their_bits(ttype: str, m: int) -> None:
    plan = planned(product(m, 2048, 512, ttype))
    assert held(plan) <= {"x"}
    read = {t for group in plan.groups for node in group.nodes for t in operands(node.expr)} - {"x"}
    assert [plan.tensors[name].ttype for name in read] == [ttype], "as they are or in panels, in the model's type"


def test_other_types_and_units_that_take_halves_need_no_conversion() -> None:
    assert held(planned(product(64, 192, 96, "f32"))) == set()
    assert held(planned(product(64, 192, 96, "f16"), "a100")) == set()
    free = replace(target_model_of(device("avx2")), costs=CpuCosts(conversion=0.0))
    graph = product(64, 192, 96, "f16")
    assert held_options(graph.nodes, graph, frozenset({"w"}), free) == ((),)


def test_elements_that_a_unit_takes_in_words_keep_their_type() -> None:
    """A conversion there is undone for each word, which takes longer than the products."""
    e = {"m": 12, "n": 64, "k": 32}
    text = "y[m, n] = sum(k, dot_bf16_bf16(word(x[m, k * 2], x[m, k * 2 + 1]), w[k, n]))"
    ttypes = {"x": "bf16", "w": "u32", "y": "bf16"}
    words = make_graph({"x": (12, 64)}, [(text, e)], ["y"], {"w": (32, 64)}, ttypes=ttypes)
    target = target_model_of(device("zen5-avx512"))
    assert held_options(words.nodes, words, frozenset({"w"}), target) == ((),)
    nodes = [("r[m, k] = bf16(f32(x[m, k]) * 0.5)", e), ("y[m, n] = sum(k, r[m, k] * w[k, n])", e)]
    ttypes = dict.fromkeys("xw", "bf16")
    wide = planned(make_graph({"x": (12, 32)}, nodes, ["y"], {"w": (32, 64)}, ttypes=ttypes), "zen5-avx512")
    assert all("r" not in of for group in wide.groups for of in group.variants[0].held.values())


@BOTH
@pytest.mark.parametrize("sizes", [(37, 70, 53), (64, 192, 96), (5, 1, 64), (1, 33, 1)])
def test_plans_compute_what_the_operands_say(ttype: str, sizes: tuple[int, int, int]) -> None:
    """Small whole numbers, whose sums single precision holds, and what is no number in one row."""
    graph, (m, n, k) = product(*sizes, ttype, constant=False), sizes
    rng, dtype = np.random.default_rng(3), numpy_dtype(ttype)
    x, w = (rng.integers(-2, 3, shape).astype(dtype) for shape in ((m, k), (k, n)))
    x[0, 0] = np.nan
    expected = x.astype(np.float64) @ w.astype(np.float64)
    found = run_plan(planned(graph), {"x": x, "w": w})["y"]
    assert np.array_equal(found.astype(np.float64), expected.astype(np.float32).astype(dtype).astype(np.float64), True)


@pytest.mark.parametrize(
    ("text", "leaves", "expected"),
    [
        ("r[m, k] = maximum(x[m, k], 0.0)", False, "r"),
        ("r[m, k] = f16(f32(x[m, k]) * 0.5)", False, "r"),
        ("r[m, k] = x[m, k] * x[m, k]", False, ""),
        ("r[m, k] = x[m, k] * x[m, k]", True, "r"),
    ],
)
def test_what_the_group_makes_is_held_so_where_its_values_stay_the_same(text: str, leaves: bool, expected: str) -> None:
    """What is computed in the wider type and stays inside is wide as it is, and no matter of the tile."""
    e = {"m": 12, "n": 16, "k": 8}
    nodes = [(text, e), ("y[m, n] = sum(k, r[m, k] * w[k, n])", e)]
    outputs = ["r", "y"] if leaves else ["y"]
    graph = make_graph({"x": (12, 8)}, nodes, outputs, {"w": (8, 16)}, ttypes={"x": "f16", "w": "f16"})
    problem = problem_of(graph, target_model_of(device("avx2")))
    (first, second) = problem.usual((0, 1))
    assert (first.held, second.held) == ((), (0,)), "the product's own choice, or that of the group"
    tiling = problem.tiling_problem((0, 1), problem.leaving((0, 1)), (first, second))
    assert tiling.storage.converted == set(expected)
    assert tiling.storage.held_bytes("r") == 4
    assert tiling.storage.bytes_of("r") == (4 if tiling.storage.wide else 2)
    plan = planned(graph)
    values = np.arange(96).reshape(12, 8) % 13 - 6
    r = {"maximum": np.maximum(values, 0), "f16": values / 2, "x[": values * values}
    found = run_plan(plan, {"x": values.astype(np.float16)})
    w = np.array(graph.constants["w"].values, np.float16).reshape(8, 16)  # type: ignore[union-attr]
    exact = next(of for name, of in r.items() if name in text.split("= ")[1]) @ w.astype(np.float64)
    assert np.abs(found["y"] - exact).max() <= 2**-10 * np.abs(exact).max()


def test_sums_that_leave_are_read_as_they_are_rounded() -> None:
    e = {"m": 12, "n": 16, "k": 8}
    nodes = [("r[m, k] = max(n, x[m, k, n] * x[m, k, n])", e), ("y[m, n] = sum(k, r[m, k] * w[k, n])", e)]
    given = {"x": (12, 8, 16)}
    graph = make_graph(given, nodes, ["r", "y"], {"w": (8, 16)}, ttypes={"x": "f16", "w": "f16"})
    problem = problem_of(graph, target_model_of(device("avx2")))
    assert [tile.held for tile in problem.usual((0, 1))] == [(), ()]


@pytest.mark.feature("L17", "W08")
def test_bytes_and_times_are_those_of_the_plan() -> None:
    plan = planned(convolution("f16"))
    (group,) = plan.groups
    program = lower(group, group.variants[0], plan)
    arrays = {p.tensor: np.ones([e.value for e in p.hi], np.float16) for p in program.parameters if p.tensor != "y"}  # type: ignore[union-attr]
    result = execute(program, arrays)
    assert group.cost.footprint == footprint(program) == {level: Const(n) for level, n in result.peak.items()}
    assert {level: moved.read for level, moved in result.moved.items()}["l2"] == group.cost.read["l2"].value
    narrow = replace(group, variants=(replace(group.variants[0], held={}),))
    again = recounted_plan(replace(plan, groups=(narrow,)), device("avx2"))
    assert predicted(again) > predicted(plan) == predicted(recounted_plan(plan, device("avx2")))
