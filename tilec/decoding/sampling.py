"""Choice of the next token from logits: the likeliest, or drawn from the likeliest ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilec.errors import UsageError


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a token is chosen: the likeliest where `temperature` is 0; else drawn from logits divided by it, of the
    `top_k` likeliest (0: all) and of the fewest likeliest ones whose probabilities come to `top_p`."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not self.temperature >= 0 or not 0 < self.top_p <= 1 or self.top_k < 0:
            raise UsageError(
                f"temperature {self.temperature:g}, top_k {self.top_k}, top_p {self.top_p:g}",
                hint="A temperature is 0 or more, top_k 0 or more, top_p above 0 and at most 1.",
            )


def chosen(logits: NDArray[Any], sampling: Sampling, generator: np.random.Generator) -> int:
    """The next token from the logits `[vocabulary]` of the last one. Of equal ones the first is the likeliest."""
    if sampling.temperature == 0 or sampling.top_k == 1:
        return int(logits.argmax())
    values = logits.astype(np.float64) / sampling.temperature
    order = np.argsort(-values, kind="stable")
    if sampling.top_k:
        order = order[: sampling.top_k]
    shares = np.exp(values[order] - values[order[0]])
    shares /= shares.sum()
    if sampling.top_p < 1:
        kept = int(np.searchsorted(np.cumsum(shares), sampling.top_p)) + 1
        order, shares = order[:kept], shares[:kept] / shares[:kept].sum()
    return int(order[generator.choice(len(order), p=shares)])
