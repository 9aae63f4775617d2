"""Rules of shared memory, found by going through a kernel's steps at sample sizes, arrays as intervals of bytes.

checks: what is read was stored, or has arrived, and a barrier lies between; what is overwritten was read in front of a
barrier; groups of copies are waited for; instructions that read asynchronously see what a fence has published; arrays
lie at multiples of the alignment, inside of the memory of a block. Of every loop the first iterations are looked at,
of one with a pipeline as many as fill and drain it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tilec.codegen.gpu.kernel_ir import (
    Barrier,
    Commit,
    Copy,
    Declare,
    Fence,
    Fill,
    For,
    If,
    KernelIR,
    Let,
    Step,
    Tile,
    Units,
    Wait,
)
from tilec.ir.address_spaces import address_spaces, place_bytes
from tilec.ir.evaluate import integer
from tilec.ir.expr import Const, Expr
from tilec.ir.program import Buffer

SAMPLE = 64
"""The size of every symbol."""

TURNS = 2
"""Iterations of a loop without a pipeline: what one leaves behind, the next one finds."""


def check_shared_memory(kernel: KernelIR) -> tuple[str, ...]:
    """The rules that a kernel breaks, empty for a legal one."""
    memory = _Memory(kernel, dict.fromkeys(kernel.symbols, SAMPLE) | {loop.variable: 0 for loop in kernel.nest})
    memory.run(kernel.body, None)
    memory.problems += [f"{each.name} is never waited for" for each in memory.stores if each.arriving is not None]
    return tuple(dict.fromkeys(memory.problems))


@dataclass
class _Store:
    """Bytes `[begin, end)` that an array got in an epoch, the time between two barriers, by the units of a nest or by
    the block (None): `arriving` in a group, `published` by a fence."""

    name: str
    begin: int
    end: int
    epoch: int
    owner: object
    arriving: int | None = None
    published: bool = False


@dataclass
class _Memory:
    """Shared memory while a kernel runs; `places` of the arrays that are declared, `reads` (array, begin, end, owner)
    of this epoch, the `limits` to which pipelines are cut, in place of their extents."""

    kernel: KernelIR
    values: dict[str, int]
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    stores: list[_Store] = field(default_factory=list)
    reads: list[tuple[str, int, int, object]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    epoch: int = 0
    group: int = 0
    limits: dict[Expr, int] = field(default_factory=dict)

    def run(self, body: Sequence[Step], owner: object) -> None:
        """Go through steps; `owner` is the nest of units around."""
        for step in body:
            self._step(step, owner)

    def _step(self, step: Step, owner: object) -> None:
        match step:
            case Declare(buffer):
                self._declare(buffer, step.copy)
            case Fill(buffer):
                self._store(buffer, None)
            case Copy(upper, lower) if self.kernel.is_private(upper):
                (self._read if step.up else self._store)(lower, owner)
            case Copy(upper):
                if step.up:
                    self._store(upper, None, later=step.arrival == "later")
                else:
                    self._read(upper, None)
            case Commit():
                self.group += 1
            case Wait(left):
                self._wait(left)
            case Fence():
                self.stores = [replace(each, published=each.arriving is None) for each in self.stores]
            case Barrier():
                self.epoch += 1
                self.reads = []
            case Tile():
                self._tile(step, owner)
            case For() | If() | Let() | Units():
                self._nested(step, owner)

    def _nested(self, step: For | If | Let | Units, owner: object) -> None:
        match step:
            case For(variable, extent, body, _, stages):
                turns = self._integer(extent)
                if not _only_begins(body):
                    turns = min(turns, 2 * stages if stages > 1 else TURNS)
                self.limits |= {extent: turns} if stages > 1 else {}
                for number in range(turns):
                    self.values[variable] = number
                    self.run(body, owner)
            case If(variable, end, body):
                if self.values[variable] < self.limits.get(end, self._integer(end)):
                    self.run(body, owner)
            case Let(variable, value, body):
                self.values[variable] = self._integer(value)
                self.run(body, owner)
            case Units(nest, body):
                self.values |= {loop.variable: 0 for loop in nest}
                self.run(body, object())

    def _integer(self, expr: Expr) -> int:
        return int(integer(expr, self.values))

    def _declare(self, buffer: Buffer, copy: Expr) -> None:
        if buffer.offset is None or self.kernel.is_private(buffer):
            return
        level = self.kernel.levels[1]
        space = address_spaces(self.kernel.levels)[buffer.level]
        each = self._integer(place_bytes(replace(buffer, copies=1), space, level, Const(1)))
        begin, stage = self._integer(buffer.offset), self._integer(copy)
        if not 0 <= stage < buffer.copies:
            self.problems.append(f"{buffer.name} has no copy {stage} of {buffer.copies}")
        begin += stage * each
        if begin % (level.alignment or 1):
            self.problems.append(f"{buffer.name} lies at byte {begin}, no multiple of {level.alignment}")
        if begin + each > self._integer(self.kernel.launched.shared_bytes):
            self.problems.append(f"{buffer.name} ends at byte {begin + each}, outside of the memory of a block")
        self.places[buffer.name] = begin, begin + each

    def _overlapping(self, name: str) -> Iterator[_Store]:
        begin, end = self.places[name]
        return (each for each in self.stores if each.begin < end and begin < each.end)

    def _store(self, buffer: Buffer, owner: object, *, later: bool = False) -> None:
        if not self._is_shared(buffer):
            return
        begin, end = self.places[buffer.name]
        for name, first, last, reader in self.reads:
            if first < end and begin < last and (owner is None or reader is not owner):
                self.problems.append(f"{buffer.name} is stored where {name} is read, without a barrier between")
        if any(each.arriving is not None for each in self._overlapping(buffer.name)):
            self.problems.append(f"{buffer.name} is stored where copies arrive")
        kept = [each for each in self.stores if not (begin <= each.begin and each.end <= end)]
        arriving = self.group if later else None
        self.stores = [*kept, _Store(buffer.name, begin, end, self.epoch, owner, arriving)]

    def _read(self, buffer: Buffer, owner: object, *, asynchronously: bool = False) -> None:
        if not self._is_shared(buffer):
            return
        found = list(self._overlapping(buffer.name))
        if not found:
            self.problems.append(f"{buffer.name} is read before it is stored")
        for each in found:
            if each.arriving is not None:
                self.problems.append(f"{buffer.name} is read before it has arrived")
            elif each.epoch == self.epoch and (owner is None or each.owner is not owner):
                self.problems.append(f"{buffer.name} is read where {each.name} is stored, without a barrier between")
            elif asynchronously and not each.published:
                self.problems.append(f"{buffer.name} is read asynchronously before it is published")
        self.reads.append((buffer.name, *self.places[buffer.name], owner))

    def _is_shared(self, buffer: Buffer) -> bool:
        return buffer.level == self.kernel.levels[1].name

    def _wait(self, left: int) -> None:
        """What has arrived is seen by the thread that copied it, by others behind the next barrier."""
        self.stores = [
            replace(each, arriving=None, epoch=self.epoch, published=False)
            if each.arriving is not None and each.arriving < self.group - left
            else each
            for each in self.stores
        ]

    def _tile(self, tile: Tile, owner: object) -> None:
        asynchronously = tile.matrix is not None and tile.matrix.unit.reads_memory
        for _, buffer in tile.operands:
            self._read(buffer, owner, asynchronously=asynchronously)
        self.run(tile.meanwhile, owner)
        if tile.accumulate:
            self._read(tile.target, owner)
        self._store(tile.target, owner)


def _only_begins(body: Sequence[Step]) -> bool:
    """Whether a loop begins groups of copies that something behind it waits for."""
    return any(isinstance(step, Commit) for step in body) and not any(isinstance(step, Wait) for step in body)
