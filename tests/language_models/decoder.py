"""What a decoder is fed, step by step: new tokens, masks, positions, and its own state of the step before.

Inputs and outputs are known by the names that exporters give them: `past_key_values.0.key` becomes `present.0.key`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]
Arrays = Mapping[str, Array]
Run = Callable[[dict[str, Array]], Arrays]


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a model; a name in its shape is a size that varies."""

    name: str
    dtype: np.dtype[np.generic]
    shape: tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """How a model is fed. `padded` is the side on which shorter prompts of a batch are filled up; `capacity` is the
    number of rows of caches that the model writes to in place of growing ones; `given` are its other inputs, for a
    batch of one; `channels` is the extent of a head in caches that name it, `window` the number of rows of caches of a
    sliding window."""

    inputs: Sequence[Input]
    padded: str = "right"
    capacity: int = 0
    channels: int = 0
    window: int = 0
    given: Arrays = field(default_factory=dict)


def present_of(past: str, outputs: Sequence[str]) -> str:
    """The output that an input for the state of the step before is made of."""
    numbers, words = re.findall(r"\d+", past), past.replace("past_key_values", "")
    kind = [word for word in ("key", "value", "conv", "recurrent", "decoder", "encoder") if word in words]
    found = [
        name
        for name in outputs
        if name.startswith("present") and re.findall(r"\d+", name) == numbers and all(word in name for word in kind)
    ]
    (name,) = found
    return name


class Decoding:
    """A batch of sequences that one model decodes: lengths of each, and the state behind the last step."""

    def __init__(self, form: Form, outputs: Sequence[str], run: Run, batch: int) -> None:
        self.form, self.run, self.batch = form, run, batch
        self.present = {
            i.name: present_of(i.name, outputs)
            for i in form.inputs
            if i.name.startswith("past") and i.name not in form.given
        }
        self.lengths = np.zeros(batch, np.int64)
        self.rows = 0
        self.mask = np.zeros((batch, 0), np.int64)
        self.state: dict[str, Array] = {i.name: self._empty(i) for i in form.inputs if i.name in self.present}

    def _empty(self, each: Input) -> Array:
        """A cache without tokens, or one with room for all of them or for a window: the third dimension counts them."""
        rows = self.form.window if "sliding" in str(each.shape[2]) else self.form.capacity
        named = {0: self.batch, 2: rows, 3: self.form.channels}
        return np.zeros([named[d] if isinstance(n, str) else n for d, n in enumerate(each.shape)], each.dtype)

    def step(self, tokens: Sequence[Sequence[int]]) -> Array:
        """The logits behind the last of the new tokens of each sequence."""
        width = max(map(len, tokens))
        ids = np.zeros((self.batch, width), np.int64)
        fresh = np.zeros((self.batch, width), np.int64)
        for row, new in enumerate(tokens):
            place = slice(0, len(new)) if self.form.padded == "right" else slice(width - len(new), width)
            ids[row, place], fresh[row, place] = new, 1
        new_lengths = self.lengths + fresh.sum(1)
        mask = np.concatenate([self.mask, fresh], 1)
        if self.form.padded == "right":  # rows of a cache follow each other without gaps
            mask = (np.arange(self.rows + width) < new_lengths[:, None]).astype(np.int64)
        positions = np.maximum(self.lengths[:, None] + fresh.cumsum(1) - 1, 0)
        feeds = {i.name: self._feed(i, ids, mask, positions) for i in self.form.inputs}
        results = self.run(feeds)
        self.state = {name: results[present] for name, present in self.present.items()}
        self.lengths, self.mask, self.rows = new_lengths, mask, self.rows + width
        logits = results["logits"]
        last = fresh.sum(1) - 1 if self.form.padded == "right" else np.full(self.batch, -1)
        return logits[np.arange(self.batch), last if logits.shape[1] == width else -1]

    def _feed(self, each: Input, ids: Array, mask: Array, positions: Array) -> Array:
        if each.name in self.form.given:
            return np.repeat(self.form.given[each.name], self.batch, 0)
        if each.name in self.state:
            return self.state[each.name]
        match each.name:
            case "input_ids" | "decoder_input_ids":
                array = ids
            case "attention_mask" | "decoder_attention_mask":
                array = mask
                if self.form.capacity:
                    array = np.pad(mask, [(0, 0), (0, self.form.capacity - mask.shape[1])])
            case "position_ids":
                array = positions
            case "cache_position":
                array = np.arange(self.rows, self.rows + ids.shape[1])
            case "use_cache_branch":
                array = np.array([self.rows > 0])
            case _:
                raise KeyError(each.name)
        return array.astype(each.dtype)


def prompts(lengths: Sequence[int], vocabulary: int, seed: int = 0) -> list[list[int]]:
    """Random prompts of these lengths."""
    generator = np.random.default_rng(seed)
    return [generator.integers(3, vocabulary, length).tolist() for length in lengths]
