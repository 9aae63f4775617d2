"""What is kept to the reference says so."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.reference import normal, single
from tilec.errors import UnsupportedError
from tilec.importer import import_model


@pytest.mark.parametrize("kind", ["Bernoulli", "RandomNormalLike", "RandomUniformLike", "Multinomial"])
def test_random_numbers(tmp_path: Path, kind: str) -> None:
    path, _ = single(tmp_path, kind, normal(2, 3), seed=1.0)
    with pytest.raises(UnsupportedError, match="random numbers are kept to the reference"):
        import_model(path)


@pytest.mark.parametrize("kind", ["RandomNormal", "RandomUniform"])
def test_random_numbers_of_a_shape(tmp_path: Path, kind: str) -> None:
    path, _ = single(tmp_path, kind, shape=[2, 3])
    with pytest.raises(UnsupportedError, match="random numbers are kept to the reference"):
        import_model(path)


def test_dropout_in_training_mode(tmp_path: Path) -> None:
    ratio, training = np.float32(0.5), np.array(True)
    path, _ = single(tmp_path, "Dropout", normal(2, 3), ratio, training, known=[1, 2])
    with pytest.raises(UnsupportedError, match="random numbers are kept to the reference"):
        import_model(path)


def test_images(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "ImageDecoder", np.zeros(10, np.uint8))
    with pytest.raises(UnsupportedError, match="decoding image files is kept to the reference"):
        import_model(path)
