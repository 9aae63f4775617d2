"""`python -m tests.exports.compare MODEL BUILD FEEDS...`: print the largest error of a compiled model as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import numpy as np
import onnxruntime
from numpy.typing import NDArray

import tilec

AGREED = 1e-3
"""Share of the largest value up to which PyTorch's results are of the function that the exported file has."""


def main(model: str, build: str, files: Sequence[str]) -> None:
    """Run a model and its build on each file of feeds; the error is a share of the largest value of a result."""
    session = tilec.load(build)
    reference = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [put.name for put in reference.get_outputs()]
    read = {put.name for put in reference.get_inputs()}
    worst = 0.0
    for file in files:
        arrays = np.load(file)
        feeds = {key[5:]: value for key, value in arrays.items() if key.startswith("feed:") and key[5:] in read}
        found = session.run(feeds)
        for name, expected in zip(names, reference.run(names, feeds), strict=True):
            worst = max(worst, error(found[name], expected))
            original = arrays[f"result:{name}"]
            if error(expected, original) < AGREED:
                worst = max(worst, error(found[name], original))
    print(json.dumps(worst))


def error(found: NDArray[np.generic], expected: NDArray[np.generic]) -> float:
    """The largest difference, as a share of the largest finite value; infinite where shapes or NaN differ."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return float("inf")
    same = (found == expected) | ((found != found) & (expected != expected))
    with np.errstate(invalid="ignore"):
        off = np.abs(found.astype(np.float64) - expected.astype(np.float64))[~same]
    largest = np.abs(expected[np.isfinite(expected)].astype(np.float64)).max(initial=0.0)
    return float(np.nan_to_num(off, nan=np.inf).max(initial=0.0) / (largest or 1.0))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
