"""What a plan may not ask for: the closed list of reasons, and the error that carries one (refusal codes)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tilec.errors import TilecError

REASONS: Final[Mapping[str, str]] = {
    "cyclic": "connecting {edge} at {level} would make a part wait for itself",
    "unknown_level": "{edge} is connected at {level}, which is no level of the variant",
    "unknown_name": "{level}: {name} is no {kind} of {edge}",
    "bad_size": "{level}: the size {size} of {name} of {edge} is less than 1",
}
"""Code -> sentence. The numbers of a refusal fill the braces; `edge` is an edge or a node."""


class PlanError(TilecError):
    """A plan that cannot be lowered: `code` of `REASONS`, the edge or node, and the numbers behind it."""

    exit_code = 2

    def __init__(self, code: str, edge: str, **numbers: int | str) -> None:
        self.code = code
        self.edge = edge
        self.numbers = dict(numbers)
        super().__init__(REASONS[code].format(edge=edge, **numbers), edge, "change the plan there and lower it again")
