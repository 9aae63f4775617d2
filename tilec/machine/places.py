"""Places of buffers while a program runs: whose bytes a statement overwrites, and whether other units may still use
them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from tilec.ir.address_spaces import Place, overlapping, places
from tilec.ir.evaluate import integer
from tilec.ir.expr import Const, Expr
from tilec.ir.lifetimes import reads, statements, writes
from tilec.ir.program import Allocate, Barrier, Loop, Program, Statement
from tilec.ir.scopes import scope_of
from tilec.ir.sharing import sharing

T = TypeVar("T")


class Places:
    """The places of a program's buffers, the buffers with contents, and the accesses since the last barrier.

    Units run in lockstep here. On a device those that have passed no barrier since another one's access may be ahead of
    it: a write to bytes that were accessed under another name leaves undefined contents.
    """

    def __init__(self, program: Program, symbols: Mapping[str, int], iterations: Mapping[str, Expr]) -> None:
        inner = [s.buffer for s in statements(program.body) if isinstance(s, Allocate)]
        self._places = {
            name: Place(place.space, *(Const(int(integer(end, symbols))) for end in (place.begin, place.end)))
            for name, place in places(inner, program.levels, iterations).items()
        }
        self._overlaps: dict[str, set[str]] = {}
        for a, b in overlapping(self._places):
            self._overlaps.setdefault(a, set()).add(b)
            self._overlaps.setdefault(b, set()).add(a)
        self._scopes = [scope_of(level) for level in program.levels]
        self._shared = sharing(program.body, program.parameters, program.levels)
        self._causes: dict[str, str] = {}
        self._defined: set[str] = set()
        self._pending: dict[str, set[str]] = {}

    def end(self, name: str) -> tuple[int | None, bool]:
        """Byte at which the place of a buffer ends, and whether that is one of a pool; None without a place."""
        place = self._places.get(name)
        return (None, False) if place is None else (int(integer(place.end, {})), place.space.pooled)

    def lost(self, statement: Statement) -> set[str]:
        """Buffers that have lost their contents when a single statement has run."""
        match statement:
            case Barrier(scope):
                for inner in self._scopes[self._scopes.index(scope) :]:
                    self._pending.pop(inner, None)
            case Allocate(buffer):
                self._defined.discard(buffer.name)
                self._causes.pop(buffer.name, None)
        if not self._overlaps or isinstance(statement, Loop):
            return set()
        lost: set[str] = set()
        for name in writes(statement):
            over = self._overlaps.get(name, set()) & self._defined
            self._causes |= {other: f"{name} was written where {other} lies." for other in over}
            lost |= over
            if racing := self._racing(name):
                self._causes[name] = f"{name} was written where other units may still use {', '.join(racing)}."
                lost.add(name)
        if (cause := self.cause(statement)) is not None:
            self._causes |= {name: cause for name in writes(statement) if name not in lost}
        self._defined = (self._defined | set(writes(statement))) - lost
        for name in (*reads(statement), *writes(statement)):
            for scope in self._shared.scopes(name):
                self._pending.setdefault(scope, set()).add(name)
        return lost

    def _racing(self, name: str) -> list[str]:
        """Buffers that other units may still use while bytes of theirs are written under another name."""
        tables = ((self._shared.partners[scope][name], scope) for scope in self._shared.scopes(name))
        return sorted({b for partners, scope in tables for b in (partners - {name}) & self._pending.get(scope, set())})

    def cause(self, statement: Statement) -> str | None:
        """How a buffer that a single statement reads, or one that it is computed from, has lost its contents, if one
        has."""
        return next((self._causes[name] for name in reads(statement) if name in self._causes), None)

    def each(self, waves: Iterable[T]) -> Iterator[T]:
        """Waves of iterations of a spread loop: accesses of one are no concern of the next."""
        before = {scope: set(names) for scope, names in self._pending.items()}
        after = before
        for wave in waves:
            self._pending = {scope: set(names) for scope, names in before.items()}
            yield wave
            after = {s: after.get(s, set()) | self._pending.get(s, set()) for s in after.keys() | self._pending.keys()}
        self._pending = after
