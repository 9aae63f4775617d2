"""Mixtures of experts against onnxruntime, whose kernels for CPUs have no layer beside the first, and no other gates
than interleaved ones: these forms against each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.importer.ops.contrib.test_contrib import U8, Arrays, contrib, integers, model
from tests.importer.reference import normal, run
from tilec.importer import import_model

EXPERTS, WIDTH, INNER = 4, 32, 48

GATES = {"activation_type": "swiglu", "swiglu_fusion": 1, "activation_alpha": 1.702, "activation_beta": 1.0}


def scores(tokens: int) -> np.ndarray:
    return (normal(tokens, EXPERTS, seed=9) * 3).astype(np.float32)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"activation_type": "relu"},
        {"activation_type": "gelu", "k": 1},
        {"activation_type": "silu", "k": 4, "normalize_routing_weights": 1},
        {"activation_type": "identity", "k": 3},
        {**GATES, "normalize_routing_weights": 1, "swiglu_limit": 0.7},
    ],
)
def test_experts(tmp_path: Path, bias: bool, options: dict[str, Any]) -> None:
    first = INNER * (2 if options["activation_type"] == "swiglu" else 1)
    weights = normal(EXPERTS, first, WIDTH, seed=1) / 6, normal(EXPERTS, WIDTH, INNER, seed=2) / 6
    biases = (normal(EXPERTS, first, seed=3), normal(EXPERTS, WIDTH, seed=4)) if bias else (None, None)
    for x in (normal(5, WIDTH), normal(2, 3, WIDTH)):
        tokens = x.size // WIDTH
        arrays: Arrays = [x, scores(tokens), weights[0], biases[0], weights[1], biases[1]]
        contrib(tmp_path, "MoE", arrays, known=(2, 3, 4, 5), **{"k": 2, **options})


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("block", [0, 16])
@pytest.mark.parametrize("zeros", [False, True])
def test_experts_of_few_bits(tmp_path: Path, bits: int, block: int, zeros: bool) -> None:
    arrays: Arrays = [normal(5, WIDTH), scores(5)]
    for rows, columns, seed in ((2 * INNER, WIDTH, 1), (WIDTH, INNER, 2)):
        blocks = [columns // block] if block else []
        scales = np.random.default_rng(seed).uniform(0.5, 1, (EXPERTS, rows, *blocks)) / 2**bits / 3
        packed = integers(U8, EXPERTS, rows, columns * bits // 8, seed=seed)
        arrays += [packed, scales.astype(np.float32), normal(EXPERTS, rows, seed=seed)]
    arrays += [None, None, None]
    if zeros:
        for rows, columns in ((2 * INNER, WIDTH), (WIDTH, INNER)):
            shape = (EXPERTS, rows, -(-(columns // block) * bits // 8)) if block else (EXPERTS, rows * bits // 8)
            arrays.append(integers(U8, *shape, seed=5))
    options = {**GATES, "k": 2, "normalize_routing_weights": 1, "expert_weight_bits": bits}
    options |= {"block_size": block} if block else {}
    # Its experts of 8 bits in blocks have activations of 8 bits.
    atol = 5e-2 if bits == 8 and block else 1e-3
    contrib(tmp_path, "QMoE", arrays, known=tuple(range(2, len(arrays))), atol=atol, **options)


@pytest.mark.parametrize("fusion", [0, 2])
def test_gates_may_lie_apart(tmp_path: Path, fusion: int) -> None:
    x, first, second = normal(5, WIDTH), normal(EXPERTS, 2 * INNER, WIDTH) / 6, normal(EXPERTS, WIDTH, INNER) / 6
    gates, values = first[:, 0::2], first[:, 1::2]
    together: Arrays = [x, scores(5), first, None, second]
    apart: Arrays = [x, scores(5), gates, None, second, None, values]
    if fusion:
        apart = [x, scores(5), np.concatenate([gates, values], 1), None, second]
    results = []
    for name, arrays, order in (("a", together, 1), ("b", apart, fusion)):
        (tmp_path / name).mkdir()
        path, feeds = model(tmp_path / name, "MoE", arrays, 1, (), **{**GATES, "swiglu_fusion": order, "k": 2})
        results += run(import_model(path), tmp_path / name, feeds)
    np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-5)
