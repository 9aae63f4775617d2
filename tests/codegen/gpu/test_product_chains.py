"""Attention in halves: what the planner holds in registers of a GPU, and what its kernel computes."""

import numpy as np
import pytest

from tests.codegen.gpu.kernels import HEAD, kernel_of, shape_of
from tests.emulator.kernels import built, needs_compiler, region
from tests.scheduler.graphs import make_graph
from tests.scheduler.running import device
from tilec.emulator import ORDERS
from tilec.emulator.emulate import sample
from tilec.ir.expr import constant_value
from tilec.lower.lowering import lower
from tilec.scheduler.schedule import schedule
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.resolve import device_source, parse_device

UNITS = {unit.name: unit for unit, _ in parse_device(device_source("a100")).matrix_units}

BLOCKS = 3
"""Blocks of a kernel that the emulator runs."""


def attention(heads, rows, keys, width):
    extents = {"b": heads, "m": rows, "n": keys, "k": width, "d": width}
    texts = [
        "S[b, m, n] = sum(k, Q[b, m, k] * K[b, n, k])",
        "X[b, m] = max(n, f32(S[b, m, n]) * 0.25)",
        "E[b, m, n] = exp(f32(S[b, m, n]) * 0.25 - X[b, m])",
        "Z[b, m] = sum(n, E[b, m, n])",
        "P[b, m, n] = f16(E[b, m, n] * (1.0 / Z[b, m]))",
        "O[b, m, d] = sum(n, P[b, m, n] * V[b, n, d])",
    ]
    inputs = {"Q": (heads, rows, width), "K": (heads, keys, width), "V": (heads, keys, width)}
    return make_graph(inputs, [(text, extents) for text in texts], ["O"], ttypes=dict.fromkeys(inputs, "f16"))


def emulated(program, arrays):
    """What some blocks of a kernel store, zeros elsewhere, the share of all blocks that they are, and its text."""
    printed = kernel_of(program, 32, UNITS)
    kernel, grid = built(HEAD + printed.text, "kernel", 32), constant_value(printed.launch.grid)
    shape, blocks = shape_of(printed), sample(grid, BLOCKS)
    results = []
    for order in ORDERS[:2]:
        memory = {**arrays, "O": np.zeros_like(arrays["Q"])}
        regions = [region(memory[p.name], p.name == "O") for p in program.parameters]
        assert not kernel.launch(shape, regions, order, blocks).findings
        results.append(memory["O"])
    np.testing.assert_array_equal(*results)
    return results[0].astype(np.float64), len(blocks) / grid, printed.text


@pytest.mark.quick_cases("150-50-77-64")
@needs_compiler
@pytest.mark.feature("L21", "W16")
@pytest.mark.parametrize(
    ("heads", "rows", "keys", "width"), [(12, 1024, 1024, 64), (160, 64, 256, 32), (150, 50, 77, 64)]
)
def test_probabilities_stay_in_registers(heads, rows, keys, width):
    plan = schedule(attention(heads, rows, keys, width), device("a100"), ScheduleOptions(fusion="full"))
    (group,) = plan.groups
    variant = group.variants[0]
    assert set(group.connect.values()) == {"reg"}
    assert set(variant.units) == {"S", "O"}
    assert bool(variant.shared) == (keys == 1024), "where registers do not hold all keys, these come in steps"
    rng = np.random.default_rng(0)
    shapes = {"Q": (heads, rows, width), "K": (heads, keys, width), "V": (heads, keys, width)}
    arrays = {name: rng.standard_normal(shape).astype(np.float16) for name, shape in shapes.items()}
    found, share, text = emulated(lower(group, variant, plan), arrays)
    q, k, v = (arrays[name].astype(np.float64) for name in "QKV")
    scores = np.einsum("bmk,bnk->bmn", q, k) * 0.25
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    exact = np.einsum("bmn,bnd->bmd", weights / weights.sum(-1, keepdims=True), v)
    stored = found.any(-1)
    assert 0.5 * share < stored.mean() < 2 * share
    np.testing.assert_allclose(found[stored], exact[stored], atol=4e-3)
    assert text.count("t_mma_m16n8k16_f16") == 2
    assert "STS(" not in text.split("t_mma")[1], "nothing is stored between the products"
    assert "t_fast_exp" in text, "a kernel of halves"
