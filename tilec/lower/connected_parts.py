"""Connected parts: the nodes that stay together from a level upward, in an order in which they can run (W10, W18)."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.ir.plan import Refusal
from tilec.lower.checks.plan_errors import PlanError
from tilec.lower.lowering_context import LoweringContext

ConnectedPart = tuple[str, ...]
"""Names of nodes in topological order; the last one is the part's final node, whose tile the others follow."""


def connected_parts(s: LoweringContext, part: Sequence[str], level: int) -> tuple[ConnectedPart, ...]:
    """The parts of `part` connected at `level` or higher; producers before consumers.

    Raises PlanError `cycle` when two parts wait for each other.
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
    """What a part waits for: tensors, their readers in it, and the parts that compute them.

    A reader of a reduction in a shared loop waits for all that share the loop, unless it runs in there itself.
    """
    waits = [(t, name, home[t]) for name in part for t in s.operands[name] if t in home]
    for chain in s.chains.values():
        behind = [(t, n) for t, n, _ in waits if t in chain.members and n not in chain.inside]
        waits += [(t, n, home[m]) for t, n in behind for m in chain.members if m in home]
    return waits
