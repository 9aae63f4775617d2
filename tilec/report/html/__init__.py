"""Plans as one self-contained HTML page: groups as a graph, tile programs, traffic, time, bounds, refusals, verdict."""

from tilec.report.html.page import page
from tilec.report.html.shown import Shown

__all__ = ["Shown", "page"]
