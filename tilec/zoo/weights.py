"""Seeded weights: a tensor's values depend on seed, name and shape only, not on form, order or machine."""

import math
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def uniform(seed: int, name: str, shape: Sequence[int], spread: float, center: float = 0.0) -> NDArray[np.float32]:
    """Values of `shape`, uniform in center +- spread, on a grid of 65536 steps.

    Drawn as 16-bit integers: four from each random word, and scaled by exactly rounded operations only.
    """
    generator = np.random.default_rng([seed, zlib.crc32(name.encode())])
    words = np.frombuffer(generator.bytes(2 * math.prod(shape)), dtype="<i2")
    values = words.astype(np.float32)
    values += np.float32(0.5)
    values *= np.float32(spread / 32768)
    if center:
        values += np.float32(center)
    return values.reshape(shape)


def fan_in_spread(fan_in: int, gain: float = 1.0) -> float:
    """The spread that gives sums over `fan_in` inputs of variance 1 the variance gain^2."""
    return gain * math.sqrt(3.0 / fan_in)
