"""An independent count of transactions: every position of a small program is visited, what it takes is marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tilec.ir.intervals import Candidates
from tilec.ir.program import Allocate, Buffer, ComputeTile, LoadTiles, Loop, Program, Statement, StoreTiles
from tilec.ir.propagate import propagate
from tilec.ir.scopes import scope_ranks
from tilec.ir.types import tensor_bytes


class Walk:
    """Every position one by one: what is taken of a buffer is marked in its storage, and runs of marks are counted."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.rank = {level.name: n for n, level in enumerate(program.levels)}
        self.size = {level.name: level.transaction for level in program.levels}
        self.buffers: dict[str, Buffer] = {b.name: b for b in program.parameters}
        self.shapes: dict[str, Sequence[object]] = {b.tensor: b.shape for b in program.parameters}
        self.top = len(program.levels) - 1
        self.in_step = program.levels[self.top - 1].units > 1
        self.counts = dict.fromkeys(self.size, 0)
        self.marked: dict[tuple[object, ...], np.ndarray] = {}
        self.note(program.body)
        self.run(program.body, {}, {})
        for (_, _, name, *_), mark in self.marked.items():
            below = self.buffers[str(name)]
            flat = mark.transpose(below.layout or range(mark.ndim)).reshape(-1)
            ends = np.flatnonzero(np.diff(np.concatenate([[0], flat.astype(int), [0]])))
            self.counts[below.level] += sum(
                -(-self.value(tensor_bytes(below.ttype, (int(n),)), {}) // self.size[below.level])
                for n in ends[1::2] - ends[::2]
            )

    def note(self, body: Sequence[Statement]) -> None:
        for statement in body:
            if isinstance(statement, Loop):
                self.note(statement.body)
            elif isinstance(statement, Allocate):
                self.buffers[statement.buffer.name] = statement.buffer
            elif isinstance(statement, ComputeTile):
                self.shapes.setdefault(statement.expr.tensor, statement.expr.shape)

    def run(self, body: Sequence[Statement], at: dict[str, int], scopes: dict[str, int]) -> None:
        for statement in body:
            if isinstance(statement, Loop):
                inner = dict(scopes)
                if statement.kind == "spread":
                    inner[statement.variable] = scope_ranks(self.program.levels)[statement.scope]
                for i in range(self.value(statement.extent, at)):
                    self.run(statement.body, {**at, statement.variable: i}, inner)
            elif isinstance(statement, LoadTiles | StoreTiles):
                held, below = self.buffers[statement.target], self.buffers[statement.source]
                lo, hi = below.lo, below.hi
                if isinstance(statement, StoreTiles):
                    lo, hi = statement.lo or below.lo, statement.hi or below.hi
                    held, below = below, held
                ends = [
                    (self.window(lo, hi, at)),
                    self.window(held.lo, held.hi, at),
                    self.window(below.lo, below.hi, at),
                ]
                box = [(max(a for a, _ in each), min(b for _, b in each)) for each in zip(*ends, strict=True)]
                self.mark(id(statement), held, below, box, at, scopes)
            elif isinstance(statement, ComputeTile):
                self.compute(statement, at, scopes)

    def compute(self, tile: ComputeTile, at: dict[str, int], scopes: dict[str, int]) -> None:
        held = self.buffers[tile.target]
        box = {i: (np.asarray(self.value(lo, at)), np.asarray(self.value(hi, at))) for i, lo, hi in tile.box}
        windows = propagate(tile.expr, box, self.shapes, Candidates(), clip=True)  # type: ignore[arg-type]
        for tensor, name in tile.operands:
            below = self.buffers[name]
            if self.rank[below.level] < self.rank[held.level]:
                self.mark(id(tile), held, below, [(int(a), int(b)) for a, b in windows[tensor]], at, scopes)

    def mark(
        self,
        statement: int,
        held: Buffer,
        below: Buffer,
        box: Sequence[tuple[int, int]],
        at: Mapping[str, int],
        scopes: Mapping[str, int],
    ) -> None:
        """Units of higher levels act together; those of the highest one in step with each other."""
        level = self.rank[held.level]
        one = [v for v, rank in scopes.items() if rank > level or (self.in_step and rank == level == self.top)]
        key = (statement, held.name, below.name, *((v, i) for v, i in at.items() if v not in one))
        lo = [self.value(end, at) for end in below.lo]
        shape = [self.value(n, {}) for n in below.shape]
        mark = self.marked.setdefault(key, np.zeros(shape, bool))
        extents = [self.value(n, {}) for n in self.shapes[below.tensor]]
        cut = [(max(a, 0) - o, min(b, n) - o) for (a, b), o, n in zip(box, lo, extents, strict=True)]
        mark[tuple(slice(max(0, a), max(0, b)) for a, b in cut)] = True

    def window(self, lo: Sequence[object], hi: Sequence[object], at: Mapping[str, int]) -> list[tuple[int, int]]:
        return [(self.value(a, at), self.value(b, at)) for a, b in zip(lo, hi, strict=True)]

    def value(self, expr: object, at: Mapping[str, int]) -> int:
        return int(Candidates(dict(at)).size(expr))  # type: ignore[arg-type]
