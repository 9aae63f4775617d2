"""The explanation of an edge as text: the search steps' statements, the cost of joining, changes that would join it."""

from __future__ import annotations

from collections.abc import Iterator

from tilec.analysis.explain.edge import EdgeExplanation, Joined
from tilec.analysis.explain.memory_levels import LevelJoin
from tilec.analysis.explain.relax import Relaxation
from tilec.analysis.explain.search_steps import CALLS, StepVerdict
from tilec.report.explain.layout import amount, candidate_rows, some, table, text_of_lines
from tilec.scheduler.refusals import REASONS


def edge_text(explanation: EdgeExplanation) -> str:
    """The explanation of an edge."""
    state = f"connected at {explanation.connected}" if explanation.connected else "not connected"
    if explanation.reason is not None:
        state += f": {explanation.reason.text}"
    lines = [f"{explanation.edge}: {state}"]
    if explanation.reason is not None:
        lines.append(f"  {REASONS[explanation.reason.code]}")
    groups = f"inside of group {explanation.reader}"
    if explanation.producer != explanation.reader:
        groups = f"from group {explanation.producer} to group {explanation.reader}"
    lines += [f"  {explanation.bytes:,} bytes, {groups}", "", "verdicts of the search, step by step"]
    rows = [
        [
            verdict.step,
            verdict.level,
            _verdict_text(verdict),
            "<- decides" if verdict.step == explanation.decided_by else "",
        ]
        for verdict in explanation.steps
    ]
    lines += table(rows)
    rule = next((verdict.rule for verdict in explanation.steps if verdict.step == explanation.decided_by), "")
    if rule:
        lines.append(f"  rule: {rule}")
    lines.append(f"  fusion apollo: {explanation.apollo_rule or 'no rule'} joins them")
    if explanation.joined is not None:
        lines += ["", *_join_lines(explanation.joined)]
    if explanation.below is not None:
        lines += ["", *_tier_lines(explanation.below)]
    if explanation.path and explanation.reason is not None and explanation.reason.code == "cycle":
        lines += ["", f"another way: {' -> '.join(explanation.path)}"]
    if explanation.reason is not None:
        lines += ["", *_relaxed(explanation)]
    return text_of_lines(lines)


def _verdict_text(verdict: StepVerdict) -> str:
    if verdict.reason is not None:
        return verdict.reason.text
    return "apart" if verdict.step == CALLS else "connected"


def _join_lines(joined: Joined) -> Iterator[str]:
    yield f"joined at {joined.level}"
    rows = [[f"apart: {some(side.nodes, 3)}", amount(side.tile.objective, joined.unit)] for side in joined.sides]
    rows += [["apart in all", amount(joined.apart, joined.unit)]]
    rows += [["its parts one by one", amount(joined.pieces, joined.unit)]]
    rows += [["wanted below", amount(joined.wanted, joined.unit)]]
    rows += [["joined: not less than", amount(joined.bound, joined.unit)]]
    rows += [["joined: first look", "does not fit" if joined.rough is None else amount(joined.rough, joined.unit)]]
    if joined.hoped is not None:
        rows += [["joined: hoped for after it", amount(joined.hoped, joined.unit)]]
    if joined.best is not None:
        rows += [["joined: best tile", amount(joined.best.objective, joined.unit)]]
    rows += [["held at least", f"{joined.least_bytes:,} bytes"]]
    if joined.capacity_bytes is not None:
        rows += [[f"{joined.level} may hold", f"{joined.capacity_bytes:,} bytes"]]
    yield from table(rows, right=(1,))
    tiles = [*(side.tile for side in joined.sides), *([joined.best] if joined.best is not None else [])]
    yield ""
    yield "their predictions"
    heads = [f"apart {n}" for n in range(1, len(joined.sides) + 1)] + (["joined"] if joined.best is not None else [])
    yield from candidate_rows(tiles, heads)


def _tier_lines(joined: LevelJoin) -> Iterator[str]:
    yield f"at {joined.level}"
    rows = [["", "predicted", "moved", "held"]]
    for name, held in (("apart", joined.apart[0]), ("apart", joined.apart[1]), ("joined", joined.joined)):
        cost = "does not fit" if held.objective is None else f"{held.objective:,}"
        rows.append([f"{name}: {some(held.nodes, 3)}", cost, f"{held.moved_bytes:,}", f"{held.held_bytes:,}"])
    yield from table(rows, right=(1, 2, 3))
    if joined.capacity_bytes is not None:
        yield f"  {joined.level} has {joined.capacity_bytes:,} bytes for it"


def _relaxed(explanation: EdgeExplanation) -> Iterator[str]:
    """What would have to be otherwise."""
    reason = explanation.reason
    if explanation.relaxations and reason is not None and reason.code != "closed":
        yield "it would be joined with (the cheapest first)"
        yield from (f"  {_relaxation(each)}" for each in explanation.relaxations)
        return
    yield "what would have to be otherwise"
    if reason is not None and reason.code == "cycle" and explanation.path:
        yield f"  the groups in between would have to be part of it: {', '.join(explanation.path[1:-1])}"
    elif reason is not None and reason.code == "closed":
        yield f"  schedule.closed of the recipe without {reason.numbers['level']}"
    elif reason is not None and reason.code in ("slower", "capacity"):
        yield "  no capacity, bandwidth or objective that was tried makes it pay"
    else:
        yield "  nothing of the device: see `tilec explain " + (reason.code if reason is not None else "") + "`"


def _relaxation(each: Relaxation) -> str:
    costs = f"{amount(each.joined, each.unit)} joined, {amount(each.apart, each.unit)} apart"
    if each.what == "objective":
        return f"{each.subject}: {each.after} instead of {each.before} ({costs})"
    unit = "bytes/s" if each.what == "bandwidth" else "bytes"
    before, after = (f"{value:,}" if isinstance(value, int) else value for value in (each.before, each.after))
    return f"{each.what} of {each.subject}: {after} {unit} instead of {before} ({costs})"
