"""A page about a code: what it means, the numbers it carries, an example, what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

KINDS: dict[str, str] = {
    "edge": "why two nodes are not fused (refusals in 2-plan.json)",
    "plan": "why a plan cannot be lowered (codegen, edited plans)",
    "placement": "why a node does not compile and runs on onnxruntime (import)",
    "tuning": "why the cost model chose, not the tuning record (schedule)",
    "lint": "what is suspicious or wrong in a file (lint)",
    "error": "what an error is (Python class)",
    "exit": "exit codes",
}
"""Kind of code -> where such codes are met; in the order of listings."""


@dataclass(frozen=True, slots=True)
class Page:
    """What is known of a code.

    `meaning` is one sentence, `remedy` what to do; `numbers` says what each number of the code is; `example` shows it
    as tilec prints it. `says` are patterns of the messages that the code stands for, where these have no code of their
    own.
    """

    code: str
    kind: str
    meaning: str
    remedy: str
    example: str
    numbers: Mapping[str, str] = field(default_factory=dict)
    says: tuple[str, ...] = ()

    def covers(self, message: str) -> bool:
        """Whether a message is one of those that the code stands for."""
        return any(re.fullmatch(pattern, message) for pattern in self.says)
