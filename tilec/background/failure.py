"""Commands that failed in the background, so that they are not tried again and again."""

from __future__ import annotations

from dataclasses import dataclass

PAUSE, LONGEST = 600.0, 86400.0
"""Seconds until what failed is tried again, doubled with each failure, and the most of them."""

MOST = 3
"""Failures of a kind that may pass after which nothing is tried again."""

BEGUN = 20
"""Times that a command may begin and, because the machine or the compiler ended, have no end."""

_LASTING = ("CompilerError", "ConfigError", "UnsupportedError")
"""Errors that come again whenever the same is tried."""


@dataclass(frozen=True)
class Failure:
    """The error, with the name of its class, of a command about `what`, which failed `count` times, last at `time`."""

    what: str
    kind: str
    message: str
    place: str | None
    hint: str | None
    time: float
    count: int = 1

    @property
    def lasts(self) -> bool:
        """Whether it is not tried again by this version of the compiler."""
        return self.kind in _LASTING or self.count >= MOST

    def holds(self, now: float) -> bool:
        """Whether it is not to be tried again now. A clock that was set back holds nothing up."""
        if self.lasts:
            return True
        pause: float = PAUSE * 2 ** (self.count - 1)
        return 0 <= now - self.time < min(LONGEST, pause)
