"""Decisions of a plan without effect, refused with code `unused`: a plan is followed to the letter or refused.

Examples: tiles of nodes that follow another node's tile, layouts of tensors without a buffer at the level.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilec.ir.lifetimes import statements
from tilec.ir.plan import Group, Plan, Refusal, Variant
from tilec.ir.program import Allocate, Program
from tilec.lower.connected_parts import connected_parts
from tilec.lower.lowering_context import LoweringContext, lowering_context


def unused_decisions(group: Group, variant: Variant, plan: Plan, program: Program) -> tuple[Refusal, ...]:
    """The decisions of a variant that have no effect on its program.

    A tile, an order of loops and a tail policy belong to the final node of a part; the lowest level, which has whole
    tensors, has none of them, nor reduce steps. A layout and a number of copies belong to a window, a shared loop to
    the steps of its leader.
    """
    s = lowering_context(group, variant, plan)
    final: dict[str, dict[str, str]] = {level.name: {} for level in s.levels}
    for level, part in _parts(s, tuple(s.nodes), 1):
        final[level] |= dict.fromkeys(part, part[-1])
    refusals = []
    for what, table in (("tile", variant.tiles), ("order of loops", variant.order), ("tail policy", variant.tails)):
        refusals += [
            Refusal(node, "unused", {"what": what, "level": level, "why": _why(final[level].get(node))})
            for level, node in _entries(table)
            if final[level].get(node) != node
        ]
    lowest = s.levels[0].name
    refusals += [
        Refusal(node, "unused", {"what": "reduce step", "level": lowest, "why": _why(None)})
        for level, node in _entries(variant.steps)
        if level == lowest
    ]
    refusals += [
        Refusal(leader, "unused", {"what": "shared loop", "level": s.levels[-1].name, "why": "it has no reduce step"})
        for leader in s.shared
        if not any(of.get(leader) for of in variant.steps.values())
    ]
    buffers = {(b.level, b.tensor) for b in program.parameters}
    buffers |= {(b.buffer.level, b.buffer.tensor) for b in statements(program.body) if isinstance(b, Allocate)}
    for what, of in (("layout", variant.layouts), ("number of copies", variant.copies)):
        refusals += [
            Refusal(tensor, "unused", {"what": what, "level": level, "why": "it is not held there"})
            for level, tensor in _entries(of)
            if (level, tensor) not in buffers
        ]
    return tuple(refusals)


def _entries(table: Mapping[str, Mapping[str, object]]) -> Iterator[tuple[str, str]]:
    """(level, node or tensor) of every decision in a table."""
    return ((level, name) for level, entries in table.items() for name, decided in entries.items() if decided)


def _why(final: str | None) -> str:
    return "tensors are whole there" if final is None else f"it follows the tile of {final} there"


def _parts(s: LoweringContext, part: Sequence[str], level: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(level, part) for the part at a level and all parts inside it at higher levels."""
    if level <= s.top:
        yield s.levels[level].name, tuple(part)
        for inner in connected_parts(s, part, level + 1):
            yield from _parts(s, inner, level + 1)
