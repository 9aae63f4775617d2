"""Operators that search, sort and accumulate compile and agree with onnxruntime, on awkward sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from importer.reference import helper, normal, save, single

from acceptance.building import assert_close, check, compiled

RANDOM = np.random.default_rng(5)


@pytest.mark.slow_cases("add")
@pytest.mark.parametrize("reduction", ["none", "add", pytest.param("max", marks=pytest.mark.slow)])
def test_scatters(tmp_path: Path, reduction: str) -> None:
    indices = RANDOM.integers(-17, 17, (5, 31))
    path, feeds = single(
        tmp_path, "ScatterElements", normal(17, 33), indices, normal(5, 31), reduction=reduction, opset=18
    )
    check(path, feeds)
    indices = RANDOM.integers(-3, 3, (2, 5, 2))
    path, feeds = single(
        tmp_path, "ScatterND", normal(3, 4, 7), indices, normal(2, 5, 7), reduction=reduction, opset=18
    )
    check(path, feeds)


@pytest.mark.parametrize(("shape", "k"), [((3, 250), 250), ((2, 1001), 5), ((1, 1), 1)])
def test_top_k_with_ties(tmp_path: Path, shape: tuple[int, int], k: int) -> None:
    path, feeds = single(tmp_path, "TopK", normal(*shape).round(1), np.array([k]), known=[1], outputs=2, largest=0)
    check(path, feeds)


@pytest.mark.slow
@pytest.mark.parametrize("length", [301, 5001])
def test_a_running_sum_of_a_long_row_backwards(tmp_path: Path, length: int) -> None:
    path, feeds = single(tmp_path, "CumSum", normal(3, length), np.int64(1), known=[1], exclusive=1, reverse=1)
    check(path, feeds)


def test_a_cache_written_round_its_end_and_sequences_turned(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("TensorScatter", ["cache", "update", "at"], ["written"], mode="circular"),
        helper.make_node("ReverseSequence", ["written", "lengths"], ["y"], batch_axis=0, time_axis=1),
    ]
    inputs = {"cache": ("float32", (2, 3, 5, 4)), "update": ("float32", (2, 3, 2, 4))}
    inputs |= {"at": ("int64", (2,)), "lengths": ("int64", (2,))}
    path = save(tmp_path / "m.onnx", nodes, inputs, ["y"], opset=24)
    feeds = {"cache": normal(2, 3, 5, 4), "update": normal(2, 3, 2, 4), "at": np.array([4, 9])}
    check(path, {**feeds, "lengths": np.array([3, 0])})


def test_determinants_and_unfolded_images(tmp_path: Path) -> None:
    path, feeds = single(tmp_path, "Det", normal(2, 5, 5), opset=22)
    check(path, feeds)
    path, feeds = single(tmp_path, "Col2Im", normal(2, 12, 20), np.array([5, 7]), np.array([2, 3]), known=[1, 2])
    check(path, feeds)


def test_bits_of_floats(tmp_path: Path) -> None:
    x = np.concatenate([normal(37), [0.0, -0.0, np.inf, np.nan]]).astype(np.float32)
    path, feeds = single(tmp_path, "BitCast", x, opset=26, to=helper.np_dtype_to_tensor_dtype(np.dtype("int32")))
    assert_close(compiled(path).run(feeds), {"y0": x.view(np.int32)})
