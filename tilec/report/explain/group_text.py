"""The explanations of a group and of a node as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilec.analysis.explain.group import BlockExplanation, GroupExplanation
from tilec.analysis.explain.node import NodeExplanation
from tilec.errors import several
from tilec.ir.plan import Refusal
from tilec.ir.sizes import sizes_text
from tilec.lower.promote_halves import PROMOTED_TTYPE
from tilec.report.explain.layout import ROWS, amount, and_more, candidate_rows, some, table, text_of_lines
from tilec.report.explain.reductions_text import spread_text
from tilec.report.formatting import fact_text, time_text


def group_text(explanation: GroupExplanation) -> str:
    """The explanation of a group."""
    lines = [
        f"group {explanation.number}, {explanation.name}: {several(len(explanation.nodes), 'node')}, "
        f"predicted {time_text(explanation.picoseconds)}"
        + (f" at {sizes_text(explanation.sizes)}" if explanation.sizes else "")
    ]
    lines += [f"  {some(explanation.operators.split(), 12)}"]
    if explanation.connected:
        lines += ["", "connected"]
        lines += table([[e, level] for e, level in sorted(explanation.connected.items())][:ROWS])
        lines += and_more(len(explanation.connected))
    if explanation.variants:
        lines += ["", *_variant_lines(explanation)]
    for block in explanation.blocks:
        lines += ["", *_block_lines(block)]
    if explanation.untold:
        lines += ["", f"{explanation.untold} blocks at a core's level: ask for one with --node"]
    if explanation.code:
        lines += ["", "code"]
        lines += table([[each.kind, each.subject, fact_text(each.fact)] for each in explanation.code[:ROWS]])
        lines += and_more(len(explanation.code))
    if explanation.levels:
        lines += ["", "bytes by level"]
        rows = [["", "moved", "least", "best known", "parallel", "footprint"]]
        for at in explanation.levels:
            numbers = (at.moved, at.least, at.known, at.parallel, at.footprint)
            rows.append([at.level, *("-" if n is None else f"{n:,}" for n in numbers)])
        lines += table(rows, right=(1, 2, 3, 4, 5))
    if explanation.bytes:
        lines += ["", "where the bytes go"]
        rows = [["", "", "read", "written", "tensor has", "times"]]
        for row in explanation.bytes[:ROWS]:
            times = f"{(row.read + row.written) / row.tensor_bytes:.2f}x" if row.tensor_bytes else "-"
            rows.append([row.level, row.tensor, *(f"{n:,}" for n in (row.read, row.written, row.tensor_bytes)), times])
        lines += [*table(rows, right=(2, 3, 4, 5)), *and_more(len(explanation.bytes))]
    if explanation.refused:
        lines += ["", "edges to other groups"]
        lines += table([[reason.edge, reason.text] for reason in explanation.refused[:ROWS]])
        lines += and_more(len(explanation.refused))
    return text_of_lines(lines)


def _variant_lines(explanation: GroupExplanation) -> Iterator[str]:
    yield "variants; the first whose guard holds runs"
    rows = [["", "guard", "tiles", "kernel"]]
    for variant in explanation.variants:
        tiles = (
            f"{level} {node} {fact_text(dict(of))}" for level, by in variant.tiles.items() for node, of in by.items()
        )
        first, *more = list(tiles) or ["-"]
        rows.append(["runs" if variant.runs else "", variant.guard, first, variant.kernel])
        rows += [["", "", each, ""] for each in more]
    yield from table(rows)
    yield ""
    yield "expressions over sizes"
    held = [[f"footprint {level}", text] for level, text in explanation.footprint.items()]
    yield from table([["operations", explanation.flops], *held])
    if explanation.made_for != explanation.sizes:
        yield ""
        yield f"parts and tiles as the search looks at them, at {sizes_text(explanation.made_for)}"


def node_text(explanation: NodeExplanation) -> str:
    """The explanation of a node."""
    extents = " ".join(f"{i}={extent}" for i, extent in explanation.extents.items())
    lines = [f"{explanation.node} ({explanation.op}), in group {explanation.number}, {explanation.group}"]
    lines += [f"  {explanation.expression}", f"  {extents}"]
    if explanation.origin:
        lines.append(f"  from {', '.join(explanation.origin)}")
    for title, states in (("reads", explanation.reads), ("is read by", explanation.readers)):
        if states:
            lines += ["", title]
            lines += table([[state.edge, _state(state.connected, state.reason)] for state in states])
    if explanation.spread is not None:
        lines += ["", f"reduction of {spread_text(explanation.spread)}"]
    if explanation.part:
        lines += [
            "",
            f"shares registers with: {some([n for n in explanation.part if n != explanation.node]) or 'nothing'}",
        ]
        rows = [["register tile", "cycles", "by itself"]]
        unit = explanation.block.unit if explanation.block is not None else ""
        rows += [
            [fact_text(dict(option.sizes)) or "-", f"{option.cycles:g}", amount(option.alone, unit)]
            for option in explanation.options
        ]
        lines += table(_with_held(rows, [option.held for option in explanation.options]), right=(1, 2))
    if explanation.block is not None:
        lines += ["", *_block_lines(explanation.block)]
    return text_of_lines(lines)


def _block_lines(block: BlockExplanation) -> Iterator[str]:
    yield f"parts that share registers, held together at {block.level}"
    rows = [["", "by itself", "register tile", "cycles", "vectors"]]
    for part in block.parts:
        alone = amount(part.alone, block.unit)
        rows.append([some(part.nodes), alone, fact_text(dict(part.registers)) or "-", f"{part.cycles:g}", part.vector])
    yield from table(_with_held(rows, [part.held for part in block.parts]), right=(1, 3))
    if len(block.parts) > 1:
        saved = f"{amount(block.apart, block.unit)} apart, {amount(block.joined, block.unit)} joined"
        yield f"  {saved}"
    yield ""
    yield f"tiles, the taken one first; it is limited by: {block.limit}"
    heads = ["taken" if ranked.chosen else str(place) for place, ranked in enumerate(block.candidates)]
    yield from candidate_rows([ranked.candidate for ranked in block.candidates], heads)
    for head, ranked in zip(heads, block.candidates, strict=True):
        if ranked.refused is not None:
            yield f"  {head}: no program, {ranked.refused.text}"
    if block.walks:
        yield ""
        yield "orders of its tasks, the taken one first"
        rows = [["", "outermost loop first", "stripe", "from and to the lowest level"]]
        for place, walk in enumerate(block.walks):
            head = str(place) if place else "taken"
            rows.append([head, " ".join(walk.order), str(walk.stripe), f"{walk.drawn_bytes:,}"])
        yield from table(rows, right=(2, 3))


def _with_held(rows: Sequence[Sequence[str]], held: Sequence[Sequence[str]]) -> list[list[str]]:
    """A table with the operands that are held in a wider type, if there are any."""
    if not any(held):
        return [list(row) for row in rows]
    last = [f"held as {PROMOTED_TTYPE}", *(some(names) or "-" for names in held)]
    return [[*row, cell] for row, cell in zip(rows, last, strict=True)]


def _state(connected: str | None, reason: Refusal | None) -> str:
    if connected is not None:
        return f"connected at {connected}"
    return reason.text if reason is not None else "apart"
