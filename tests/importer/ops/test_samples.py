"""Sequences turned by their lengths and caches written at their samples' places."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.reference import check, normal


@pytest.mark.parametrize("known", [[], [1]])
@pytest.mark.parametrize(("batch", "time"), [(0, 1), (1, 0)])
def test_reverse_sequence(tmp_path: Path, known: list[int], batch: int, time: int) -> None:
    options = {"batch_axis": batch, "time_axis": time}
    for lengths in ([1, 0, 4, 3], [4, 4, 4, 4]):
        check(tmp_path, "ReverseSequence", normal(4, 4, 2), np.array(lengths), known=known, **options)
    check(tmp_path, "ReverseSequence", normal(1, 1), np.array([1]), known=known, **options)


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("known", [[], [2]])
def test_tensor_scatter(tmp_path: Path, mode: str, known: list[int]) -> None:
    cache = normal(2, 3, 5, 4)
    for starts in ([3, 0], [1, 2], None) if mode == "linear" else ([4, 3], [9, 5], None):
        at = None if starts is None else np.array(starts)
        options = {"mode": mode, "opset": 24}
        check(tmp_path, "TensorScatter", cache, normal(2, 3, 2, 4), at, known=known, **options)
    check(tmp_path, "TensorScatter", cache, normal(2, 1, 5, 4), np.array([1, 2]), axis=1, opset=24, mode=mode)
    check(tmp_path, "TensorScatter", cache, cache, opset=24, mode=mode)
    check(tmp_path, "TensorScatter", cache, normal(2, 3, 0, 4), opset=24, mode=mode)
