"""Dequantisation at the readers: codes cross tensors, movements move codes, what is quantised again vanishes."""

import numpy as np
import pytest
from scheduler.graphs import make_graph
from scheduler.running import tiny

from tilec.ir.evaluate import evaluate
from tilec.ir.expr import Const
from tilec.ir.graph import Graph
from tilec.ir.text import tensor_text
from tilec.ir.verify.graph import check_graph
from tilec.scheduler import schedule
from tilec.scheduler.graph_passes.select_codes import code_of
from tilec.scheduler.graph_passes.sink_dequantize import sink_dequantize
from tilec.scheduler.refusals import RewrittenGraph

REAL = ("r[i, j] = f32(i32(q[i, j]) - 3) * 0.1", {"i": 3, "j": 5})


def sunk(nodes: list[tuple[str, dict[str, int]]], ttype: str = "u8", more: dict[str, tuple[int, ...]] | None = None):  # type: ignore[no-untyped-def]
    inputs = {"q": (3, 5), **(more or {})}
    graph = make_graph(inputs, [REAL, *nodes], ["y"], ttypes=dict.fromkeys(("q", "p"), ttype))
    after = sink_dequantize(RewrittenGraph(graph)).graph
    assert check_graph(after) == ()
    return graph, after


def result(graph: Graph, low: int) -> np.ndarray:
    known = {}
    for place, port in enumerate(graph.inputs):
        tensor = graph.tensors[port.tensor]
        shape = [int(e.value) for e in tensor.shape]
        dtype = {"u8": np.uint8, "i8": np.int8, "f32": np.float32}[tensor.ttype]
        count = int(np.prod(shape))
        known[port.tensor] = (np.arange(count) * 17 % 256 + low + place).astype(dtype).reshape(shape)
    for node in graph.nodes:
        known[node.name] = evaluate(node.expr, known, ttype=graph.tensors[node.name].ttype)
    return known["y"]


def texts(graph: Graph) -> list[str]:
    return [tensor_text(node.expr) for node in graph.nodes]


def test_readers_dequantise() -> None:
    before, after = sunk([("y[i, j] = r[i, j] + b[i, j]", {"i": 3, "j": 5})], more={"b": (3, 5)})
    assert texts(after) == ["y[i, j] = f32(i32(q[i, j]) - 3) * 0.1 + b[i, j]"]
    assert np.array_equal(result(before, 0), result(after, 0))


def test_movements_move_codes_and_fill_with_the_zero_point() -> None:
    moved = ("t[j, i] = where(j >= 1, r[i, j - 1], 0.0)", {"i": 3, "j": 6})
    before, after = sunk([moved, ("y[j, i] = t[j, i] * 2.0", {"i": 3, "j": 6})])
    assert texts(after) == [
        "t_codes1[j, i] = where(j >= 1, q[i, j - 1], 3)",
        "y[j, i] = f32(i32(t_codes1[j, i]) - 3) * 0.1 * 2.0",
    ]
    assert np.array_equal(result(before, 0), result(after, 0))


SELECTIONS = {
    "a padded pool": (
        "m[i, j] = max(t, where(j + t >= 1 and j + t < 6, r[i, j + t - 1], -inf))",
        "max(t, where(j + t >= 1 and j + t < 6, q[i, j + t - 1], {low}))",
    ),
    "the least of rows": ("m[i, j] = min(t, r[t, j])", "min(t, q[t, j])"),
    "a ramp": ("m[i, j] = maximum(r[i, j], 0.0)", "maximum(q[i, j], 3)"),
    "limits between codes": (
        "m[i, j] = minimum(maximum(r[i, j], -0.26), 6.04)",
        "minimum(maximum(q[i, j], {below}), 63)",
    ),
}


@pytest.mark.parametrize("ttype", ["u8", "i8"])
@pytest.mark.parametrize("name", SELECTIONS)
def test_selections_that_are_quantised_alike_again_select_codes(name: str, ttype: str) -> None:
    text, expected = SELECTIONS[name]
    low = 0 if ttype == "u8" else -128
    again = (f"y[j, i] = {ttype}(round(s[j, i] / 0.1) + 3.0)", {"i": 3, "j": 5})
    moved = ("s[j, i] = m[i, j]", {"i": 3, "j": 5})
    sizes = {"i": 3, "j": 5} | ({"t": 3} if "t, " in text else {})
    before, after = sunk([(text, sizes), moved, again], ttype)
    assert texts(after) == [
        f"m_codes1[i, j] = {expected.format(low=low, below=0)}",
        "s_codes1[j, i] = m_codes1[i, j]",
        "y[j, i] = s_codes1[j, i]",
    ]
    assert after.tensors["m_codes1"].ttype == ttype
    assert np.array_equal(result(before, low), result(after, low))


@pytest.mark.parametrize(
    "readers",
    [
        ["y[i, j] = u8(round(m[i, j] / 0.2) + 3.0)"],
        ["y[i, j] = u8(round(m[i, j] / 0.1) + 2.0)"],
        ["y[i, j] = i8(round(m[i, j] / 0.1) + 3.0)"],
        ["p[i, j] = u8(round(m[i, j] / 0.1) + 3.0)", "y[i, j] = f32(p[i, j]) + m[i, j]"],
    ],
)
def test_selections_that_are_read_as_real_numbers_stay_so(readers: list[str]) -> None:
    e = {"i": 3, "j": 5}
    pool = ("m[i, j] = max(t, where(j + t >= 1 and j + t < 6, r[i, j + t - 1], -inf))", {**e, "t": 3})
    before, after = sunk([pool, *((text, e) for text in readers)])
    assert "m_codes1" not in after.tensors
    assert np.array_equal(result(before, 0), result(after, 0))


