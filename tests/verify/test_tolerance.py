"""Tolerances grow with reductions and depth, follow the types, and are zero where nothing rounds."""

import numpy as np
import pytest

from tilec.verify.tolerance import tolerances
from verify.plans import node, plan_of, tensor


def product(k: int, ttype: str = "f32", repeat: int = 1):
    nodes = [node("y0[i, j] = sum(k, x[i, k] * w[k, j])", {"i": 4, "j": k, "k": k})]
    more = [f"y{at}[i, j] = sum(k, y{at - 1}[i, k] * w[k, j])" for at in range(1, repeat)]
    nodes += [node(text, {"i": 4, "j": k, "k": k}) for text in more]
    types = {n.name: ttype for n in nodes}
    last = nodes[-1].name
    return last, plan_of(nodes, {"x": tensor(ttype, 4, k), "w": tensor(ttype, k, k)}, [last], types)


def of(k: int, ttype: str = "f32", repeat: int = 1) -> float:
    last, plan = product(k, ttype, repeat)
    return tolerances(plan)[last]


def test_longer_reductions_allow_more():
    assert of(10_000) == pytest.approx(10 * of(100), rel=0.1)


def test_depth_adds_like_a_random_walk():
    assert of(100, repeat=4) == pytest.approx(2 * of(100), rel=0.1)


@pytest.mark.parametrize(
    ("ttype", "unit"), [("f16", 2.0**-11), ("bf16", 2.0**-8), ("f32", 2.0**-24), ("f64", 2.0**-53)]
)
def test_types_count_by_their_unit(ttype, unit):
    assert of(64, ttype) == pytest.approx(3 * unit * 65**0.5, rel=0.05)


def test_movement_and_comparison_allow_nothing():
    nodes = [node("y[i] = maximum(x[3 - i], 0.0)", {"i": 4}), node("z[i] = y[i] > 0.5", {"i": 4})]
    plan = plan_of(nodes, {"x": tensor("f32", 4)}, ["y", "z"], {"z": "bool"})
    assert tolerances(plan) == {"y": 0.0, "z": 0.0}


def test_functions_allow_a_few_units():
    plan = plan_of([node("y[i] = exp(x[i])", {"i": 4})], {"x": tensor("f32", 4)}, ["y"])
    assert 4 * 2**-24 < tolerances(plan)["y"] < 32 * 2**-24


def test_float32_products_stay_within_it_and_float16_ones_do_not():
    last, plan = product(512)
    generator = np.random.default_rng(0)
    x = generator.standard_normal((64, 512)).astype(np.float32)
    w = generator.standard_normal((512, 512)).astype(np.float32)
    exact = x.astype(np.float64) @ w.astype(np.float64)
    scale = np.abs(exact).max()
    allowed = tolerances(plan)[last]
    forward = np.zeros((64, 512), np.float32)
    for k in range(512):
        forward += x[:, k : k + 1] * w[k]
    assert np.abs(forward - exact).max() / scale < allowed
    coarse = x.astype(np.float16).astype(np.float32) @ w.astype(np.float16).astype(np.float32)
    assert np.abs(coarse - exact).max() / scale > allowed


def test_a_constant_output_may_be_rounded_otherwise():
    plan = plan_of([node("y[i] = -0.4285714328289032", {"i": 4})], {}, ["y"])
    assert 6e-8 < tolerances(plan)["y"] < 1e-6
