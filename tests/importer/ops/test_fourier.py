"""DFT and STFT against NumPy's transforms and onnxruntime."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.importer.reference import check, compare, helper, normal, run, save, single
from tilec.errors import ConfigError, UnsupportedError
from tilec.importer import import_model

Array = NDArray[Any]


def count(value: int) -> Array:
    return np.array(value, np.int64)


def signal(x: Array) -> Array:
    return x[..., 0] + (1j * x[..., 1] if x.shape[-1] == 2 else 0)


def parts(z: Array) -> Array:
    return np.stack([z.real, z.imag], -1)


def transform(folder: Path, x: Array, *rest: Array | None, **options: Any) -> Array:
    known = [1 + i for i, a in enumerate(rest) if a is not None]
    path, feeds = single(folder, "DFT", x, *rest, known=known, **options)
    (found,) = run(import_model(path), folder, feeds)
    assert found.dtype == x.dtype
    return found


@pytest.mark.parametrize("length", [1, 2, 5, 8, 15, 257, 300, 512])
@pytest.mark.parametrize("complex_parts", [1, 2])
def test_forward_and_inverse(tmp_path: Path, length: int, complex_parts: int) -> None:
    """257 is prime, 300 and 512 take two stages."""
    x = normal(2, length, complex_parts)
    tolerance = {"rtol": 1e-4, "atol": 1e-4}
    np.testing.assert_allclose(transform(tmp_path, x), parts(np.fft.fft(signal(x), axis=1)), **tolerance)
    expected = parts(np.fft.ifft(signal(x), axis=1))
    np.testing.assert_allclose(transform(tmp_path, x, inverse=1, opset=17), expected, **tolerance)


@pytest.mark.parametrize("length", [1, 6, 7, 300])
def test_one_sided(tmp_path: Path, length: int) -> None:
    x = normal(2, length, 1)
    expected = parts(np.fft.rfft(x[..., 0], axis=1))
    np.testing.assert_allclose(transform(tmp_path, x, onesided=1), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("length", [1, 8, 9, 400])
def test_one_sided_inverse(tmp_path: Path, length: int) -> None:
    z = normal(2, length // 2 + 1, 2)
    expected = np.fft.irfft(signal(z), n=length, axis=1)[..., None]
    found = transform(tmp_path, z, count(length), inverse=1, onesided=1)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    if length == 8:
        np.testing.assert_allclose(transform(tmp_path, z, inverse=1, onesided=1), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("size", "length"), [(20, 15), (20, 32), (290, 300), (400, 300)])
def test_signals_are_cut_or_filled(tmp_path: Path, size: int, length: int) -> None:
    x = normal(2, 3, size, 2)
    expected = parts(np.fft.fft(signal(x), n=length, axis=2))
    found = transform(tmp_path, x, count(length), count(-2))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_axes_and_types(tmp_path: Path) -> None:
    x = normal(2, 3, 5, 4, 2)
    check(tmp_path, "DFT", x, None, count(2), known=[2], rtol=1e-4, atol=1e-5)
    check(tmp_path, "DFT", x, opset=17, axis=-3, rtol=1e-4, atol=1e-5)
    check(tmp_path, "DFT", x.astype(np.float64), None, count(1), known=[2], rtol=1e-10, atol=1e-12)
    half = normal(1, 8, 1, dtype="float16")
    np.testing.assert_allclose(transform(tmp_path, half), parts(np.fft.fft(half[..., 0], axis=1)), atol=2e-2)


def test_a_batch_of_symbolic_signals(tmp_path: Path) -> None:
    node = helper.make_node("DFT", ["x", "n"], ["y"])
    path = save(tmp_path / "m.onnx", [node], {"x": ("float32", ["b", "t", 1])}, ["y"], {"n": count(8)}, opset=20)
    for t in (5, 8, 11):
        compare(path, {"x": normal(3, t, 1)}, {"b": 3, "t": t}, rtol=1e-4, atol=1e-5)


def test_transforms_that_are_refused(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "DFT", normal(1, 2 * 2003, 1))
    with pytest.raises(UnsupportedError, match="4006 = 2 \\* 2003 would take too long"):
        import_model(path)
    path, _ = single(tmp_path, "DFT", normal(1, 8, 2), onesided=1)
    with pytest.raises(ConfigError, match="one-sided transform of a complex signal"):
        import_model(path)
    node = helper.make_node("DFT", ["x"], ["y"])
    path = save(tmp_path / "m.onnx", [node], {"x": ("float32", [1, "t", 1])}, ["y"])
    with pytest.raises(UnsupportedError, match="the size t decides the factors of a transform"):
        import_model(path)


@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("shape", [(2, 100, 1), (1, 16, 1)])
def test_stft(tmp_path: Path, half: int, shape: tuple[int, ...]) -> None:
    x, step, window, length = normal(*shape), count(7), normal(16), count(16)
    options = {"opset": 17, "onesided": half, "rtol": 1e-4, "atol": 1e-4}
    check(tmp_path, "STFT", x, step, window, known=[1], **options)
    check(tmp_path, "STFT", x, step, None, length, known=[1, 3], **options)
    check(tmp_path, "STFT", x, step, window, length, known=[1, 2, 3], **options)


def test_stft_of_a_complex_and_of_a_symbolic_signal(tmp_path: Path) -> None:
    x, window = normal(1, 40, 2), normal(9)
    path, feeds = single(tmp_path, "STFT", x, count(5), window, known=[1], opset=17, onesided=0)
    frames = np.stack([signal(x)[:, f * 5 : f * 5 + 9] * window for f in range(7)], 1)
    expected = parts(np.fft.fft(frames, axis=2))
    np.testing.assert_allclose(run(import_model(path), tmp_path, feeds)[0], expected, rtol=1e-4, atol=1e-4)
    node = helper.make_node("STFT", ["x", "s", "w"], ["y"])
    weights = {"s": count(5), "w": window}
    path = save(tmp_path / "m.onnx", [node], {"x": ("float32", ["b", "t", 1])}, ["y"], weights, opset=17)
    compare(path, {"x": normal(2, 33, 1)}, {"b": 2, "t": 33}, rtol=1e-4, atol=1e-4)
