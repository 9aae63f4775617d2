"""The page of a code: its meaning, the numbers it carries, an example, a remedy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

KINDS: dict[str, str] = {
    "edge": "why two nodes are not fused (refusals in 2-plan.json)",
    "plan": "why a plan cannot be lowered (codegen, edited plans)",
    "placement": "why a node does not compile and runs on onnxruntime (import)",
    "rounding": "why the activations of a product are not rounded (explain)",
    "tuning": "why the cost model chose, not the tuning record (schedule)",
    "lint": "what is suspicious or wrong in a file (lint)",
    "error": "what an error is (Python class)",
    "exit": "exit codes",
}
"""Map from kind of code to the place where such codes occur; in the order of listings."""


@dataclass(frozen=True, slots=True)
class Page:
    """The documentation of a code.

    `meaning` is one sentence, `remedy` an instruction; `numbers` describes each number of the code; `example` shows it
    as tilec prints it. `says` are patterns of the messages that belong to the code, where these carry no code.
    """

    code: str
    kind: str
    meaning: str
    remedy: str
    example: str
    numbers: Mapping[str, str] = field(default_factory=dict)
    says: tuple[str, ...] = ()

    def covers(self, message: str) -> bool:
        """Whether a message belongs to the code."""
        return any(re.fullmatch(pattern, message) for pattern in self.says)
