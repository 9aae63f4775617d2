"""Launches of a plan in the order in which a run has them, with the calls between them: loops repeat theirs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tilec.ir.graph import Call
from tilec.runtime.fallback import Fallback
from tilec.runtime.serial_loop import LoopRun
from tilec.verify.state_updates import updated


def in_order(
    segments: Sequence[int], calls: Sequence[Call], fallbacks: Sequence[Fallback | None], arrays: dict[str, Any]
) -> Iterator[int]:
    """Numbers of the launches, whose segments are given in ascending order, as they are to be run; all calls are run
    between them, from and into `arrays`, which the caller extends by what launches compute."""
    loops: list[tuple[int, LoopRun]] = []
    number = 0
    while True:
        yield from (launch for launch, segment in enumerate(segments) if segment == number)
        if number == len(calls):
            return
        call, fallback = calls[number], fallbacks[number]
        number += 1
        if call.updates:
            arrays |= updated(call, arrays)
            continue
        values = [arrays[port.tensor] for port in call.inputs]
        if fallback is not None:
            results = fallback.run(values)
        elif call.loop == "start":
            loops.append((number, LoopRun(values, call.carried)))
            results = loops[-1][1].operands
        elif loops[-1][1].advance(values):
            number = loops[-1][0]
            continue
        else:
            results = loops.pop()[1].results
        arrays |= {port.tensor: value for port, value in zip(call.outputs, results, strict=True)}
