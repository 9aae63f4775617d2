"""The difference of two states as lines: golden for a small search in which most steps change something."""

import re

from scheduler.fusion.test_local_search import ROWS
from scheduler.graphs import make_graph
from scheduler.running import device

from tilec.scheduler import schedule
from tilec.scheduler.pipeline import GRAPH_PASSES
from tilec.scheduler.state_changes import changes, whole_plan
from tilec.scheduler.trace import RecordedTrace
from tilec.spec.recipe import ScheduleOptions

TEXT = """
fuse_registers:
  fused squares mean inverse
  refused edges: iterates-differently 1
split_parts:
partition_groups:
  joined squares mean inverse y: TIME, TIME before
local_search:
  split squares | mean inverse
  changed squares mean inverse y: TIME, TIME before
join_reductions:
legalize_groups:
compare_plans:
  fusion full: TIME, taken
  fusion register: at least TIME
  fusion none: at least TIME
build_groups:
  built 1 group, TIME
share_launches:
"""
"""Lines of every step, predicted times left out."""


def test_what_the_steps_of_a_small_search_changed() -> None:
    trace = RecordedTrace()
    schedule(make_graph({"x": (5, 32)}, ROWS, ["y"]), device("zen5-avx512"), ScheduleOptions(), trace)
    lines = []
    for entry in trace.entries[len(GRAPH_PASSES) :]:
        plan = whole_plan(entry.after)
        if plan in ("", "fusion full"):
            lines += [f"{entry.step.name}:", *(f"  {line}" for line in changes(entry.before, entry.after))]
    assert re.sub(r"[0-9.]+ [mun]s\b", "TIME", "\n".join(lines)) == TEXT.strip()
