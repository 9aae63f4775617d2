"""Race detection: conflicting accesses of units that share memory without a barrier between them."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilec.ir.expr import constant_value
from tilec.ir.lifetimes import reads, statements, writes
from tilec.ir.program import Allocate, Barrier, Loop, Program, Statement
from tilec.ir.program_text import statement_text
from tilec.ir.scopes import scope_of


@dataclass(slots=True)
class Races:
    """Traversal of a program with a valid structure. Serial loops are visited twice: the second iteration conflicts
    with accesses of the first.

    Memory below a level with several units is shared by them. `read` and `written` map a scope to its accesses since
    the last barrier, the latter with the statement: the units of one statement write disjoint parts.
    """

    program: Program
    sharing: dict[str, str] = field(default_factory=dict)
    scopes: list[str] = field(default_factory=list)
    read: dict[str, set[str]] = field(default_factory=dict)
    written: dict[str, set[tuple[str, int]]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def check(self) -> list[str]:
        """Every statement that may run while other units still use a buffer it accesses."""
        levels = self.program.levels
        self.scopes = [scope_of(level) for level in levels]
        names = [level.name for level in levels]
        inner = (s.buffer for s in statements(self.program.body) if isinstance(s, Allocate))
        for buffer in (*self.program.parameters, *inner):
            above = (level for level in levels[names.index(buffer.level) + 1 :] if level.units > 1)
            if (level := next(above, None)) is not None:
                self.sharing[buffer.name] = scope_of(level)
        self._body(self.program.body)
        return list(dict.fromkeys(self.problems))

    def _body(self, body: tuple[Statement, ...]) -> None:
        for statement in body:
            match statement:
                case Barrier(scope):
                    for inner in self.scopes[self.scopes.index(scope) :]:
                        self.read.pop(inner, None)
                        self.written.pop(inner, None)
                case Loop(_, extent, inner_body, kind):
                    self._body(inner_body)
                    if kind == "serial" and constant_value(extent) != 1:
                        self._body(inner_body)
                case _:
                    self._access(statement)

    def _access(self, statement: Statement) -> None:
        for name in reads(statement):
            if (scope := self.sharing.get(name)) is not None:
                if any(name == other for other, _ in self.written.get(scope, ())):
                    self._say(statement, scope, f"may still write {name}")
                self.read.setdefault(scope, set()).add(name)
        for name in writes(statement):
            if (scope := self.sharing.get(name)) is not None:
                earlier = self.written.setdefault(scope, set())
                if name in self.read.get(scope, set()) - set(reads(statement)):
                    self._say(statement, scope, f"may still read {name}")
                if any(name == other and writer != id(statement) for other, writer in earlier):
                    self._say(statement, scope, f"may still write {name}")
                earlier.add((name, id(statement)))

    def _say(self, statement: Statement, scope: str, what: str) -> None:
        self.problems.append(f"{statement_text(statement)}: units of {scope} {what}, a barrier is missing")
