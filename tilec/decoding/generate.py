"""The loop of a decoder: the prompt in one call, then a call for each token."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tilec.decoding.decoder import Decoder, decoder_of
from tilec.decoding.sampling import Sampling, chosen
from tilec.errors import UsageError, several
from tilec.ir.types import numpy_dtype

if TYPE_CHECKING:
    from tilec.runtime import Session

GREEDY = Sampling()

Call = Callable[[Mapping[str, NDArray[Any]], Mapping[str, NDArray[Any]]], Mapping[str, NDArray[Any]]]
"""Runs a model on feeds by name, with some results in given arrays."""


@dataclass(slots=True)
class Generation:
    """Tokens as they come, and what they took: seconds of the `first` call, for a `prompt` of so many tokens, and of
    each later one."""

    prompt: int
    tokens: list[int] = field(default_factory=list)
    first: float = 0.0
    steps: list[float] = field(default_factory=list)

    @property
    def prefill(self) -> float:
        """Tokens of the prompt a second."""
        return self.prompt / self.first if self.first else 0.0

    @property
    def decode(self) -> float:
        """Tokens a second behind the first."""
        total = sum(self.steps)
        return len(self.steps) / total if total else 0.0


def generate(
    session: Session,
    prompt: Sequence[int],
    *,
    most: int = 128,
    stops: Collection[int] = (),
    sampling: Sampling = GREEDY,
    seed: int = 0,
    decoder: Decoder | None = None,
    told: Generation | None = None,
) -> Iterator[int]:
    """Tokens that a compiled decoder makes of the tokens of a prompt, one after another: `most` at most, up to one of
    `stops`, which is the last. What they take is noted in `told`.

    Raises UsageError for a prompt without tokens, or that caches of fixed room have none for, and UnsupportedError for
    a model that is no decoder.
    """
    decoder = decoder or decoder_of(session)
    return tokens_of(session.run, decoder, prompt, most, stops, sampling, seed, told or Generation(len(prompt)))


def tokens_of(
    run: Call,
    decoder: Decoder,
    prompt: Sequence[int],
    most: int,
    stops: Collection[int],
    sampling: Sampling,
    seed: int,
    told: Generation,
) -> Iterator[int]:
    """As `generate`, of anything that runs the model."""
    _require_room(decoder, prompt, most)
    room = decoder.room_for(len(prompt), most)
    shapes = {each.past.name: each.shape(0 if each.grows else room) for each in decoder.caches}
    empty = {each.past.name: np.zeros(shapes[each.past.name], numpy_dtype(each.past.ttype)) for each in decoder.caches}

    def steps() -> Iterator[int]:
        generator, caches = np.random.default_rng(seed), empty
        ids, total = np.array([prompt]), 0
        for number in range(most):
            total += ids.shape[1]
            feeds = {**_feeds(decoder, ids, total), **caches}
            out = {each.present: caches[each.past.name] for each in decoder.caches if each.in_place}
            begin = time.perf_counter()
            results = run(feeds, out)
            seconds = time.perf_counter() - begin
            if number:
                told.steps.append(seconds)
            else:
                told.first = seconds
            caches = {each.past.name: results[each.present] for each in decoder.caches}
            token = chosen(results[decoder.logits.name][0, -1], sampling, generator)
            told.tokens.append(token)
            yield token
            if token in stops:
                return
            ids = np.array([[token]])

    return steps()


def _require_room(decoder: Decoder, prompt: Sequence[int], most: int) -> None:
    if not prompt:
        raise UsageError("the prompt has no tokens", hint="Give at least one.")
    limit = decoder.most(len(prompt))
    if limit is None or most <= limit:
        return
    wanted = f"a prompt of {several(len(prompt), 'token')} and {most} more"
    fewer = f"Ask for fewer: {limit} at most" if limit else "Give a shorter prompt"
    if decoder.room is not None and len(prompt) + most - 1 > decoder.room:
        hint = f"{fewer}, or export the model with longer caches."
        raise UsageError(f"{wanted} do not fit into caches of {decoder.room}", hint=hint)
    raise UsageError(f"{wanted} are beyond the model's {decoder.positions_end} positions", hint=f"{fewer}.")


def _feeds(decoder: Decoder, ids: NDArray[Any], total: int) -> dict[str, NDArray[Any]]:
    """The feeds beside caches, for new tokens that are the last of all."""
    feeds = {decoder.ids.name: ids.astype(numpy_dtype(decoder.ids.ttype))}
    if decoder.mask is not None:
        width = decoder.mask.shape[-1]  # of a model with caches of fixed room perhaps theirs
        mask = np.arange(width if isinstance(width, int) else total)[None] < total
        feeds[decoder.mask.name] = mask.astype(numpy_dtype(decoder.mask.ttype))
    if decoder.positions is not None:
        positions = np.arange(total - ids.shape[1], total)[None]
        feeds[decoder.positions.name] = positions.astype(numpy_dtype(decoder.positions.ttype))
    if decoder.places is not None:
        places = np.arange(total - ids.shape[1], total)
        feeds[decoder.places.name] = places.astype(numpy_dtype(decoder.places.ttype))
    if decoder.rows is not None:
        feeds[decoder.rows.name] = np.zeros(total - ids.shape[1], numpy_dtype(decoder.rows.ttype))
    return feeds
