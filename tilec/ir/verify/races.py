"""Race detection: conflicting accesses of units that share memory, by name or by place, without a barrier between
them."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilec.ir.expr import constant_value
from tilec.ir.lifetimes import is_asynchronous, reads, writes
from tilec.ir.program import Barrier, Loop, Program, Statement, Wait
from tilec.ir.program_text import statement_text
from tilec.ir.scopes import scope_of
from tilec.ir.sharing import Sharing, sharing


@dataclass(slots=True)
class Races:
    """Traversal of a program with a valid structure. Serial loops are visited twice: the second iteration conflicts
    with accesses of the first.

    `read` and `written` map a scope to its accesses since the last barrier, the latter with the statement: the units of
    one statement write disjoint parts.
    """

    program: Program
    shared: Sharing = field(init=False)
    scopes: list[str] = field(default_factory=list)
    read: dict[str, set[str]] = field(default_factory=dict)
    written: dict[str, set[tuple[str, int]]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def check(self) -> list[str]:
        """Every statement that may run while other units still use bytes that it accesses."""
        program = self.program
        self.scopes = [scope_of(level) for level in program.levels]
        self.shared = sharing(program.body, program.parameters, program.levels)
        self._body(program.body)
        return list(dict.fromkeys(self.problems))

    def _body(self, body: tuple[Statement, ...]) -> None:
        for statement in body:
            match statement:
                case Barrier(scope):
                    for inner in self.scopes[self.scopes.index(scope) :]:
                        self.read.pop(inner, None)
                        self.written.pop(inner, None)
                case Loop(_, extent, inner_body, kind):
                    for load in filter(is_asynchronous, inner_body):
                        self._write(load)
                    self._body(inner_body)
                    if kind == "serial" and constant_value(extent) != 1:
                        self._body(inner_body)
                case Wait(names):
                    for name in names:
                        for scope in self.shared.scopes(name):
                            self.written.setdefault(scope, set()).add((name, id(statement)))
                case _ if not is_asynchronous(statement):
                    self._access(statement)

    def _access(self, statement: Statement) -> None:
        for name in reads(statement):
            for scope in self.shared.scopes(name):
                partners = self.shared.partners[scope][name]
                for other in sorted({other for other, _ in self.written.get(scope, ()) if other in partners}):
                    self._say(statement, scope, "write", name, other)
                self.read.setdefault(scope, set()).add(name)
        self._write(statement)
        for name in writes(statement):
            for scope in self.shared.scopes(name):
                self.written.setdefault(scope, set()).add((name, id(statement)))

    def _write(self, statement: Statement) -> None:
        """Conflicts of what a statement writes, or begins to."""
        for name in writes(statement):
            for scope in self.shared.scopes(name):
                partners = self.shared.partners[scope][name]
                earlier = self.written.get(scope, set())
                for other in sorted((self.read.get(scope, set()) - set(reads(statement))) & partners):
                    self._say(statement, scope, "read", name, other)
                for other in sorted({b for b, writer in earlier if b in partners and writer != id(statement)}):
                    self._say(statement, scope, "write", name, other)

    def _say(self, statement: Statement, scope: str, use: str, name: str, other: str) -> None:
        where = other if other == name else f"{other}, where {name} lies"
        self.problems.append(
            f"{statement_text(statement)}: units of {scope} may still {use} {where}, a barrier is missing"
        )
