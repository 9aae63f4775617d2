"""Determinants against onnxruntime: exchanges of rows, singular matrices, batches, sizes 0 to 8."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.reference import check, normal, single
from tilec.errors import UnsupportedError
from tilec.importer import import_model


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3), (2, 3, 4, 4), (8, 8), (0, 3, 3), (2, 0, 0)])
def test_det(tmp_path: Path, shape: tuple[int, ...]) -> None:
    check(tmp_path, "Det", normal(*shape), rtol=1e-4, atol=1e-5, opset=22)


@pytest.mark.parametrize(
    "matrix", [np.zeros((3, 3)), np.ones((3, 3)), np.eye(4)[[2, 0, 3, 1]], [[0, 1, 2], [0, 3, 4], [5, 6, 7]]]
)
def test_det_of_special_matrices(tmp_path: Path, matrix: object) -> None:
    check(tmp_path, "Det", np.array(matrix, np.float32), atol=1e-5)


def test_a_large_matrix_is_refused(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "Det", normal(17, 17))
    with pytest.raises(UnsupportedError, match=r"a determinant of \[17, 17\]"):
        import_model(path)
