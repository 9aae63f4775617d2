"""Figures of `tilec generate`: tokens a second, memory, bytes moved for a token, other runtimes in turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import sleep
from typing import TYPE_CHECKING

from tilec.artifact import Json

if TYPE_CHECKING:
    from tilec.decoding import Decoder, Generation
    from tilec.runtime import Session

ROUNDS = 3
"""Turns of either runtime in a comparison, after one that is not counted."""


@dataclass(frozen=True, slots=True)
class Moved:
    """Bytes that a plan moves from and to its lowest memory for a token of each sequence, and what that memory delivers
    a second (0: not known)."""

    bytes: int
    bandwidth: int

    @classmethod
    def of(cls, folder: Path, decoder: Decoder, total: int, room: int, batch: int) -> Moved | None:
        """Those of a compiled model for the last of `total` tokens of each sequence; None where its plan does not
        tell."""
        from tilec.analysis.statistics import statistics
        from tilec.cli.options import known_device
        from tilec.cli.plan_origin import plan_of, plan_there
        from tilec.errors import TilecError
        from tilec.ir.expr import constant_value

        try:
            source, plan = plan_of(folder)
            sizes = {s: n for s, n in _sizes(decoder, total, room, batch).items() if s in plan.symbols}
            there = plan_there(source, plan, sizes) if plan.symbols else plan
            found = constant_value(statistics(there).traffic)
            device = known_device(source)
            rate = None if device is None else device.bandwidth(device.level_names[0])
        except TilecError:
            return None
        return None if found is None else cls(found, rate or 0)


def _sizes(decoder: Decoder, total: int, room: int, batch: int) -> dict[str, int]:
    """The symbols of a decoder's ports for one new token of each sequence."""
    shapes: list[tuple[tuple[int | str, ...], tuple[int, ...]]] = [(decoder.ids.shape, (batch, 1))]
    shapes += [(decoder.mask.shape, (batch, total))] if decoder.mask is not None else []
    shapes += [(decoder.rows.shape, (total - 1,))] if decoder.rows is not None else []
    shapes += [(each.past.shape, each.shape(total - 1 if each.grows else room, batch)) for each in decoder.caches]
    return {
        extent: size
        for named, shape in shapes
        for extent, size in zip(named, shape, strict=True)
        if isinstance(extent, str)
    }


@dataclass(frozen=True, slots=True)
class Figures:
    """What a generation took; the peak of memory is None where the system does not tell it."""

    told: Generation
    peak: int | None
    moved: Moved | None

    @classmethod
    def of(cls, told: Generation, moved: Moved | None) -> Figures:
        """Those of a generation of this process."""
        from tilec.bench.runners import peak_memory

        return cls(told, peak_memory(), moved)

    def json(self) -> dict[str, Json]:
        """As data."""
        told = self.told
        facts: dict[str, Json] = {
            "prompt_tokens": told.prompt,
            "first_token_s": round(told.first, 6),
            "prefill_tokens_per_s": round(told.prefill, 2),
            "decode_tokens_per_s": round(told.decode, 2),
            "peak_bytes": self.peak,
        }
        if self.moved is not None:
            facts |= {"moved_bytes_per_token": self.moved.bytes, "bandwidth_bytes_per_s": self.moved.bandwidth}
        return facts

    def lines(self) -> list[str]:
        """For people."""
        told = self.told
        first = f"first token after {1e3 * told.first:.1f} ms"
        lines = [f"prefill: {told.prompt} tokens, {told.prefill:.1f} a second, {first}"]
        every = "" if len(told.rows) == 1 else f" in all of {len(told.rows)} sequences"
        if told.steps:
            lines.append(f"decode: {told.decode:.1f} tokens a second{every}{self._moved()}")
        return lines if self.peak is None else [*lines, f"peak memory: {self.peak / 2**20:.0f} MiB"]

    def _moved(self) -> str:
        if self.moved is None:
            return ""
        rate = self.moved.bytes * len(self.told.steps) / sum(self.told.steps)
        one = "a token" if len(self.told.rows) == 1 else "a step"
        text = f"; the plan moves {self.moved.bytes / 2**20:.1f} MiB for {one}: {rate / 1e9:.2f} GB/s"
        bandwidth = self.moved.bandwidth
        return f"{text}, {100 * rate / bandwidth:.0f} % of {bandwidth / 1e9:.1f}" if bandwidth else text


@dataclass(frozen=True, slots=True)
class Compared:
    """Medians of both runtimes, ours first, in tokens a second, and how many first tokens are the same."""

    prefill: tuple[float, float]
    decode: tuple[float, float]
    equal: int
    tokens: int

    def json(self) -> dict[str, Json]:
        """As data."""
        return {
            "prefill_tokens_per_s": [round(each, 2) for each in self.prefill],
            "decode_tokens_per_s": [round(each, 2) for each in self.decode],
            "equal_tokens": self.equal,
        }

    def line(self) -> str:
        """For people."""
        sides = (("prefill", self.prefill), ("decode", self.decode))
        told = [
            f"{name} {theirs:.1f} a second, here {ours:.1f}{_ratio(ours, theirs)}" for name, (ours, theirs) in sides
        ]
        return f"{'; '.join(told)}; the first {self.equal} of {self.tokens} tokens are the same"


def _ratio(ours: float, theirs: float) -> str:
    return f" ({ours / theirs:.2f}x)" if theirs else ""


def in_turns(
    name: str,
    model: Path,
    session: Session,
    decoder: Decoder,
    prompts: Sequence[Sequence[int]],
    tokens: int,
    threads: int | None,
    gguf: Path | None = None,
) -> Compared:
    """Greedy generation here and on another runtime, in turns, between which threads stop spinning. Raises TilecError
    for one that is not there, or cannot run the model."""
    from tilec.bench.compare import PAUSE
    from tilec.decoding import Generation, generate_batch
    from tilec.decoding.peers import peer_of

    peer = peer_of(name, model, decoder, threads, gguf)
    ours: list[Generation] = []
    theirs: list[Generation] = []
    for _ in range(ROUNDS + 1):
        told = Generation(sum(map(len, prompts)))
        list(generate_batch(session, prompts, most=tokens, decoder=decoder, told=told))
        ours.append(told)
        sleep(PAUSE)
        theirs.append(peer(prompts, tokens))
        sleep(PAUSE)
    equal = min(_equal(*rows) for rows in zip(ours[-1].rows, theirs[-1].rows, strict=True))
    sides = (ours[1:], theirs[1:])
    prefill, decode = (
        tuple(median(getattr(each, what) for each in side) for side in sides) for what in ("prefill", "decode")
    )
    return Compared((prefill[0], prefill[1]), (decode[0], decode[1]), equal, tokens)


def _equal(ours: Sequence[int], theirs: Sequence[int]) -> int:
    """How many first tokens are the same."""
    return next((n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
