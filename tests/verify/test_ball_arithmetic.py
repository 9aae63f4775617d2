"""Error bounds of expressions: nothing right leaves them, and boundaries of quantisers are as near as rounding."""

from __future__ import annotations

import numpy as np
import pytest

from tilec.errors import UnsupportedError
from tilec.verify.rounding_bounds import enclosures, quantising
from verify.plans import node, plan_of, tensor

F32 = np.float32


def quantised(scale, terms, rows=64, seed=0):
    """Codes of sums of products, with the enclosure of the codes."""
    generator = np.random.default_rng(seed)
    x, w = (generator.standard_normal((rows, terms)).astype(F32) for _ in range(2))
    nodes = [
        node("s[i] = sum(k, x[i, k] * w[i, k])", {"i": rows, "k": terms}),
        node(f"q[i] = u8(minimum(maximum(round(s[i] / {scale}) + 128.0, 0.0), 255.0))", {"i": rows}),
    ]
    kinds = {"x": "f32", "w": "f32", "s": "f32", "q": "u8"}
    return x, w, enclosures(nodes, kinds, {"x": x, "w": w})


@pytest.mark.parametrize("terms", [1, 2, 7, 64, 2000])
def test_sums_in_any_order_are_within_their_bounds_which_are_tight(terms):
    x, w, found = quantised(0.05, terms)
    orders = [np.random.default_rng(seed).permutation(terms) for seed in range(8)]
    for order in orders:
        total = np.zeros(len(x), F32)
        for k in order:
            total = total + x[:, k] * w[:, k]
        assert found["s"].holds(total).all()
    scale = np.abs(x.astype(float) * w).sum(1)
    assert (found["s"].radius <= 1e-5 * scale).all()
    assert not found["s"].holds(found["s"].value + 2e-5 * scale).any()


def test_a_code_may_be_a_step_off_only_beside_a_boundary():
    _x, _w, found = quantised(0.4, 500, rows=4000)
    codes = found["q"]
    assert 0 < np.count_nonzero(codes.radius) < 40  # of 4000
    assert set(np.unique(codes.radius)) == {0.0, 1.0}
    real = found["s"].value / float(F32(0.4))
    beside = np.abs(real - np.floor(real) - 0.5) < 1e-2
    assert beside[codes.radius > 0].all()
    for fault in (1, -1):
        assert np.count_nonzero(codes.holds(codes.value.astype(int) + fault)) < 40
    ties = np.floor(real) + 128
    assert np.count_nonzero(~codes.holds(np.clip(ties, 0, 255).astype(np.uint8))) > 1000


def test_exact_computations_have_no_way_out():
    """Values with few bits, scales that are powers of two: ties are ties, and go to the even code."""
    x = np.arange(-40, 40).astype(F32) / 4
    nodes = [node("q[i] = i8(round(x[i] / 0.5))", {"i": 80})]
    found = enclosures(nodes, {"x": "f32", "q": "i8"}, {"x": x})["q"]
    assert not found.radius.any()
    assert found.holds(np.rint(x * 2).astype(np.int8)).all()
    assert not found.holds(np.floor(x * 2 + 0.5).astype(np.int8)).all()


def test_sums_of_values_with_few_bits_are_exact_until_they_need_more():
    generator = np.random.default_rng(0)
    x, w = (generator.integers(-128, 128, (8, 300)).astype(F32) / 64 for _ in range(2))
    nodes = [node("s[i] = sum(k, where(k >= 1, x[i, k], 0.0) * w[i, k])", {"i": 8, "k": 300})]
    kinds = {"x": "f32", "w": "f32", "s": "f32"}
    assert not enclosures(nodes, kinds, {"x": x, "w": w})["s"].radius.any()
    assert enclosures(nodes, kinds, {"x": x * 1000 + 1, "w": w * F32(1.1)})["s"].radius.all()


def test_saturation_and_comparisons_jump_by_what_they_choose_between():
    x = np.float32([0.1, 300.0, -300.0])
    nodes = [
        node("s[i] = x[i] * 0.3", {"i": 3}),
        node("y[i] = where(s[i] > 0.030000001, 5.0, 0.0)", {"i": 3}),
        node("q[i] = i8(round(s[i] * 7.0))", {"i": 3}),
    ]
    kinds = {"x": "f32", "s": "f32", "y": "f32", "q": "i8"}
    found = enclosures(nodes, kinds, {"x": x})
    assert found["y"].radius.tolist() == [5.0, 0.0, 0.0]
    assert found["q"].radius.tolist() == [0.0, 0.0, 0.0]
    assert found["q"].value.tolist() == [0, 127, -128]


def test_nan_is_nothing_that_a_bound_holds():
    nodes = [node("y[i] = round(x[i] * 3.0)", {"i": 2})]
    found = enclosures(nodes, {"x": "f32", "y": "f32"}, {"x": np.float32([np.nan, 1])})["y"]
    assert found.holds(np.float32([np.nan, 3])).tolist() == [False, True]


def test_half_precision_rounds_where_it_is_stored():
    x = np.float16([1.001, 3.003])
    nodes = [node("y[i] = round(x[i] * 0.5) + x[i] * 0.3", {"i": 2})]
    found = enclosures(nodes, {"x": "f16", "y": "f16"}, {"x": x})["y"]
    right = (np.rint(x.astype(F32) * F32(0.5)) + x.astype(F32) * F32(0.3)).astype(np.float16)
    assert found.holds(right).all()
    assert (found.radius < 2e-3).all()
    assert not found.holds(right + np.float16(0.01)).any()


def test_what_has_no_rule_is_refused():
    nodes = [node("s[i] = x[i] * 0.3", {"i": 3}), node("y[i] = sin(s[i])", {"i": 3})]
    with pytest.raises(UnsupportedError, match="sin"):
        enclosures(nodes, {"x": "f32", "s": "f32", "y": "f32"}, {"x": np.full(3, 1.1, F32)})


def test_nodes_that_round_to_integers_are_quantisers():
    for text, expected in (("round(x[i])", True), ("f32(i32(x[i]))", True), ("x[i] * 2.0", False)):
        nodes = [node(f"y[i] = {text}", {"i": 3})]
        plan = plan_of(nodes, {"x": tensor("f32", 3)}, ["y"])
        assert quantising(nodes, plan.tensors) == expected


def test_scores_behind_a_mask_of_infinities_have_a_bound():
    """As softmax has them: what is masked counts for nothing, however far off the other scores are."""
    x = np.random.default_rng(0).standard_normal((4, 8, 16)).astype(F32)
    mask = np.where(np.arange(8) < 5, 0, -np.inf).astype(F32)
    extents = {"i": 4, "j": 8}
    nodes = [
        node("s[i, j] = sum(k, x[i, j, k] * x[i, j, k])", {**extents, "k": 16}),
        node("m[i, j] = s[i, j] + b[j]", extents),
        node("t[i] = max(j, m[i, j])", extents),
        node("e[i, j] = exp(m[i, j] - t[i])", extents),
        node("y[i] = sum(j, e[i, j])", extents),
    ]
    found = enclosures(nodes, dict.fromkeys("xbsmtey", "f32"), {"x": x, "b": mask})
    assert (found["e"].radius[:, 5:] < 1e-40).all()
    assert (found["e"].value[:, 5:] == 0).all()
    assert (found["y"].radius < 1e-4).all()
