"""Shared memory of a tile program: buffers of which units have to synchronise their accesses.

Units of the first level above a buffer's level that has several share the buffer. They also share every buffer whose
place overlaps its place: what one unit writes there, another may still use under another name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tilec.ir.address_spaces import overlapping, places
from tilec.ir.concurrency import iterations_per_unit
from tilec.ir.lifetimes import statements
from tilec.ir.plan import PlanLevel
from tilec.ir.program import Allocate, Buffer, Statement
from tilec.ir.scopes import scope_of


@dataclass(frozen=True, slots=True)
class Sharing:
    """Scope -> buffer -> the buffers with bytes in common, itself included where units of the scope share it."""

    partners: Mapping[str, Mapping[str, frozenset[str]]]

    def scopes(self, name: str) -> list[str]:
        """Scopes whose units synchronise accesses to a buffer."""
        return [scope for scope, table in self.partners.items() if name in table]


def sharing(body: tuple[Statement, ...], parameters: Iterable[Buffer], levels: Sequence[PlanLevel]) -> Sharing:
    """The buffers of a program that units share, by name and by place."""
    inner = [s.buffer for s in statements(body) if isinstance(s, Allocate)]
    homes = {buffer.name: buffer.level for buffer in (*parameters, *inner)}
    rank = {level.name: position for position, level in enumerate(levels)}
    scopes = {name: shared_by(level, levels) for name, level in homes.items()}
    partners: dict[str, dict[str, set[str]]] = {}
    for name, scope in scopes.items():
        if scope is not None:
            partners.setdefault(scope, {})[name] = {name}
    placed = (
        places(inner, levels, iterations_per_unit(body, levels)) if any(b.offset is not None for b in inner) else {}
    )
    for a, b in overlapping(placed):
        scope = scopes[a if rank[homes[a]] <= rank[homes[b]] else b]
        if scope is not None:
            table = partners.setdefault(scope, {})
            table.setdefault(a, set()).add(b)
            table.setdefault(b, set()).add(a)
    return Sharing({scope: {n: frozenset(of) for n, of in table.items()} for scope, table in partners.items()})


def shared_by(level: str, levels: Sequence[PlanLevel]) -> str | None:
    """The scope of the units that share an instance of a level; None if one unit uses it."""
    names = [described.name for described in levels]
    above = (described for described in levels[names.index(level) + 1 :] if described.units > 1)
    first = next(above, None)
    return None if first is None else scope_of(first)