@pytest.mark.parametrize("ttype", ["u8", "i8"])
def test_literals_are_quantised_as_numbers_are(ttype: str) -> None:
    """All codes, the halves between them, and what saturates."""
    low, high = (0, 255) if ttype == "u8" else (-128, 127)
    scale, zero = float(np.float32(0.037)), low + 100
    reals = [(code - zero + half) * scale for code in range(low - 3, high + 4) for half in (0.0, 0.5)] + [
        np.inf,
        -np.inf,
    ]
    graph = make_graph(
        {"x": (len(reals),)},
        [(f"y[i] = {ttype}(round(x[i] / {scale!r}) + {float(zero)})", {"i": len(reals)})],
        ["y"],
    )
    expected = evaluate(graph.nodes[0].expr, {"x": np.array(reals, np.float32)}, ttype=ttype)
    assert [code_of(x, zero, scale, ttype) for x in np.array(reals, np.float32).tolist()] == [
        Const(int(c)) for c in expected
    ]
    assert code_of(np.nan, zero, scale, ttype) is None


@pytest.mark.parametrize("ttype", ["u8", "i8"])
@pytest.mark.parametrize(
    ("scale", "zero", "same"), [("0.1", "3.0", True), ("0.2", "3.0", False), ("0.1", "4.0", False)]
)
def test_what_is_quantised_alike_again_vanishes(ttype: str, scale: str, zero: str, same: bool) -> None:
    quotient = f"r[i, j] / {scale}"
    if ttype == "i8":
        quotient = f"where({quotient} >= -256.0, {quotient}, -256.0)"
    before, after = sunk([(f"y[i, j] = {ttype}(round({quotient}) + {zero})", {"i": 3, "j": 5})], ttype)
    assert (texts(after) == ["y[i, j] = q[i, j]"]) == same
    low = 0 if ttype == "u8" else -128
    assert np.array_equal(result(before, low), result(after, low))


def test_another_type_is_quantised_again() -> None:
    before, after = sunk([("y[i, j] = i8(round(r[i, j] / 0.1) + 3.0)", {"i": 3, "j": 5})])
    assert texts(after) == ["y[i, j] = i8(round(f32(i32(q[i, j]) - 3) * 0.1 / 0.1) + 3.0)"]
    assert np.array_equal(result(before, 0), result(after, 0))


def test_tensors_of_two_scales_are_joined_as_real_numbers() -> None:
    nodes = [
        ("r2[i, j] = f32(i32(p[i, j])) * 0.3", {"i": 3, "j": 5}),
        ("y[i, j] = where(i < 3, r[i, j], r2[i - 3, j])", {"i": 6, "j": 5}),
    ]
    before, after = sunk(nodes, more={"p": (3, 5)})
    assert len(after.nodes) == 1
    assert np.array_equal(result(before, 0), result(after, 0))


def test_products_keep_real_factors_that_have_no_integer_partner() -> None:
    product = ("y[i, n] = sum(j, r[i, j] * b[j, n])", {"i": 3, "n": 2, "j": 5})
    before, after = sunk([product], more={"b": (5, 2)})
    assert after.nodes == before.nodes


@pytest.mark.feature("L01")
def test_no_real_number_crosses_groups_of_a_quantised_network() -> None:
    """Product, ramp, pool, concatenation with another tensor of the same scale, product; each behind a quantiser."""
    x, p, c = {"n": 40, "i": 16}, {"n": 20, "i": 16}, {"n": 20, "i": 32}
    quantised = "u8(round({} / 0.25) + 3.0)"
    real = "f32(i32({}) - 3) * 0.25"
    nodes = [
        ("qx[n, i] = " + quantised.format("x[n, i]"), x),
        ("rx[n, i] = " + real.format("qx[n, i]"), x),
        ("rw[i, j] = f32(i32(w[i, j])) * 0.125", {"i": 16, "j": 16}),
        ("a[n, j] = sum(i, rx[n, i] * rw[i, j])", {"n": 40, "i": 16, "j": 16}),
        ("ramp[n, i] = maximum(a[n, i], 0.0)", x),
        ("qa[n, i] = " + quantised.format("ramp[n, i]"), x),
        ("ra[n, i] = " + real.format("qa[n, i]"), x),
        ("pool[n, i] = max(t, ra[n * 2 + t, i])", {**p, "t": 2}),
        ("qp[n, i] = " + quantised.format("pool[n, i]"), p),
        ("rp[n, i] = " + real.format("qp[n, i]"), p),
        ("both[n, i] = where(i < 16, rp[n, i], rx[n, i - 16])", c),
        ("qc[n, i] = " + quantised.format("both[n, i]"), c),
        ("rc[n, i] = " + real.format("qc[n, i]"), c),
        ("rv[i, j] = f32(i32(v[i, j])) * 0.125", {"i": 32, "j": 16}),
        ("b[n, j] = sum(i, rc[n, i] * rv[i, j])", {"n": 20, "i": 32, "j": 16}),
        ("y[n, j] = " + quantised.format("b[n, j]"), {"n": 20, "j": 16}),
    ]
    given = {"x": (40, 16), "w": (16, 16), "v": (32, 16)}
    graph = make_graph(given, nodes, ["y"], ttypes={"w": "i8", "v": "i8"})
    plan = schedule(graph, tiny())
    assert {plan.tensors[name].ttype for group in plan.groups for name in group.outputs} == {"u8"}
