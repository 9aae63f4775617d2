"""Sums of partial sums are the sums that they are parts of."""

import numpy as np
import pytest

from tests.programs import tensor
from tilec.bounds.plan.whole_sums import whole_sums
from tilec.ir.evaluate import evaluate
from tilec.ir.expr import operands
from tilec.ir.graph import Node

SIZES = {"a": 2, "b": 3, "c": 4, "m": 2, "n": 5}
PARTIAL = (
    "q[m, b, a, n] = sum(c, x[m, a, b, c] * w[a, b, c, n])",
    "p[m, a, n] = sum(b, q[m, b, a, n])",
    "y[m, n] = sum(a, p[m, a, n])",
    "z[m, n] = y[m, n] + 1.0",
)


def nodes(texts):
    exprs = [tensor(text, SIZES) for text in texts]
    return [Node(expr) for expr in exprs]


def results(found, values):
    arrays = dict(values)
    for node in found:
        arrays[node.name] = evaluate(node.expr, {t: arrays[t] for t in operands(node.expr)}, ttype="f64")
    return arrays


@pytest.mark.parametrize(("outputs", "names"), [(("z",), "yz"), (("z", "p"), "pyz"), (("z", "q"), "qyz")])
def test_partial_sums_that_stay_inside_are_gone(outputs, names):
    draw = np.random.default_rng(1)
    values = {"x": draw.random((2, 2, 3, 4)), "w": draw.random((2, 3, 4, 5))}
    before = nodes(PARTIAL)
    after = whole_sums(before, outputs)
    assert [node.name for node in after] == list(names)
    np.testing.assert_allclose(results(after, values)["z"], results(before, values)["z"])


def test_other_sums_stay():
    texts = ["p[a, n] = sum(b, x[a, b, n])", "y[n] = sum(a, p[a, n] * w[a])", "t[a] = sum(n, p[a, n])"]
    assert whole_sums(nodes(texts), ["y", "t"]) == tuple(nodes(texts))
    shifted = ["p[a, n] = sum(b, x[a, b, n])", "y[n] = sum(a, p[a, n - n])"]
    assert whole_sums(nodes(shifted), ["y"]) == tuple(nodes(shifted))
    largest = ["p[a, n] = max(b, x[a, b, n])", "y[n] = max(a, p[a, n])"]
    assert whole_sums(nodes(largest), ["y"]) == tuple(nodes(largest))
