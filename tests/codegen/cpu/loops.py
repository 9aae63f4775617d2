"""The loops of a tile program and those of its TIR function, as the iterations that each of them runs.

An iteration is the values of all loops around it, outermost first: (("m_C_l2", 1), ("m_C_reg", 0)).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tilec.codegen.cpu.emit.emit_kernel import Kernel
from tilec.ir.evaluate import integer
from tilec.ir.program import ComputeTile, Loop, Program, Statement

Iteration = tuple[tuple[str, int], ...]

_BINARY = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": lambda a, b: a // b,
    "Mod": lambda a, b: a % b,
    "FloorDiv": lambda a, b: a // b,
    "FloorMod": lambda a, b: a % b,
    "Min": min,
    "Max": max,
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
    "And": lambda a, b: a and b,
    "Or": lambda a, b: a or b,
}
"""Integer operators of TIR; dividends are never negative."""


def program_iterations(program: Program) -> tuple[set[Iteration], set[Iteration]]:
    """(iterations that compute, all iterations) of all loops of a program."""
    working: set[Iteration] = set()
    every: set[Iteration] = set()

    def walk(body: tuple[Statement, ...], env: Mapping[str, int], place: Iteration) -> bool:
        works = False
        for statement in body:
            if isinstance(statement, ComputeTile):
                works |= all(integer(lo, env) < integer(hi, env) for _, lo, hi in statement.box)
            if not isinstance(statement, Loop):
                continue
            for value in range(integer(statement.extent, env)):
                inside = (*place, (statement.variable, value))
                every.add(inside)
                if walk(statement.body, {**env, statement.variable: value}, inside):
                    working.add(inside)
                    works = True
        return works

    walk(program.body, {}, ())
    return working, every


class _Walker:
    """Runs the named loops of a TIR function; `values` are the variables that are known."""

    def __init__(self, names: frozenset[str], parts: Mapping[str, Any]) -> None:
        self.names = names
        self.parts = parts
        self.values: dict[Any, Any] = {}
        self.found: set[Iteration] = set()
        self.held: dict[Any, bool] = {}

    def value(self, expr: Any) -> Any:
        """An integer or a condition; a bound variable is evaluated when it is needed."""
        kind = type(expr).__name__
        if kind == "IntImm":
            return int(expr.value)
        if kind == "Var":
            held = self.values[expr]
            if not isinstance(held, int):
                held = self.values[expr] = self.value(held)
            return held
        if kind in _BINARY:
            return _BINARY[kind](self.value(expr.a), self.value(expr.b))
        if kind == "Not":
            return not self.value(expr.a)
        if kind == "Select":
            return self.value(expr.true_value if self.value(expr.condition) else expr.false_value)
        raise AssertionError(f"{kind} in an index")

    def loops(self, statement: Any) -> bool:
        """Whether a statement is or holds a named loop."""
        if statement not in self.held:
            named = type(statement).__name__ == "For" and statement.loop_var.name in self.names
            self.held[statement] = named or self.part(statement) is not None or any(map(self.loops, _inside(statement)))
        return self.held[statement]

    def part(self, statement: Any) -> tuple[Any, list[Any]] | None:
        """The function of its own that a statement calls, and the arguments."""
        if type(statement).__name__ != "Evaluate" or type(statement.value).__name__ != "Call":
            return None
        symbol, *arguments = statement.value.args
        found = self.parts.get(getattr(symbol, "value", ""))
        return None if found is None else (found, arguments)

    def walk(self, statement: Any, place: Iteration) -> None:
        """Run a statement whose surroundings are the iteration `place`."""
        pending = place
        for part in _sequence(statement):
            kind = type(part).__name__
            if kind == "Bind":
                self.values[part.var] = part.value
                if part.var.name in self.names:
                    pending = (*pending, (part.var.name, int(self.value(part.var))))
                    self.found.add(pending)
            elif kind == "For" and self.loops(part):
                name, first = part.loop_var.name, self.value(part.min)
                for value in range(first, first + self.value(part.extent)):
                    self.values[part.loop_var] = value
                    inside = (*pending, (name, value)) if name in self.names else pending
                    self.found |= {inside} if name in self.names else set()
                    self.walk(part.body, inside)
            elif kind == "IfThenElse" and self.loops(part):
                chosen = part.then_case if self.value(part.condition) else part.else_case
                if chosen is not None:
                    self.walk(chosen, pending)
            elif (called := self.part(part)) is not None:
                function, arguments = called
                for parameter, argument in zip(function.params, arguments, strict=True):
                    if str(parameter.ty) == "int64":  # the others are pointers
                        self.values[parameter] = self.value(argument)
                self.walk(function.body, pending)


def _sequence(statement: Any) -> Iterator[Any]:
    if type(statement).__name__ == "SeqStmt":
        for part in statement.seq:
            yield from _sequence(part)
    else:
        yield statement


def _inside(statement: Any) -> list[Any]:
    """The statements of its bodies."""
    bodies = [getattr(statement, name, None) for name in ("body", "then_case", "else_case")]
    return [part for body in bodies if body is not None for part in _sequence(body)]


def tir_iterations(kernel: Kernel, program: Program) -> set[Iteration]:
    """The iterations that a kernel's TIR runs of the loops that have a name in its program."""
    names = frozenset(name for iteration in program_iterations(program)[1] for name, _ in iteration)
    walker = _Walker(names, kernel.parts)
    function = kernel.function
    (tasks,) = (s for s in _sequence(function.body) if type(s).__name__ == "For")
    for task in range(kernel.tasks):
        walker.values[tasks.loop_var] = task
        walker.walk(tasks.body, ())
    return walker.found
