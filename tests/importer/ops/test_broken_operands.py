"""Operands of gathers, scatters and selections that break ONNX's rules: an error, never a read outside of a tensor."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.reference import normal, single
from tilec.errors import ConfigError
from tilec.importer import import_model

VALUES = np.array([0, 1], np.float32)
GRAMS = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0, "pool_int64s": [1, 2, 3, 4]}
CASES = {
    "OneHot: depth": ("OneHot", [np.array([1]), np.float32(np.nan), VALUES], [1], {}, "a depth of nan"),
    "OneHot: values": ("OneHot", [np.array([1]), np.int64(3), VALUES[:1]], [1], {}, "the values for off and on"),
    "Pad: value": ("Pad", [normal(3), np.array([1, 1]), VALUES[:0]], [1], {}, "input 2 must have one element"),
    "Trilu: k": ("Trilu", [normal(2, 2), np.zeros(0, np.int64)], [], {}, "input 1 must have one element"),
    "Compress: condition": ("Compress", [normal(3), np.array([[True]])], [1], {}, "a condition of rank 2"),
    "TensorScatter: places": (
        *("TensorScatter", [normal(2, 3, 4), normal(2, 1, 4), np.array([1])], []),
        *({"opset": 24}, "write_indices and the batch"),
    ),
    "TensorScatter: update": (
        *("TensorScatter", [normal(2, 3, 4), normal(2, 9, 4)], []),
        *({"opset": 24}, "the update is longer than the cache"),
    ),
    "ScatterElements: indices": (
        *("ScatterElements", [normal(2, 3), np.zeros((3, 1), np.int64), normal(3, 1)], []),
        *({"axis": 1}, "has no room for indices"),
    ),
    "MaxUnpool: strides": (
        *("MaxUnpool", [normal(1, 1, 2, 2), np.zeros((1, 1, 2, 2), np.int64)], []),
        *({"kernel_shape": [2, 2], "strides": [0, 1]}, "must be positive"),
    ),
    "TfIdfVectorizer: counts": (
        *("TfIdfVectorizer", [np.array([1])], []),
        *({**GRAMS, "ngram_counts": [0, -3], "ngram_indexes": [0, 1, 2]}, "must rise inside the pool"),
    ),
    "TfIdfVectorizer: indexes": (
        *("TfIdfVectorizer", [np.array([1])], []),
        *({**GRAMS, "ngram_counts": [0, 2], "ngram_indexes": [0]}, "fewer ngram_indexes"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_broken_operands(tmp_path: Path, case: str) -> None:
    kind, arrays, known, attributes, message = CASES[case]
    path, _ = single(tmp_path, kind, *arrays, known=known, **attributes)
    with pytest.raises(ConfigError, match=message):
        import_model(path)
