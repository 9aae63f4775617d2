"""Panels as a PNG or SVG file, drawn with matplotlib, which is an optional extra."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilec.artifact import atomic_open
from tilec.errors import UnavailableError, UsageError
from tilec.extras import install
from tilec.report.bounds.panels import Line, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = (".png", ".svg")
_LEGEND = 12
"""Largest number of lines for which a legend is drawn."""

_STYLE = {
    "font.size": 8,
    "svg.hashsalt": "tilec",  # equal curves give equal files
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def require_drawable(path: Path) -> None:
    """Raise UsageError for another format, UnavailableError where matplotlib is missing."""
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"cannot draw a {path.suffix or 'file without suffix'}", str(path), "Name it .png or .svg.")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UnavailableError("pictures need matplotlib", str(path), install("plot")) from error


def draw(panels: Sequence[Panel], title: str, path: Path) -> None:
    """Write the panels side by side. Raises as `require_drawable` and writing do; no partial file remains."""
    require_drawable(path)
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    form = path.suffix.lower().removeprefix(".")
    memory = BytesIO()
    with rc_context(_STYLE):
        figure = Figure(figsize=(5 * len(panels), 4), layout="constrained")
        figure.suptitle(title)
        for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            _draw(axes, panel)
        figure.savefig(memory, format=form, dpi=150, metadata={"Date": None} if form == "svg" else None)
    with atomic_open(path) as file:
        file.write(memory.getvalue())


def _draw(axes: Axes, panel: Panel) -> None:
    axes.set(title=panel.title, xlabel=panel.x, ylabel=panel.y)
    if not panel.linear:
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
    for line in panel.lines:
        _add(axes, line)
    if panel.points:
        axes.plot(*zip(*panel.points, strict=True), "x", color="black", label="measured")
    for size, name in panel.marks:
        axes.axvline(size, color="gray", linewidth=0.6, linestyle=":")
        at: Any = axes.get_xaxis_transform()
        axes.annotate(name, (size, 1), xycoords=at, rotation=90, va="top", ha="right", color="gray")
    if 1 < len(panel.lines) <= _LEGEND:
        axes.legend(frameon=False)


def _add(axes: Axes, line: Line) -> None:
    across = [x for x, _ in line.pairs]
    up = [y for _, y in line.pairs]
    if line.proved:
        axes.plot(across, up, label=line.label, linestyle="--", color="black")
    elif line.joined:
        axes.plot(across, up, label=line.label)
    else:
        axes.step(across, up, where="post", label=line.label)
