"""The graphs of onnx's backend tests compile as they are, and compute with random weights what onnxruntime computes."""

from __future__ import annotations

import numpy as np
import pytest
from importer.reference import onnxruntime

from acceptance.building import assert_close, compiled, tilec
from acceptance.light import NAMES, image, plain, randomised


def test_there_are_nine():
    assert len(NAMES) == 9


def agree(name, folder):
    path = randomised(name, folder)
    session = compiled(path)
    names = [spec.name for spec in session.outputs]
    for seed, mean in ((0, 0.0), (1, 3.0)):
        feeds = image(path, seed, mean)
        expected = dict(zip(names, onnxruntime(path, feeds), strict=True))
        for array in expected.values():
            assert np.isfinite(array).all()
            assert array.std() > 0.1 * np.abs(array).mean()
        assert_close(session.run(feeds), expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_light_models_agree_with_random_weights(tmp_path, name):
    agree(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_light_models_compile_as_they_are(tmp_path, name):
    ran = tilec("compile", plain(name), "--device", "host", "-o", "build", folder=tmp_path)
    assert "verified on: host" in ran.stderr
    placed = next(line for line in ran.stderr.splitlines() if line.startswith("placement: "))
    assert "onnxruntime" not in placed
