"""An architecture as every tool has it: memories from the lowest, units that compute, notes on what does not fit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tilec.errors import ConfigError
from tilec.spec.foreign.arithmetic import NoNumberError, number
from tilec.spec.located import KeyPath, Located

LARGEST_FANOUT = 1 << 24
MOST_JOULES = 1e9
"""Of an action; also the largest scale."""

WIDEST = 1 << 20
"""Bits of a line, of what an action moves."""


@dataclass(frozen=True)
class Memory:
    """A memory of `bits` (inf: unbounded) in one instance, `fanout` of them under one of the memory below.

    `bandwidth` bits per second of one instance (None: no limit), `energy` joules for `energy_bits`; `keep` names the
    tensors that alone it holds, empty for any.
    """

    name: str
    bits: float
    fanout: int = 1
    bandwidth: float | None = None
    energy: float | None = None
    energy_bits: float = 8
    word_bits: int = 8
    line_bits: int = 8
    keep: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Compute:
    """Units that multiply and add: `fanout` under one instance of the highest memory, each `rate` multiply-adds per
    second of `inputs`, summed in `accumulator`; `energy` joules of one multiply-add."""

    name: str
    fanout: int
    rate: float
    energy: float | None
    inputs: str
    accumulator: str


@dataclass
class Notes:
    """Omissions and assumptions of a translation, in sentences."""

    dropped: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)

    def drop(self, owner: str, keys: Iterable[str]) -> None:
        """Say that keys of something have no meaning here."""
        if named := ", ".join(keys):
            self.dropped.append(f"{owner}: {named}")


@dataclass(frozen=True)
class Architecture:
    """The architecture that a file describes; `memories` lowest first."""

    memories: tuple[Memory, ...]
    compute: tuple[Compute, ...]


@dataclass(frozen=True)
class Reader:
    """Values of a file with their places; `names` have numbers."""

    located: Located
    notes: Notes
    names: Mapping[str, float] = field(default_factory=dict)

    def at(self, path: KeyPath) -> Any:
        """The value at a path, None for nothing."""
        found: Any = self.located.data
        for step in path:
            here = dict(enumerate(found)) if isinstance(found, list) else found
            found = here.get(step) if isinstance(here, dict) else None
        return found

    def mapping(self, path: KeyPath) -> dict[str, Any]:
        """The mapping at a path, empty for nothing. Raises ConfigError for anything else."""
        found = self.at(path)
        if not isinstance(found, dict | None):
            raise ConfigError("expected keys and values", self.located.place(path))
        return found or {}

    def listing(self, path: KeyPath) -> list[Any]:
        """The list at a path, empty for nothing. Raises ConfigError for anything else."""
        found = self.at(path)
        if not isinstance(found, list | None):
            raise ConfigError("expected a list", self.located.place(path))
        return found or []

    def name(self, path: KeyPath) -> str:
        """The text under `name` of a mapping. Raises ConfigError where there is none."""
        found = self.mapping(path).get("name")
        if not isinstance(found, str) or not found:
            raise ConfigError("key 'name' is missing", self.located.place(path))
        return found

    def number(self, path: KeyPath, *, least: float = 0, most: float = math.inf) -> float | None:
        """The number at a path, None for nothing. Raises ConfigError for no number, less than `least`, over `most`."""
        value = self.at(path)
        if value is None:
            return None
        place = self.located.place(path)
        try:
            found = number(value, self.names)
        except NoNumberError as error:
            raise ConfigError(str(error), place, "Write the number.") from error
        if found < least:
            raise ConfigError(f"{value!r} is less than {least:g}", place)
        if found > most:
            raise ConfigError(f"{value!r} is more than {most:g}", place)
        return found

    def whole(self, path: KeyPath, most: int = LARGEST_FANOUT) -> int | None:
        """A whole number from 1 on, None for nothing. Raises ConfigError for anything else."""
        found = self.number(path, least=1)
        if found is None:
            return None
        if found != int(min(found, 2.0**62)) or found > most:
            place = self.located.place(path)
            raise ConfigError(f"expected a whole number up to {most}, found {self.at(path)!r}", place)
        return int(found)

    def with_names(self, more: Mapping[str, Any]) -> Reader:
        """With what of a mapping is numbers as names, over those there are."""
        known = dict(self.names)
        for name, value in more.items():
            try:
                known[name.replace("-", "_")] = number(value, known)
            except NoNumberError:
                known.pop(name.replace("-", "_"), None)
        return replace(self, names=known)


def side_by_side(memories: Iterable[Memory], notes: Notes) -> tuple[Memory, ...]:
    """Memories that follow each other without fan-out and hold different tensors, as one memory of all their bits."""
    found: list[Memory] = []
    for memory in memories:
        last = found[-1] if found else None
        if last and memory.fanout == 1 and memory.keep and last.keep and not memory.keep & last.keep:
            found[-1] = _joined(last, memory)
            notes.assumed.append(f"{last.name} and {memory.name} hold different tensors: one level of both capacities")
        else:
            found.append(memory)
    return tuple(found)


def _joined(one: Memory, other: Memory) -> Memory:
    """Both as one: capacities and bandwidths add up, an access costs what it costs in the larger."""
    paid = max(one, other, key=lambda memory: memory.bits)
    unlimited = one.bandwidth is None or other.bandwidth is None
    return replace(
        one,
        name=f"{one.name}+{other.name}",
        bits=one.bits + other.bits,
        bandwidth=None if unlimited else (one.bandwidth or 0) + (other.bandwidth or 0),
        energy=paid.energy,
        energy_bits=paid.energy_bits,
        line_bits=math.gcd(one.line_bits, other.line_bits),
        keep=one.keep | other.keep,
    )
