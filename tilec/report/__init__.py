"""What people read about plans: the semantic diff of two, as text, Markdown and JSON; one in numbers."""

from tilec.report.change import Change, GroupChange, Metric, PlanDiff, Side
from tilec.report.diff import diff_plans
from tilec.report.diff_json import diff_to_json
from tilec.report.diff_markdown import diff_markdown
from tilec.report.diff_text import diff_text
from tilec.report.limits import LimitExceeded, exceeded, parse_limits
from tilec.report.statistics import LevelUse, Statistics, statistics, statistics_to_json
from tilec.report.totals import traffic

__all__ = [
    "Change",
    "GroupChange",
    "LevelUse",
    "LimitExceeded",
    "Metric",
    "PlanDiff",
    "Side",
    "Statistics",
    "diff_markdown",
    "diff_plans",
    "diff_text",
    "diff_to_json",
    "exceeded",
    "parse_limits",
    "statistics",
    "statistics_to_json",
    "traffic",
]
