"""Step 6: what Nsight Compute counts of some kernels: issue slots, stalls, pipes, memory."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from shutil import which
from typing import Any

from tests.on_gpu.card import Card
from tests.on_gpu.cases import COUNTED

STEP = "counters"

SECTIONS = (
    "SpeedOfLight",
    "SchedulerStats",
    "WarpStateStats",
    "InstructionStats",
    "MemoryWorkloadAnalysis",
    "MemoryWorkloadAnalysis_Tables",
    "Occupancy",
    "LaunchStats",
)

PATIENCE = 40.0
"""Seconds for a case."""

KEPT = (
    "gpu__time_duration.sum",
    "sm__cycles_elapsed.max",
    "smsp__inst_executed.sum",
    "smsp__inst_issued.sum",
    "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "smsp__average_warps_issue_stalled",
    "smsp__warps_active.avg.per_cycle_active",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "sm__inst_executed_pipe",
    "sm__pipe",
    "dram__bytes",
    "dram__throughput",
    "lts__t_sectors_op",
    "lts__t_sector_hit_rate",
    "l1tex__data_bank",
    "l1tex__data_pipe",
    "l1tex__t_sector_hit_rate",
    "memory_l1_wavefronts",
    "memory_shared",
    "smsp__sass_average_data_bytes",
    "launch__registers_per_thread",
    "launch__occupancy_limit",
)
"""How the names of what is kept begin."""


def counters(card: Card) -> None:
    """Count the kernels of the chosen cases, one launch each."""
    for case in card.chosen if card.timed and which("ncu") else ():
        if card.left <= 0:
            break
        if case.name not in COUNTED or case.name in card.found(STEP) or card.state(case)["error"]:
            continue
        card.touch(case.name)
        sections = [word for section in SECTIONS for word in ("--section", section)]
        alone = [sys.executable, "-m", "tests.on_gpu.alone", case.name, str(card.work)]
        command = ["ncu", "--clock-control", "none", "--csv", "--page", "raw", "-k", "regex:tilec", *sections, *alone]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
            found = dict(counted(done.stdout))
            card.note(STEP, case.name, found or {"error": (done.stdout + done.stderr)[-600:]})
        except Exception as wrong:
            card.failed(STEP, case.name, wrong)


def counted(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Kernel -> metric -> value with its unit, from what Nsight Compute prints."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    rows = list(csv.reader(StringIO("\n".join(lines))))
    if len(rows) < 3:
        return
    names, units = rows[:2]
    for row in rows[2:]:
        told = {
            name: f"{value} {unit}".strip()
            for name, unit, value in zip(names, units, row, strict=True)
            if name.startswith(KEPT) and value not in ("", "0")
        }
        yield row[names.index("Kernel Name")], told
