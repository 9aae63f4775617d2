"""How far the command is that runs in the background: a file that it writes and `tilec cache list` reads."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tilec.artifact import decode, encode, put_text
from tilec.errors import ArtifactError


@dataclass(frozen=True)
class Status:
    """A command about `what` in a stage, and in a step of it of which `done` of `total` parts or groups are decided;
    `began` is when the command did."""

    what: str
    began: float
    stage: str = ""
    step: str = ""
    done: int = 0
    total: int = 0

    def text(self, now: float | None = None) -> str:
        """`schedule, fuse: 12 of 35, for 8 s`."""
        moment = time.time() if now is None else now
        where = ", ".join(part for part in (self.stage, self.step) if part)
        counted = f"{self.done} of {self.total}" if self.total else ""
        parts = [": ".join(part for part in (where, counted) if part), f"for {max(0, moment - self.began):.0f} s"]
        return ", ".join(part for part in parts if part)


def tell(path: Path, status: Status) -> None:
    """Write a status; a place that cannot be written is no error, and a machine that ends may lose it."""
    with suppress(OSError):
        put_text(path, json.dumps(encode(status)))


def told(path: Path) -> Status | None:
    """The status in a file; None where there is none."""
    try:
        return decode(Status, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, ArtifactError):
        return None
