"""Operators whose inputs have sizes of their own in every dimension: native, with what the operator demands of them
recorded, and right at several sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.importer.reference import helper, normal, onnxruntime, run, save
from tilec.importer import import_model
from tilec.ir.evaluate import integer
from tilec.ir.graph import Graph
from tilec.ir.port_sizes import port_sizes
from tilec.ir.sizes import broken_constraints
from tilec.ir.text import text_of

Arrays = Sequence[NDArray[Any] | None]


@dataclass(frozen=True)
class Case:
    """Inputs of an operator, sets of them with other sizes each, and what is known of sizes `x0_0`, `x0_1` .. after."""

    kind: str
    inputs: Sequence[Arrays]
    facts: Sequence[str]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: int = 1
    opset: int = 23
    domain: str = ""
    refused: Arrays | None = None
    weights: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def heads(b: int, q: int, kv: int, s: int, t: int, h: int, v: int) -> Arrays:
    return [normal(b, q, s, h), normal(b, kv, t, h, seed=1), normal(b, kv, t, v, seed=2)]


def channels(b: int, s: int, t: int, h: int, v: int) -> Arrays:
    return [normal(b, s, 4 * h), normal(b, t, 2 * h, seed=1), normal(b, t, 2 * v, seed=2)]


def cached(b: int, n: int, s: int, t: int, h: int) -> Arrays:
    past = normal(b, n, t, h, seed=3), normal(b, n, t, h, seed=4)
    return [*heads(b, n, n, s, s, h, h), normal(s, s + t, seed=5), *past]


def turned(b: int, n: int, s: int, half: int, rows: int) -> Arrays:
    tables = normal(rows, half, seed=1), normal(rows, half, seed=2)
    positions = np.random.default_rng(b).integers(0, rows, (b, s))
    return [normal(b, n, s, 2 * half), *tables, positions]


def packed(b: int, s: int, t: int, h: int) -> Arrays:
    return [normal(b, s, 2 * h), *(normal(b, t, 2 * h, seed=n) for n in (1, 2)), normal(6 * h, seed=3)]


def grouped(b: int, h: int) -> Arrays:
    cache = [normal(b, 2, 5, h, seed=n) for n in (3, 4)]
    return [normal(b, 1, 4 * h), *(normal(b, 1, 2 * h, seed=n) for n in (1, 2)), *cache, np.full(b, 5, np.int32)]


BATCHES = ["x1_0 = x0_0", "x2_0 = x0_0"]

CASES = {
    "heads": Case(
        "Attention",
        [heads(2, 6, 3, 4, 5, 8, 7), heads(1, 1, 1, 1, 1, 1, 1), heads(3, 4, 4, 3, 2, 5, 5)],
        [*BATCHES, "x2_1 = x1_1", "x2_2 = x1_2", "x1_3 = x0_3", "x0_1 % x1_1 == 0", "x1_1 >= 1"],
        refused=heads(2, 5, 3, 4, 5, 8, 7),
    ),
    "channels": Case(
        "Attention",
        [channels(2, 3, 5, 8, 7), channels(1, 1, 1, 1, 1)],
        [*BATCHES, "x2_1 = x1_1", "x0_2 = x1_2 * 2", "x1_2 / 2", "x2_2 / 2"],
        {"q_num_heads": 4, "kv_num_heads": 2, "is_causal": 1},
        refused=[normal(1, 1, 10), normal(1, 1, 5), normal(1, 1, 6)],
    ),
    "cached": Case(
        "Attention",
        [cached(2, 3, 1, 5, 8), cached(1, 2, 4, 3, 5)],
        [
            *(f"x{n}_0 = x0_0" for n in (1, 2, 4, 5)),
            *(f"x{n}_1 = x1_1" for n in (2, 4, 5)),
            *("x1_3 = x0_3", "x4_3 = x0_3", "x5_3 = x2_3"),
            *("x2_2 = x1_2", "x5_2 = x4_2"),
            *("x3_0 == x0_2 or x3_0 == 1", "x3_1 == x1_2 + x4_2 or x3_1 == 1"),
            *("x0_1 % x1_1 == 0", "x1_1 >= 1"),
        ],
        {"is_causal": 1},
        outputs=3,
    ),
    "rotary": Case(
        "RotaryEmbedding",
        [turned(2, 3, 4, 5, 9), turned(1, 1, 1, 1, 1)],
        ["x0_3 = x1_1 * 2", "x2_0 = x1_0", "x2_1 = x1_1", "x3_0 = x0_0", "x3_1 = x0_2"],
        refused=[normal(1, 1, 1, 3), normal(4, 1), normal(4, 1), np.zeros((1, 1), np.int64)],
    ),
    "groups": Case(
        "GroupNormalization",
        [[normal(2, 6, 4), normal(6), normal(6)], [normal(1, 2, 1), normal(2), normal(2)]],
        ["x1_0 = x0_1", "x2_0 = x0_1", "x0_1 / 2"],
        {"num_groups": 2},
        opset=21,
        refused=[normal(2, 5, 4), normal(5), normal(5)],
    ),
    "packed heads": Case(
        "MultiHeadAttention",
        [packed(2, 3, 5, 8), packed(1, 1, 1, 2)],
        [*BATCHES, "x2_1 = x1_1", "x1_2 = x0_2", "x3_0 = x0_2 * 2 + x2_2", "x0_2 / 2", "x2_2 / 2"],
        {"num_heads": 2},
        opset=17,
        domain="com.microsoft",
    ),
    "grouped heads": Case(
        "GroupQueryAttention",
        [grouped(2, 8), grouped(1, 16)],
        [
            *BATCHES,
            *("x3_0 = x0_0", "x4_0 = x0_0", "x3_1 = 2", "x4_1 = 2", "x4_2 = x3_2", "x5_0 = x0_0"),
            "6 == x0_1 + x3_2 or 6 <= x3_2",
            *("x0_2 = x3_3 * 4", "x1_2 = x3_3 * 2", "x2_2 = x4_3 * 2"),
        ],
        {"num_heads": 4, "kv_num_heads": 2},
        outputs=3,
        opset=17,
        domain="com.microsoft",
        weights={"total": np.array(6, np.int32)},
    ),
}


def feeds_of(arrays: Arrays) -> dict[str, NDArray[Any]]:
    return {f"x{n}": x for n, x in enumerate(arrays) if x is not None}


def sizes_of(graph: Graph, feeds: Mapping[str, NDArray[Any]]) -> dict[str, int] | None:
    """The sizes of inputs, None where a run refuses them."""
    told = port_sizes(graph.inputs, graph.tensors, {name: x.shape for name, x in feeds.items()})
    sizes = {symbol: told[symbol] for symbol in graph.symbols}
    shapes = {p.name: tuple(integer(e, sizes) for e in graph.tensors[p.tensor].shape) for p in graph.inputs}
    fits = shapes == {name: x.shape for name, x in feeds.items()}
    return None if broken_constraints(graph.constraints, graph.symbol_ranges, sizes) or not fits else sizes


@pytest.mark.feature("B06")
@pytest.mark.parametrize("name", CASES)
def test_every_size_is_open(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    names = [*("" if x is None else f"x{n}" for n, x in enumerate(case.inputs[0])), *case.weights]
    results = [f"y{n}" for n in range(case.outputs)]
    node = helper.make_node(case.kind, names, results, domain=case.domain, **case.attributes)
    inputs = {
        f"x{n}": (x.dtype, [f"x{n}_{d}" for d in range(x.ndim)]) for n, x in enumerate(case.inputs[0]) if x is not None
    }
    path = save(tmp_path / "m.onnx", [node], inputs, results, case.weights, case.opset)
    imported = import_model(path)
    graph = imported.graph
    assert graph.calls == ()
    found = [f"{symbol} = {text_of(each.value)}" for symbol, each in graph.symbol_values.items()]
    found += [text_of(each.holds) for each in graph.constraints]
    found += [f"{symbol} / {entry.divisor}" for symbol, entry in graph.symbol_ranges.items() if entry.divisor > 1]
    found += [f"{symbol} >= {entry.least}" for symbol, entry in graph.symbol_ranges.items() if entry.least]
    assert sorted(found) == sorted(case.facts)
    if case.refused is not None:
        assert sizes_of(graph, feeds_of(case.refused)) is None
    for arrays in case.inputs:
        feeds = feeds_of(arrays)
        sizes = sizes_of(graph, feeds)
        assert sizes is not None
        for result, wanted in zip(run(imported, tmp_path, feeds, sizes), onnxruntime(path, feeds), strict=True):
            np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)
