"""Operands that units load past shared memory: sums that read them once, and elementwise nodes."""

from math import erf

import numpy as np
import pytest

from tests.codegen.gpu.kernels import emulated
from tests.emulator.kernels import needs_compiler
from tests.scheduler.graphs import make_graph
from tests.scheduler.running import device
from tilec.ir.evaluate import evaluate
from tilec.lower.lowering import lower
from tilec.scheduler.schedule import schedule

pytestmark = needs_compiler


def kernels(plan, arrays):
    """The texts of the kernels of a plan and all arrays, those that it computes among them."""
    texts = []
    arrays = dict(arrays)
    for node in plan.prepared:
        arrays[node.name] = evaluate(node.expr, arrays)
    for group in plan.groups:
        program = lower(group, group.variants[0], plan)
        found, text = emulated(
            program, {p.tensor: arrays[p.tensor] for p in program.parameters if p.tensor in arrays}, 32
        )
        arrays |= found
        texts.append(text)
    return texts, arrays


@pytest.mark.feature("W24")
def test_a_row_times_a_matrix_reads_the_matrix_into_registers():
    k, n = 1024, 2816
    extents = {"m": 1, "n": n, "k": k}
    graph = make_graph(
        {"x": (1, k)},
        [("c[m, n] = sum(k, x[m, k] * w[k, n])", extents), ("y[m, n] = maximum(c[m, n] + b[n], 0.0)", extents)],
        ["y"],
        {"w": (k, n), "b": (n,)},
        ttypes=dict.fromkeys(("x", "w", "b"), "f16"),
    )
    plan = schedule(graph, device("h100"))
    first = plan.groups[0].variants[0]
    (matrix,) = (name for name, levels in first.loads.items() if levels == ("reg",) and name.startswith("w"))
    (steps,) = first.steps["reg"].values()
    assert all(size <= 8 for size in steps.values())
    values = {name: np.asarray(c.values, np.float32) for name, c in graph.constants.items()}
    arrays = {name: v.reshape([int(e.value) for e in graph.tensors[name].shape]) for name, v in values.items()}
    arrays |= {"x": np.random.default_rng(0).standard_normal((1, k))}
    arrays = {name: value.astype(np.float16) for name, value in arrays.items()}
    texts, found = kernels(plan, arrays)
    wide = [line for line in texts[0].splitlines() if f"LDG8({matrix}" in line]
    assert wide, "16 bytes a lane"
    assert f"{matrix}_smem" not in texts[0]
    exact = np.maximum(arrays["x"].astype(np.float64) @ arrays["w"].astype(np.float64) + arrays["b"], 0)
    np.testing.assert_allclose(found["y"].astype(np.float64), exact, atol=1e-3 * np.abs(exact).max())


@pytest.mark.slow_cases("f32-4")
@pytest.mark.parametrize(("ttype", "width"), [("f16", 8), ("f32", 4)])
def test_elementwise_nodes_load_and_store_past_shared_memory(ttype, width):
    extents = {"m": 1100, "n": 1024}
    graph = make_graph(
        {"x": (1100, 1024)},
        [("c[m, n] = x[m, n] * 0.5", extents), ("y[m, n] = c[m, n] + erf(x[m, n])", extents)],
        ["y"],
        ttypes={"x": ttype},
    )
    plan = schedule(graph, device("h100"))
    (group,) = plan.groups
    assert group.variants[0].loads["x"] == ("reg",)
    assert group.variants[0].loads["y"] == ()
    x = np.random.default_rng(0).standard_normal((1100, 1024)).astype({"f16": np.float16, "f32": np.float32}[ttype])
    (text,), found = kernels(plan, {"x": x})
    assert f"LDG{width}(x" in text
    assert f"STG{width}(y" in text
    assert "t_barrier" not in text

    exact = x * 0.5 + np.vectorize(erf)(x.astype(np.float64))
    np.testing.assert_allclose(found["y"], exact, atol=2e-3 if ttype == "f16" else 1e-6)
    assert ("t_fast_erf" in text) == (ttype == "f16")
