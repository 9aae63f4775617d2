"""The page: one self-contained file with style, scripts and data, which loads nothing from a network."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

from tilec.report.html.compare import comparison
from tilec.report.html.plan_data import plan_data
from tilec.report.html.shown import Shown

_STYLES = ("tokens.css", "layout.css", "parts.css")
_SCRIPTS = (
    "elements.js",
    "units.js",
    "state.js",
    "chart.js",
    "header.js",
    "strip.js",
    "graph.js",
    "list.js",
    "tiles.js",
    "program.js",
    "slope.js",
    "parts.js",
    "group.js",
    "levels.js",
    "memory.js",
    "roofline.js",
    "scenarios.js",
    "distance.js",
    "refusals.js",
    "verdict.js",
    "changes.js",
    "main.js",
)
"""Scripts of the page in the order in which they are concatenated."""

_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}
"""Characters that could end a script element; JSON text contains them in strings only."""


def page(shown: Sequence[Shown]) -> str:
    """The HTML of one plan, or of two side by side. Equal plans give equal text.

    All content of plans is data and is inserted as text only, so that no name can become markup or a script. Raises
    PlanError for a plan that cannot be lowered.
    """
    data: dict[str, Any] = {"plans": [plan_data(each) for each in shown], "changes": None}
    if len(shown) == 2:
        data["changes"] = comparison(shown[0].plan, shown[1].plan)
    title = " and ".join(dict.fromkeys(f"{each.plan.name} on {each.plan.device}" for each in shown))
    script, style = _joined(_SCRIPTS), _joined(_STYLES)
    policy = f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; base-uri 'none'"
    parts = {"policy": policy, "title": escape(title), "style": style, "data": embedded(data), "script": script}
    text = _asset("page.html")
    head, *rest = text.split("{{")
    document = [head]
    for piece in rest:
        name, _, after = piece.partition("}}")
        document += [parts[name], after]
    return "".join(document)


def embedded(data: Any) -> str:
    """JSON that is safe inside a script element, in ASCII."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    for character, escaped in _UNSAFE.items():
        text = text.replace(character, escaped)
    return text


def _joined(names: Sequence[str]) -> str:
    """The text of a script or style element, of which the digest is taken."""
    return "\n" + "\n".join(_asset(name) for name in names)


def _asset(name: str) -> str:
    return (files("tilec.report.html") / "assets" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """The source expression of a content security policy for an element with this text."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
