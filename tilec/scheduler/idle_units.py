"""Units of a device that a plan leaves without work: what moves fewest bytes may do so in few tasks."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from tilec.errors import several
from tilec.ir.algebra import simplify
from tilec.ir.expr import constant_value
from tilec.ir.program import Loop, Program, Statement

log = logging.getLogger("tilec")


def warn_of_idle_units(programs: Iterable[Program], units: int, objective: str) -> None:
    """Say that programs of known sizes, planned for another objective than time, have fewer tasks than there are
    units."""
    tasks = [tasks_of(program) for program in programs]
    idle = [count for count in tasks if count < units]
    if objective != "time" and idle:
        what = f"{several(len(idle), 'group')} of {len(tasks)} leave units idle ({min(idle)} of {units} work)"
        log.warning("objective: %s comes before time: %s; `objective: time` may use more", objective, what)


def tasks_of(program: Program) -> int:
    """The most iterations that a program spreads over the units of the outermost level that has any."""
    return _tasks(program.body, "")


def _tasks(statements: Sequence[Statement], scope: str) -> int:
    most = 1
    for each in statements:
        if not isinstance(each, Loop):
            continue
        if each.kind == "serial":
            most = max(most, _tasks(each.body, scope))
        elif scope in ("", each.scope):
            most = max(most, (constant_value(simplify(each.extent)) or 1) * _tasks(each.body, each.scope))
    return most
