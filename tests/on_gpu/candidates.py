"""Step 7: candidates of the search, built and timed here, beside their predicted times."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.on_gpu.card import Card
from tests.on_gpu.cases import PROFILED
from tests.on_gpu.prepare import DEVICE

STEP = "candidates"

PATIENCE = 90.0
"""Seconds for a case."""


def candidates(card: Card) -> None:
    """Time the candidates of some cases: [predicted, measured] microseconds of each, in the order of the cost model."""
    for case in card.chosen if card.timed else ():
        if card.left <= 0:
            break
        if case.name not in PROFILED or case.name in card.found(STEP) or card.state(case)["error"]:
            continue
        card.touch(case.name)
        folder = card.work / case.name / "profiled"
        shutil.rmtree(folder, ignore_errors=True)
        record = folder.with_suffix(".json")
        options = ("--device", DEVICE, "--no-bounds", "--profile", "--record", record, "--to", "schedule", "-o", folder)
        command = [sys.executable, "-m", "tilec", "compile", card.work / case.name / "model.onnx", *options]
        try:
            error = _patient(card, case.name, [str(word) for word in command])
            card.note(STEP, case.name, {"error": error} if error else {"groups": _trials(record)})
        except Exception as wrong:
            card.failed(STEP, case.name, wrong)


def _patient(card: Card, name: str, command: list[str]) -> str:
    """Run a command for some time, and say so; returns the end of what it says of errors."""
    end = time.monotonic() + PATIENCE
    with (card.work / f"{name}.profile").open("w+") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "COLUMNS": "200"})
        while process.poll() is None and time.monotonic() < end:
            card.touch(name)
            time.sleep(0.2)
        if process.poll() is None:
            process.kill()
            return "it takes too long"
        log.seek(0)
        return "" if process.returncode == 0 else log.read()[-400:]


def _trials(record: Path) -> list[list[list[float | None]]]:
    entries = json.loads(record.read_text(encoding="utf-8"))["entries"]
    return [
        [
            [each.get("predicted", 0) / 1e6, None if each.get("picoseconds") is None else each["picoseconds"] / 1e6]
            for each in entry["trials"]
        ]
        for entry in entries
    ]
