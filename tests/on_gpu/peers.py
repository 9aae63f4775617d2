"""Step 5: whole models by torch.compile with CUDA graphs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field

from tests.on_gpu.card import Card

STEP = "peers"


@dataclass
class Peers:
    """Processes that compile models by torch.compile, and are timed in turn when everything else is quiet."""

    running: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    def start(self, card: Card) -> None:
        """Begin to compile those whose results are not there."""
        quiet = {"OMP_NUM_THREADS": "2", "TORCHINDUCTOR_COMPILE_THREADS": "2"}
        for case in card.chosen:
            if case.family == "model" and case.zoo in KNOWN and case.name not in card.found(STEP):
                cache = card.work / f"inductor-{case.name}"
                cache.mkdir(parents=True, exist_ok=True)
                environment = {**os.environ, **quiet, "TORCHINDUCTOR_CACHE_DIR": str(cache)}
                with (cache / "log").open("w") as log:
                    self.running[case.name] = subprocess.Popen(
                        [sys.executable, "-m", "tests.on_gpu.peer", case.zoo, case.ttype],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=log,
                        text=True,
                        env=environment,
                    )

    def time(self, card: Card) -> None:
        """Let those that are ready measure, one after the other; end those that take too long."""
        for name, process in self.running.items():
            try:
                words, _ = process.communicate("go\n", timeout=max(1.0, min(card.left, PATIENCE)))
                card.note(STEP, name, json.loads(words.splitlines()[-1]))
            except Exception as wrong:
                process.kill()
                log = (card.work / f"inductor-{name}" / "log").read_text(encoding="utf-8")[-300:]
                card.note(STEP, name, {"error": f"{type(wrong).__name__}: {log}"})


KNOWN = ("bert-base", "resnet-50", "mobilenet-v2", "vit-b16", "gpt2")
"""Models that `tests.on_gpu.peer` builds."""

PATIENCE = 60.0
"""Seconds that a peer may take from when it is told to measure."""
