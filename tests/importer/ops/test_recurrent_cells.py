"""RNN, GRU and LSTM against onnxruntime, and against float64 where it does not run."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.importer.ops.cells import OUTPUTS, operands
from tests.importer.reference import check, run, single
from tilec.errors import ConfigError
from tilec.importer import import_model


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("present", list(product((False, True), repeat=3)))
@pytest.mark.parametrize("coupled", [0, 1])
def test_lstm(tmp_path: Path, direction: str, present: tuple[bool, ...], coupled: int) -> None:
    arrays = operands("LSTM", directions=2 if direction == "bidirectional" else 1)
    arrays[5:8] = [a if wanted else None for a, wanted in zip(arrays[5:8], present, strict=True)]
    check(tmp_path, "LSTM", *arrays, hidden_size=6, outputs=3, direction=direction, input_forget=coupled, clip=1.5)


@pytest.mark.parametrize("behind", [0, 1])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("started", [False, True])
def test_gru(tmp_path: Path, behind: int, biased: bool, started: bool) -> None:
    arrays = operands("GRU", directions=2)
    arrays[3] = arrays[3] if biased else None
    arrays[5] = arrays[5] if started else None
    options = {"direction": "bidirectional", "linear_before_reset": behind, "hidden_size": 6, "outputs": 2}
    check(tmp_path, "GRU", *arrays, **options)


@pytest.mark.parametrize("ttype", ["float16", "float64"])
@pytest.mark.parametrize("kind", OUTPUTS)
def test_half_and_double_precision(tmp_path: Path, kind: str, ttype: str) -> None:
    arrays = [a if a is None else a.astype(ttype) for a in operands(kind)]
    path, feeds = single(tmp_path, kind, *arrays, hidden_size=6, outputs=OUTPUTS[kind])
    found = run(import_model(path), tmp_path, feeds)
    path, feeds = single(tmp_path, kind, *operands(kind), hidden_size=6, outputs=OUTPUTS[kind])
    for a, b in zip(found, run(import_model(path), tmp_path, feeds), strict=True):
        assert a.dtype == ttype
        np.testing.assert_allclose(a, b, atol=2e-2 if ttype == "float16" else 1e-5)


def test_rnn_in_float64(tmp_path: Path) -> None:
    arrays: list[Any] = [a if a is None else a.astype(np.float64) for a in operands("RNN")]
    path, feeds = single(tmp_path, "RNN", *arrays, hidden_size=6, outputs=2)
    found, last = run(import_model(path), tmp_path, feeds)
    x, w, r, b, _, h = arrays
    h = h[0]
    for time in range(4):
        h = np.tanh(x[time] @ w[0].T + h @ r[0].T + b[0, :6] + b[0, 6:])
        np.testing.assert_allclose(found[time, 0], h, rtol=1e-12)
    np.testing.assert_array_equal(last[0], found[-1, 0])


def test_peepholes_that_do_not_fit(tmp_path: Path) -> None:
    arrays = operands("LSTM")
    for shape, message in (((1, 12), r"P \[1, 12\] .*: 12 and 18 differ"), ((), "the ranks differ")):
        arrays[7] = np.zeros(shape, np.float32)
        path, _ = single(tmp_path, "LSTM", *arrays, hidden_size=6)
        with pytest.raises(ConfigError, match=message):
            import_model(path)
