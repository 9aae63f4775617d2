"""Decisions of a plan without effect, refused with code `unused`: a plan is followed to the letter or refused.

Examples: tiles of nodes that follow another node's tile, layouts of tensors without a buffer at the level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tilec.ir.decision_forms import Effect
from tilec.ir.decisions import Entry, entries
from tilec.ir.lifetimes import is_asynchronous, statements
from tilec.ir.plan import Group, Plan, Refusal, Variant
from tilec.ir.program import Allocate, LoadTiles, Loop, Program
from tilec.lower.connected_parts import connected_parts
from tilec.lower.lowering_context import LoweringContext, lowering_context


@dataclass(frozen=True, slots=True)
class Effects:
    """What decisions can show in: the last node of the part of every node, by level; levels and tensors of buffers;
    those that are loaded asynchronously; scopes and stripes of spread loops."""

    s: LoweringContext
    final: Mapping[str, Mapping[str, str]]
    buffers: frozenset[tuple[str, str]]
    ahead: frozenset[tuple[str, str]]
    striped: frozenset[tuple[str, int]]


def unused_decisions(group: Group, variant: Variant, plan: Plan, program: Program) -> tuple[Refusal, ...]:
    """The decisions of a variant that its program does not show; empty where all of them have an effect."""
    s = lowering_context(group, variant, plan)
    final: dict[str, dict[str, str]] = {level.name: {} for level in s.levels}
    for level, part in _parts(s, tuple(s.nodes), 1):
        final[level] |= dict.fromkeys(part, part[-1])
    buffers = {(b.level, b.tensor) for b in program.parameters}
    inside = {s.buffer.name: s.buffer for s in statements(program.body) if isinstance(s, Allocate)}
    buffers |= {(buffer.level, buffer.tensor) for buffer in inside.values()}
    targets = (inside[s.target] for s in statements(program.body) if isinstance(s, LoadTiles) and is_asynchronous(s))
    ahead = frozenset((buffer.level, buffer.tensor) for buffer in targets)
    striped = frozenset((loop.scope, loop.stripe) for loop in statements(program.body) if isinstance(loop, Loop))
    effects, top = Effects(s, final, frozenset(buffers), ahead, striped), s.levels[-1].name
    return tuple(
        Refusal(entry.subject, "unused", {"what": entry.decision.what, "level": entry.level or top, "why": why})
        for entry in entries(variant)
        if entry.value != () and (why := RULES[entry.decision.effect](effects, entry))
    )


def _part(effects: Effects, entry: Entry) -> str:
    """A tile, an order of loops and a tail policy belong to the last node of a part; the lowest level has no parts."""
    final = effects.final[entry.level].get(entry.subject)
    if final is None:
        return "tensors are whole there"
    return f"it follows the tile of {final} there" if final != entry.subject else ""


def _task_order(effects: Effects, entry: Entry) -> str:
    """Several tile loops of a part, spread over units."""
    part = _part(effects, entry)
    if part:
        return part
    level = next(n for n, level in enumerate(effects.s.levels) if level.name == entry.level)
    striped = effects.s.spread(level) and (effects.s.scope(level), entry.value) in effects.striped
    return "" if striped or entry.value == 1 else "its tiles there are not spread over units along several loops"


def _reduce_loop(effects: Effects, entry: Entry) -> str:
    """The lowest level holds whole tensors."""
    return "tensors are whole there" if entry.level == effects.s.levels[0].name else ""


def _shared_loop(effects: Effects, entry: Entry) -> str:
    """A shared loop consists of the reduce steps of its leader."""
    if entry.subject not in effects.s.shared or any(of.get(entry.subject) for of in effects.s.variant.steps.values()):
        return ""
    return "it has no reduce step"


def _buffer(effects: Effects, entry: Entry) -> str:
    """A layout, a padding and a type belong to a buffer."""
    return "it is not held there" if (entry.level, entry.subject) not in effects.buffers else ""


def _asynchronous_load(effects: Effects, entry: Entry) -> str:
    """Copies belong to a load of an input in a serial loop."""
    return "" if (entry.level, entry.subject) in effects.ahead else "no serial loop there loads it from an input"


def _unchecked(_effects: Effects, _entry: Entry) -> str:
    return ""


RULES: Mapping[Effect, Callable[[Effects, Entry], str]] = {
    "part": _part,
    "task order": _task_order,
    "reduce loop": _reduce_loop,
    "shared loop": _shared_loop,
    "buffer": _buffer,
    "asynchronous load": _asynchronous_load,
    "code": _unchecked,
    "unchecked": _unchecked,
}
"""Why an entry shows nowhere, by where decisions of its kind show; "" for one that has an effect."""


def _parts(s: LoweringContext, part: Sequence[str], level: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(level, part) for the part at a level and all parts inside it at higher levels."""
    if level <= s.top:
        yield s.levels[level].name, tuple(part)
        for inner in connected_parts(s, part, level + 1):
            yield from _parts(s, inner, level + 1)
