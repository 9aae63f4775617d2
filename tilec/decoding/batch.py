"""Sequences beside each other in a batch: tokens, mask, positions and places of each step, padded where they differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilec.decoding.decoder import Decoder
from tilec.errors import UnsupportedError, UsageError, several
from tilec.ir.types import TTYPES, numpy_dtype

PAD = 0
"""The token of places that the mask hides."""


def require_batch(decoder: Decoder, prompts: Sequence[Sequence[int]]) -> None:
    """Raises UsageError for prompts that are none, have tokens that are none of the model's, or are more or fewer than
    it takes beside each other, and UnsupportedError for prompts of different length in a model that cannot tell them
    apart."""
    if not prompts or not all(prompts):
        raise UsageError("the prompt has no tokens", hint="Give at least one.")
    _require_tokens(decoder, prompts)
    count = len(prompts)
    for port in (decoder.ids, *(each.past for each in decoder.caches)):
        batch = port.shape[0]
        if isinstance(batch, int) and batch != count:
            problem = f"the model has a batch of {batch} in {port.name!r}, and there are {several(count, 'prompt')}"
            raise UsageError(problem, hint=f"Give {batch}, or compile the ONNX file for a batch of {count}.")
    if len({len(each) for each in prompts}) == 1:
        return
    lengths = "prompts of different length"
    if decoder.padded is None:
        reason = f"{lengths} need an input `attention_mask` [batch, tokens], which this model lacks"
        raise UnsupportedError(reason, hint="Give prompts of one length, or one at a time.")
    if decoder.padded == "right" and decoder.logits.shape[1] != decoder.ids.shape[1]:
        reason = f"{lengths} end at different places, and this model has logits of the last one alone"
        raise UnsupportedError(reason, hint="Give prompts of one length, or one at a time.")


def _require_tokens(decoder: Decoder, prompts: Sequence[Sequence[int]]) -> None:
    vocabulary = decoder.logits.shape[-1]
    if not isinstance(vocabulary, int):
        vocabulary = 1 << (TTYPES[decoder.ids.ttype].bits - 1)
    for token in (token for prompt in prompts for token in prompt if not 0 <= token < vocabulary):
        raise UsageError(f"{token} is no token of the model", hint=f"Its tokens are 0 to {vocabulary - 1}.")


class Batch:
    """The sequences of a batch, and how many tokens of each have been fed.

    Shorter prompts are filled up on the side that the model's caches demand: rows of GroupQueryAttention's follow each
    other without gaps, so that padding is behind and overwritten; others have all new rows at one place, so that
    padding is before.
    """

    def __init__(self, decoder: Decoder, prompts: Sequence[Sequence[int]]) -> None:
        self._decoder = decoder
        self._right = decoder.padded == "right"
        longest = max(map(len, prompts))
        lengths = np.array([len(each) for each in prompts])
        self._starts = np.zeros_like(lengths) if self._right else longest - lengths
        self._ends = np.zeros_like(lengths)
        self._new = lengths
        self._ids = np.full((len(prompts), longest), PAD)
        for row, (start, prompt) in enumerate(zip(self._starts, prompts, strict=True)):
            self._ids[row, start : start + len(prompt)] = prompt

    def feeds(self) -> dict[str, NDArray[Any]]:
        """The feeds of the next call beside caches, for the new tokens."""
        decoder, width = self._decoder, self._ids.shape[1]
        before = self._ends
        self._ends = before + (self._new if self._right else width)
        total = int(self._ends.max())
        feeds = {decoder.ids.name: self._ids.astype(numpy_dtype(decoder.ids.ttype))}
        if decoder.mask is not None:
            fixed = decoder.mask.shape[-1]  # of a model with caches of fixed room perhaps theirs
            columns = np.arange(fixed if isinstance(fixed, int) else total)
            mask = (self._starts[:, None] <= columns) & (columns < self._ends[:, None])
            feeds[decoder.mask.name] = mask.astype(numpy_dtype(decoder.mask.ttype))
        if decoder.positions is not None:
            there = np.arange(width) + before[:, None] - self._starts[:, None]
            positions = np.clip(there, 0, (self._ends - self._starts)[:, None] - 1)
            feeds[decoder.positions.name] = positions.astype(numpy_dtype(decoder.positions.ttype))
        if decoder.places is not None:
            places = np.arange(total - width, total)
            feeds[decoder.places.name] = places.astype(numpy_dtype(decoder.places.ttype))
        if decoder.rows is not None:
            feeds[decoder.rows.name] = np.zeros(total - width, numpy_dtype(decoder.rows.ttype))
        return feeds

    def ends(self, logits: NDArray[Any]) -> list[NDArray[Any]]:
        """The logits behind the last new token of each sequence."""
        last = self._new - 1 if self._right and logits.shape[1] > 1 else np.full(len(logits), -1)
        return [logits[row, place] for row, place in enumerate(last)]

    def add(self, tokens: Sequence[int]) -> None:
        """The tokens of the next call, one of each sequence."""
        self._ids = np.array(tokens)[:, None]
        self._new = np.ones_like(self._new)
