"""Signal windows and mel matrices against onnxruntime."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.reference import check, run, single
from tilec.errors import ConfigError, UnsupportedError
from tilec.importer import import_model

WINDOWS = ["HannWindow", "HammingWindow", "BlackmanWindow"]


@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize("size", [2, 10, 17])
@pytest.mark.parametrize("periodic", [0, 1])
def test_windows(tmp_path: Path, kind: str, size: int, periodic: int) -> None:
    for element_type in (1, 11):
        options = {"periodic": periodic, "output_datatype": element_type}
        check(tmp_path, kind, np.array(size, np.int64), known=[0], opset=17, atol=1e-7, **options)


@pytest.mark.parametrize("kind", WINDOWS)
def test_windows_of_one_element_are_finite(tmp_path: Path, kind: str) -> None:
    path, _ = single(tmp_path, kind, np.array(1, np.int64), known=[0], opset=17, periodic=0)
    (found,) = run(import_model(path), tmp_path, {})
    assert found.shape == (1,)
    assert np.isfinite(found).all()


def test_a_window_of_a_size_that_only_running_tells(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "HannWindow", np.array(8, np.int64), opset=17)
    with pytest.raises(UnsupportedError, match="known at compile time"):
        import_model(path)


@pytest.mark.parametrize(
    ("bins", "length", "rate", "low", "high"),
    [(8, 16, 8192, 0.0, 4096.0), (40, 512, 16000, 80.0, 7600.0), (3, 33, 16000, 80.0, 7600.0), (1, 2, 8000, 0.0, 1.0)],
)
def test_mel_matrix(tmp_path: Path, bins: int, length: int, rate: int, low: float, high: float) -> None:
    numbers = [np.array(n, np.int64) for n in (bins, length, rate)]
    edges = [np.array(f, np.float32) for f in (low, high)]
    for element_type in (1, 11):
        options = {"output_datatype": element_type, "known": range(5), "opset": 17}
        check(tmp_path, "MelWeightMatrix", *numbers, *edges, **options)


def test_mel_frequencies_above_half_the_rate(tmp_path: Path) -> None:
    numbers = [np.array(n, np.int64) for n in (8, 16, 8000)]
    edges = [np.array(f, np.float32) for f in (0.0, 20000.0)]
    path, _ = single(tmp_path, "MelWeightMatrix", *numbers, *edges, known=range(5), opset=17)
    with pytest.raises(ConfigError, match="between 0 and 4000"):
        import_model(path)
