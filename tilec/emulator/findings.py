"""What the emulator tells about a launch: findings, barriers and requests to memory."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the source: its line from 1, what it does there (`shared write`, `barrier`), the buffer."""

    line: int
    access: str
    buffer: str

    def __str__(self) -> str:
        return f"the {self.access} in line {self.line}"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong: its kind, two places and the threads there (the same twice if one is to blame; of a race of
    blocks the blocks), the block of the first time, and how often."""

    kind: str
    first: Site
    second: Site
    threads: tuple[int, int]
    block: int
    count: int

    def __str__(self) -> str:
        one, other = self.threads
        if self.kind == "race of blocks":
            return f"{self.kind} {one} and {other}: {self.first} of {self.first.buffer}, {self.count} times"
        if self.first == self.second and self.kind not in ("race", "copy in flight"):
            what = f" of {self.first.buffer}" if self.first.buffer else ""
            return f"{self.kind}: {self.first}{what} (thread {one}, block {self.block}, {self.count} times)"
        return (
            f"{self.kind} on {self.second.buffer}: {self.first} (thread {one}) and {self.second} (thread {other}), "
            f"block {self.block}, {self.count} times"
        )


@dataclass(frozen=True, slots=True)
class Barrier:
    """A barrier of the block: its line, how often blocks came to it, whether accesses would race without it."""

    line: int
    reached: int
    needed: bool


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests of warps from one place: their number, the sectors of 32 bytes or shared-memory wavefronts that serve
    them, as few as their distinct bytes could do with, and those bytes."""

    site: Site
    requests: int
    units: int
    ideal: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Emulation:
    """Results of one launch; `blocks` of `grid` ran."""

    findings: tuple[Finding, ...]
    barriers: tuple[Barrier, ...]
    requests: tuple[Requests, ...]
    blocks: int
    grid: int

    @property
    def needless(self) -> tuple[Barrier, ...]:
        """Barriers without which nothing would race."""
        return tuple(each for each in self.barriers if not each.needed)

    def total(self, access: str) -> Requests:
        """The sum over all places whose access begins so: `global`, `shared write`."""
        chosen = [each for each in self.requests if each.site.access.startswith(access)]
        return Requests(
            Site(0, access, ""),
            sum(each.requests for each in chosen),
            sum(each.units for each in chosen),
            sum(each.ideal for each in chosen),
            sum(each.bytes for each in chosen),
        )


def read_results(text: str, source: Sequence[str], blocks: int, grid: int) -> Emulation:
    """The emulator's JSON on a kernel whose lines are `source`."""
    told: Mapping[str, Any] = json.loads(text)
    aliases = _aliases(source)

    def site(entry: Mapping[str, Any]) -> Site:
        return Site(entry["line"], entry["access"], _buffer(entry["text"], aliases))

    findings = tuple(
        Finding(
            f["kind"], site(f["first"]), site(f["second"]), (f["threads"][0], f["threads"][1]), f["block"], f["count"]
        )
        for f in told["findings"]
    )
    barriers: dict[int, Barrier] = {}
    for each in told["barriers"]:
        before = barriers.get(each["line"], Barrier(each["line"], 0, False))
        barriers[each["line"]] = Barrier(
            each["line"], before.reached + each["reached"], before.needed or each["needed"]
        )
    requests = tuple(
        Requests(site(r["site"]), r["requests"], r["units"], r["ideal"], r["bytes"]) for r in told["requests"]
    )
    return Emulation(findings, tuple(barriers.values()), requests, blocks, grid)


def _aliases(source: Sequence[str]) -> dict[str, str]:
    """Pointers that a kernel makes from others: `const half* const row = tile + 8` gives row -> tile."""
    declared = re.compile(r"\*\s*(?:const\s+|__restrict__\s+)*(\w+)\s*=\s*(\w+)\s*[+;]")
    return {found[1]: found[2] for line in source for found in declared.finditer(line)}


def _buffer(text: str, aliases: Mapping[str, str]) -> str:
    """The buffer of an address: the first name in its text that is no type and no cast."""
    names = [name for name in re.findall(r"[A-Za-z_]\w*", text) if name not in _TYPES]
    name = names[0] if names else ""
    seen: set[str] = set()
    while name in aliases and name not in seen and aliases[name] != "smem_":
        seen.add(name)
        name = aliases[name]
    return name


_TYPES = frozenset({"const", "float", "half", "float2", "float4", "uint4", "int", "unsigned", "char", "long", "short"})
