"""The loop of a decoder: the prompt in one call, then a call for each token."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tilec.decoding.batch import Batch, require_batch
from tilec.decoding.decoder import Cache, Decoder, decoder_of
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
    """Tokens as they come, of each sequence, and what they took: seconds of the `first` call, for prompts of so many
    tokens in all, and of each later one."""

    prompt: int
    rows: list[list[int]] = field(default_factory=lambda: [[]])
    first: float = 0.0
    steps: list[float] = field(default_factory=list)

    @property
    def tokens(self) -> list[int]:
        """Those of the first sequence."""
        return self.rows[0]

    @property
    def prefill(self) -> float:
        """Tokens of the prompts a second."""
        return self.prompt / self.first if self.first else 0.0

    @property
    def decode(self) -> float:
        """Tokens a second behind the first ones, of all sequences."""
        total = sum(self.steps)
        return sum(max(len(row) - 1, 0) for row in self.rows) / total if total else 0.0

    def note(self, seconds: float) -> None:
        """What a further call took."""
        if self.first:
            self.steps.append(seconds)
        else:
            self.first = seconds


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
    return tokens_of(session.run, decoder, prompt, most, stops, sampling, seed, told)


def generate_batch(
    session: Session,
    prompts: Sequence[Sequence[int]],
    *,
    most: int = 128,
    stops: Collection[int] = (),
    sampling: Sampling = GREEDY,
    seeds: Sequence[int] | None = None,
    decoder: Decoder | None = None,
    told: Generation | None = None,
) -> Iterator[tuple[int | None, ...]]:
    """As `generate`, of several prompts beside each other: the next token of each, None behind one of `stops`. Prompts
    may differ in length where the model has a mask. Of what is drawn each sequence has a seed: 0, 1, ... where none are
    given.

    Raises UsageError for another number of prompts than the model was compiled for, and UnsupportedError for prompts of
    different length that it cannot tell apart.
    """
    decoder = decoder or decoder_of(session)
    return batches_of(
        session.run, decoder, prompts, most, stops, sampling, range(len(prompts)) if seeds is None else seeds, told
    )


def tokens_of(
    run: Call,
    decoder: Decoder,
    prompt: Sequence[int],
    most: int,
    stops: Collection[int] = (),
    sampling: Sampling = GREEDY,
    seed: int = 0,
    told: Generation | None = None,
) -> Iterator[int]:
    """As `generate`, of anything that runs the model."""
    steps = batches_of(run, decoder, [prompt], most, stops, sampling, (seed,), told)
    return (token for (token,) in steps if token is not None)


def batches_of(
    run: Call,
    decoder: Decoder,
    prompts: Sequence[Sequence[int]],
    most: int,
    stops: Collection[int] = (),
    sampling: Sampling = GREEDY,
    seeds: Sequence[int] = (0,),
    told: Generation | None = None,
) -> Iterator[tuple[int | None, ...]]:
    """As `generate_batch`, of anything that runs the model."""
    require_batch(decoder, prompts)
    longest = max(map(len, prompts))
    _require_room(decoder, longest, most)
    room, count = decoder.room_for(longest, most), len(prompts)
    told = told or Generation(sum(map(len, prompts)))
    told.rows = [[] for _ in prompts]

    def empty(each: Cache) -> NDArray[Any]:
        return np.zeros(each.shape(0 if each.grows else room, count), numpy_dtype(each.past.ttype))

    def steps() -> Iterator[tuple[int | None, ...]]:
        generators = [np.random.default_rng(seed) for _, seed in zip(prompts, seeds, strict=True)]
        caches = {each.past.name: empty(each) for each in decoder.caches}
        batch, going = Batch(decoder, prompts), [True] * count
        for _ in range(most):
            feeds = {**batch.feeds(), **caches}
            out = {each.present: caches[each.past.name] for each in decoder.caches if each.in_place}
            begin = time.perf_counter()
            results = run(feeds, out)
            told.note(time.perf_counter() - begin)
            caches = {each.past.name: results[each.present] for each in decoder.caches}
            ends = batch.ends(results[decoder.logits.name])
            tokens = [chosen(end, sampling, each) for end, each in zip(ends, generators, strict=True)]
            made = tuple(token if on else None for token, on in zip(tokens, going, strict=True))
            for row, token in zip(told.rows, made, strict=True):
                row.extend([] if token is None else [token])
            yield made
            going = [on and token not in stops for token, on in zip(tokens, going, strict=True)]
            if not any(going):
                return
            batch.add(tokens)

    return steps()


def _require_room(decoder: Decoder, prompt: int, most: int) -> None:
    limit = decoder.most(prompt)
    if limit is None or most <= limit:
        return
    wanted = f"a prompt of {several(prompt, 'token')} and {most} more"
    fewer = f"Ask for fewer: {limit} at most" if limit else "Give a shorter prompt"
    if decoder.room is not None and prompt + most - 1 > decoder.room:
        hint = f"{fewer}, or export the model with longer caches."
        raise UsageError(f"{wanted} do not fit into caches of {decoder.room}", hint=hint)
    raise UsageError(f"{wanted} are beyond the model's {decoder.positions_end} positions", hint=f"{fewer}.")
