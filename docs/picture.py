"""The graph of groups of a plan as SVG, as the report page draws it: `python -m docs.picture PLAN docs/report.svg`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from tilec.artifact import write_text
from tilec.cli.plan_origin import plan_of
from tilec.ir.plan import Plan
from tilec.report.formatting import bytes_text, time_text
from tilec.report.html.plan_data import plan_data
from tilec.report.html.shown import Shown

BOX, HEIGHT, ROW, MARGIN = 190, 46, 78, 40
"""Width and height of a group's box, distance of rows, height of the title: pixels."""

COLORS = {"stitched": "#1a7f6b", "register": "#3b6fb6", "single": "#777777", "input": "#999999"}
"""Kind of group or port -> colour of its box."""


def svg(plan: Plan) -> str:
    """The drawing of a plan's groups: boxes with name, bytes at the lowest level and predicted time, and what reads
    what."""
    data = plan_data(Shown(plan.name, plan))
    items, links = data["drawing"]["items"], data["drawing"]["links"]
    width, height = data["drawing"]["width"] + 8, MARGIN + ROW * (1 + max(row for *_, row in items))
    title = f"{plan.name} on {plan.device}: {len(plan.groups)} groups, {_kinds(data['totals']['kinds'])}"
    places = [(x, MARGIN + row * ROW) for _, _, x, row in items]
    body = [f'<text x="8" y="22" font-size="15">{escape(title)}</text>']
    for source, target, _ in links:
        (x0, y0), (x1, y1) = places[source], places[target]
        between = data["drawing"]["trunks"].get(str(source), [])[: (y1 - y0) // ROW - 1]
        points = [(x0, y0 + HEIGHT), *_trunk(between, y0), (x1, y1)]
        line = " ".join(f"{x},{y}" for x, y in points)
        body.append(f'<polyline points="{line}" fill="none" stroke="#999" stroke-width="1.5"/>')
    for (kind, index, *_), (x, y) in zip(items, places, strict=True):
        body += _box(data, plan, kind, index, x, y)
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    style = 'font-family="sans-serif" font-size="11"'
    background = '<rect width="100%" height="100%" fill="#fff"/>'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>', background, *body, "</svg>\n"])


def _box(data: dict[str, Any], plan: Plan, kind: str, index: int, x: int, y: int) -> Iterator[str]:
    if kind == "group":
        group = data["groups"][index]
        color, name = COLORS[group["kind"]], group["name"]
        below = f"{_amount(group['traffic'])}, {time_text(group['time'])}"
        tip = group["operators"]
    else:
        ports = plan.inputs if kind == "input" else plan.outputs
        color, name, below, tip = COLORS["input"], ports[index].name, kind, kind
    yield f'<rect x="{x - BOX // 2}" y="{y}" width="{BOX}" height="{HEIGHT}" rx="5" fill="{color}">'
    yield f"<title>{escape(tip)}</title></rect>"
    for line, offset in ((name, 19), (below, 35)):
        yield f'<text x="{x}" y="{y + offset}" fill="#fff" text-anchor="middle">{escape(_short(line))}</text>'


def _trunk(places: list[int], top: int) -> Iterator[tuple[int, int]]:
    """The points of a line that runs down past the rows below `top`."""
    for row, x in enumerate(places, 1):
        yield x, top + row * ROW
        yield x, top + row * ROW + HEIGHT


def _amount(size: int | str) -> str:
    """Bytes, or the text of a size that depends on symbols."""
    return bytes_text(size) if isinstance(size, int) else size


def _short(text: str) -> str:
    return text if len(text) <= 30 else f"{text[:28]}..."


def _kinds(kinds: dict[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count)


if __name__ == "__main__":
    write_text(Path(sys.argv[2]), svg(plan_of(Path(sys.argv[1]))[1]))
