"""Waits for asynchronous loads: in front of the first statement of a serial loop's body that uses what they load."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tilec.ir.lifetimes import is_asynchronous, uses
from tilec.ir.program import LoadTiles, Loop, Statement, Wait


def with_waits(body: tuple[Statement, ...], inputs: Collection[str], *, serial: bool = False) -> tuple[Statement, ...]:
    """The statements with waits; `serial` says whether they are the body of a serial loop. Elsewhere there is no
    earlier iteration that a load could begin in, and of what is not one of the `inputs` nothing to load yet: such a
    load is an ordinary one."""
    result: list[Statement] = []
    coming: list[str] = []
    for statement in body:
        if coming and not uses(statement).isdisjoint(coming):
            result.append(Wait(tuple(coming)))
            coming = []
        if isinstance(statement, Loop):
            statement = replace(statement, body=with_waits(statement.body, inputs, serial=statement.kind == "serial"))
        elif isinstance(statement, LoadTiles) and is_asynchronous(statement):
            if serial and statement.source in inputs:
                coming.append(statement.target)
            else:
                statement = replace(statement, stages=1)
        result.append(statement)
    return tuple(result)
