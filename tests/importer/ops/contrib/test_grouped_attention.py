"""GroupQueryAttention against onnxruntime: sinks, keys behind queries, and caches with room for a window alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.importer.ops.contrib.test_contrib import Arrays, contrib, integers, model
from tests.importer.reference import normal, onnxruntime, run
from tilec.errors import ConfigError
from tilec.importer import import_model

HEADS = {"num_heads": 4, "kv_num_heads": 2}


def tokens(batch: int, number: int, seed: int = 0) -> Arrays:
    """New queries, keys and values."""
    shapes = ((batch, number, 64), (batch, number, 32), (batch, number, 32))
    return [normal(*shape, seed=seed + n) for n, shape in enumerate(shapes)]


def caches(batch: int, rows: int) -> Arrays:
    return [normal(batch, 2, rows, 16, seed=3), normal(batch, 2, rows, 16, seed=4)]


def lengths(last: list[int], total: int) -> Arrays:
    return [np.array(last, np.int32), np.array(total, np.int32)]


@pytest.mark.parametrize("options", [{"smooth_softmax": 1}, {"smooth_softmax": -1}, {"causal": 0}, {"sink": 1}])
def test_further_scores_and_keys_behind_a_query(tmp_path: Path, options: dict[str, Any]) -> None:
    sinks: Arrays = [*([None] * 4), normal(4, seed=7)] if options.get("sink") else []
    named = {**HEADS, **{name: value for name, value in options.items() if name != "sink"}}
    for arrays in (
        [*tokens(2, 5), None, None, *lengths([4, 2], 5), *sinks],
        [*tokens(2, 1), *caches(2, 6), *lengths([6, 3], 7), *sinks],
    ):
        contrib(tmp_path, "GroupQueryAttention", arrays, outputs=3, known=(6,), **named)


@pytest.mark.parametrize("capacity", [4, 6])
@pytest.mark.parametrize("steps", [[(3, 3), (1, 4), (1, 5), (4, 9), (1, 10)], [(9, 9), (1, 10), (2, 12)]])
def test_a_cache_of_a_window_moves_its_rows_up(tmp_path: Path, capacity: int, steps: list[tuple[int, int]]) -> None:
    """Each step is given the caches that onnxruntime left behind; rows that no token fills say nothing."""
    past = [np.zeros((1, 2, capacity, 16), np.float32)] * 2
    for seed, (new, total) in enumerate(steps):
        arrays: Arrays = [*tokens(1, new, 10 * seed), *past, *lengths([total - 1], total)]
        named = {**HEADS, "local_window_size": 4, "sliding_window_cache": 1}
        path, feeds = model(tmp_path, "GroupQueryAttention", arrays, 3, (6,), **named)
        found, wanted = run(import_model(path), tmp_path, feeds), onnxruntime(path, feeds)
        over = max(0, total - capacity)
        given_up = capacity - 4 + 1
        rows = total - -(-over // given_up) * given_up
        np.testing.assert_allclose(found[0], wanted[0], rtol=1e-4, atol=2e-5)
        for one, other in zip(found[1:], wanted[1:], strict=True):
            assert one.shape == other.shape
            np.testing.assert_array_equal(one[:, :, :rows], other[:, :, :rows])
        past = [np.where(np.arange(capacity)[:, None] < rows, each, np.nan).astype(np.float32) for each in wanted[1:]]


def test_rows_of_a_window_differ_between_batches(tmp_path: Path) -> None:
    arrays: Arrays = [*tokens(2, 1), *caches(2, 6), *lengths([8, 2], 9)]
    named = {**HEADS, "local_window_size": 4, "sliding_window_cache": 1, "softcap": 3.0}
    path, feeds = model(tmp_path, "GroupQueryAttention", arrays, 3, (6,), **named)
    for rows, result, other in zip(
        [None, 6, 6], run(import_model(path), tmp_path, feeds), onnxruntime(path, feeds), strict=True
    ):
        if rows is None:
            np.testing.assert_allclose(result, other, rtol=1e-4, atol=2e-5)
        else:
            np.testing.assert_array_equal(result[0, :, :rows], other[0, :, :rows])
            np.testing.assert_array_equal(result[1, :, :3], other[1, :, :3])


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("shape", [(1,), (32,), (1, 2, 1, 16)], ids=["one", "row", "heads"])
@pytest.mark.parametrize("capacity", [0, 6, 12])
def test_caches_of_few_bits(tmp_path: Path, bits: int, shape: tuple[int, ...], capacity: int) -> None:
    """A prompt into an empty cache, a step that adds a row to a full one, and two with room for more."""
    batch = 2 if capacity == 12 else 1
    width, kind, new = (16, "int8", 1) if bits == 8 else (8, "uint8", 1)
    new = new if capacity else 5
    total = {0: 5, 6: 7, 12: 9}[capacity]
    past: Arrays = [integers(kind, batch, 2, capacity, width, seed=n) for n in (1, 2)]
    mode = "PER_TENSOR" if shape == (1,) else "PER_CHANNEL"
    scale = np.random.default_rng(5).uniform(0.5, 1, shape).astype(np.float32) * (0.02 if bits == 8 else 0.3)
    rest: Arrays = [*([None] * 5), scale, scale * np.float32(1.5)]
    arrays: Arrays = [*tokens(batch, new), *past, *lengths([total - 1] * batch, total), *rest]
    named = {**HEADS, "k_quant_type": mode, "v_quant_type": mode, "kv_cache_bit_width": bits}
    path, feeds = model(tmp_path, "GroupQueryAttention", arrays, 3, (6, 12, 13), **named)
    found, wanted = run(import_model(path), tmp_path, feeds), onnxruntime(path, feeds)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-4, atol=2e-5)
    for one, other in zip(found[1:], wanted[1:], strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_array_equal(one[:, :, :total], other[:, :, :total])


def test_a_cache_that_is_smaller_than_its_window_is_refused(tmp_path: Path) -> None:
    arrays: Arrays = [*tokens(1, 1), *caches(1, 3), *lengths([2], 3)]
    path, _ = model(
        tmp_path, "GroupQueryAttention", arrays, 3, (6,), **HEADS, local_window_size=4, sliding_window_cache=1
    )
    with pytest.raises(ConfigError, match="a cache has room for a window"):
        import_model(path)
