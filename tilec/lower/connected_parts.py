"""Connected parts: the nodes connected from a level upward, in topological order (ExtractSubgraph; Welder, 3.2)."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.ir.plan import Refusal
from tilec.lower.checks.plan_errors import PlanError
from tilec.lower.lowering_context import LoweringContext

ConnectedPart = tuple[str, ...]
"""Names of nodes in topological order; the last one is the part's final node, from whose tile the others are
propagated."""


def connected_parts(s: LoweringContext, part: Sequence[str], level: int) -> tuple[ConnectedPart, ...]:
    """The parts of `part` connected at `level` or higher, producers before consumers.

    Raises PlanError `cycle` when two parts depend on each other.
    """
    if level > s.top:
        return tuple((name,) for name in part)
    owner = {name: name for name in part}

    def root(name: str) -> str:
        while owner[name] != name:
            owner[name] = owner[owner[name]]
            name = owner[name]
        return name

    index = {described.name: i for i, described in enumerate(s.levels)}
    for name in part:
        for tensor in s.operands[name]:
            edge = f"{tensor}->{name}"
            if tensor in owner and index[s.connect.get(edge, s.levels[0].name)] >= level:
                owner[root(tensor)] = root(name)
    groups: dict[str, list[str]] = {}
    for name in part:
        groups.setdefault(root(name), []).append(name)
    return _ordered(s, [tuple(group) for group in groups.values()], level)


def _ordered(s: LoweringContext, parts: list[ConnectedPart], level: int) -> tuple[ConnectedPart, ...]:
    home = {name: part for part in parts for name in part}
    done: dict[ConnectedPart, None] = {}
    waiting = sorted(parts, key=lambda p: list(home).index(p[-1])) if len(parts) > 1 else parts
    while waiting:
        ready = next((p for p in waiting if all(q in done or q == p for *_, q in _before(s, p, home))), None)
        if ready is None:
            edge = next(f"{t}->{n}" for p in waiting for t, n, q in _before(s, p, home) if q != p and q not in done)
            raise PlanError(Refusal(edge, "cycle", {"level": s.levels[level].name}))
        done[ready] = None
        waiting = [p for p in waiting if p != ready]
    return tuple(done)


def _before(
    s: LoweringContext, part: ConnectedPart, home: dict[str, ConnectedPart]
) -> list[tuple[str, str, ConnectedPart]]:
    """Dependences of a part: (tensor, its reader in the part, the part that computes it).

    A reader of a reduction in a shared loop depends on all members of the loop, unless it runs inside the loop.
    """
    waits = [(t, name, home[t]) for name in part for t in s.operands[name] if t in home]
    for shared in s.shared.values():
        behind = [(t, n) for t, n, _ in waits if t in shared.members and n not in shared.inside]
        waits += [(t, n, home[m]) for t, n in behind for m in shared.members if m in home]
    return waits
