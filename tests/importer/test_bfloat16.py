"""bf16 operators, at opsets before ONNX listed the type too: what the same operator computes in f32, rounded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.importer.reference import normal, run, single
from tilec.errors import ConfigError
from tilec.importer import import_model

IMAGE, WEIGHT = normal(1, 3, 5, 7), normal(4, 3, 3, 3)
ROUNDINGS = 3
"""Roundings to bf16 in a row: of a product, of the sum with a bias, of the result."""

SINCE = {"LayerNormalization": 17, "HardSwish": 14}
"""The first opset that has the operator, where it is not there from 13 on."""

CASES: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("Conv", [IMAGE, WEIGHT, normal(4)], {"pads": [1, 1, 1, 1]}),
    ("ConvTranspose", [normal(1, 4, 3, 3), WEIGHT], {}),
    ("MatMul", [normal(3, 70), normal(70, 5)], {}),
    ("Gemm", [normal(3, 5), normal(5, 4), normal(4)], {"alpha": 0.5}),
    ("Pow", [np.abs(normal(9)) + 0.5, normal(9)], {}),
    ("Pow", [np.abs(normal(9)) + 0.5, np.int32([3])], {}),
    ("Pow", [normal(9), np.float64([3])], {}),
    ("AveragePool", [IMAGE], {"kernel_shape": [3, 2]}),
    ("MaxPool", [IMAGE], {"kernel_shape": [3, 2]}),
    ("GlobalAveragePool", [IMAGE], {}),
    ("BatchNormalization", [IMAGE, *(np.abs(normal(3, seed=n)) for n in range(4))], {}),
    ("InstanceNormalization", [IMAGE, normal(3), normal(3)], {}),
    ("LayerNormalization", [normal(3, 70), normal(70), normal(70)], {}),
    ("Softmax", [normal(3, 70)], {}),
    ("ReduceL2", [normal(3, 70)], {"axes": [1]}),
    ("ReduceMean", [normal(3, 70)], {"axes": [1]}),
    ("PRelu", [IMAGE, normal(3, 1, 1)], {}),
    ("Elu", [IMAGE], {}),
    ("HardSwish", [IMAGE], {}),
    ("Clip", [IMAGE, np.float32(-1), np.float32(1)], {}),
    ("Erf", [IMAGE], {}),
    ("Sin", [IMAGE], {}),
    ("Sum", [IMAGE, normal(5, 7)], {}),
    ("CumSum", [normal(3, 70), np.int64(1)], {}),
    ("Resize", [IMAGE, None, np.float32([1, 1, 2, 1.5])], {"mode": "linear"}),
    ("GRU", [normal(3, 2, 5), normal(1, 18, 5), normal(1, 18, 6)], {"hidden_size": 6}),
    ("LRN", [IMAGE], {"size": 3}),
    ("DepthToSpace", [normal(1, 4, 2, 3)], {"blocksize": 2}),
    ("Gather", [normal(5, 3), np.int64([4, 0])], {}),
    ("Where", [normal(3) > 0, normal(3), normal(3, seed=1)], {}),
]
FLOATS = {"Resize": 1}
"""Number of inputs of an operator that share its type, where others are of f32 as well."""


def half(array: Any) -> NDArray[Any]:
    return np.asarray(array, ml_dtypes.bfloat16)


@pytest.mark.parametrize(
    ("opset", "case"),
    [
        pytest.param(opset, case, id=f"{case[0]}-{n}-{opset}")
        for n, case in enumerate(CASES)
        for opset in (13, 17, 26)
        if opset >= SINCE.get(case[0], 13)
    ],
)
def test_operators(tmp_path: Path, case: tuple[str, list[Any], dict[str, Any]], opset: int) -> None:
    kind, arrays, options = case
    if opset >= 18 and "axes" in options:
        arrays, options = [*arrays, np.int64(options["axes"])], {}
    known = [
        n
        for n, a in enumerate(arrays)
        if a is not None and (np.asarray(a).dtype.kind == "i" or (kind == "Resize" and n))
    ]
    rounded = [
        half(a) if a is not None and np.asarray(a).dtype == np.float32 and n < FLOATS.get(kind, 9) else a
        for n, a in enumerate(arrays)
    ]
    wide = [
        a.astype(np.float32) if a is not None and a.dtype == ml_dtypes.bfloat16 else a for a in map(as_array, rounded)
    ]
    results = []
    for operands in (rounded, wide):
        path, feeds = single(tmp_path, kind, *operands, known=known, opset=opset, **options)
        results.append(run(import_model(path), tmp_path, feeds)[0])
    assert results[0].dtype == ml_dtypes.bfloat16
    exact = results[1].astype(np.float64)
    scale = np.abs(exact) + np.sqrt(np.mean(exact**2))
    assert (np.abs(results[0].astype(np.float64) - exact) <= ROUNDINGS * 2.0**-8 * scale).all()


def as_array(array: Any) -> Any:
    return None if array is None else np.asarray(array)


def test_an_exponent_is_not_rounded(tmp_path: Path) -> None:
    path, feeds = single(tmp_path, "Pow", half([1.0078125]), np.int32([515]))
    (result,) = run(import_model(path), tmp_path, feeds)
    assert result[0] == half(1.0078125**515)
    assert result[0] != half(1.0078125 ** float(half(515)))


def test_other_types_than_the_opset_has_are_refused(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "Relu", np.int32([1]), opset=13)
    with pytest.raises(ConfigError, match="is i32"):
        import_model(path)
