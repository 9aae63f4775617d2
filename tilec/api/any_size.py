"""Models that compile only once their sizes are known, remembered in the cache: one attempt at any size is enough."""

from dataclasses import dataclass
from pathlib import Path

from tilec.api.cache import Cache
from tilec.api.compiling import CompilerError
from tilec.api.request import Request
from tilec.errors import TilecError, UnavailableError, UnsupportedError

NEEDS_SIZES = (UnsupportedError, UnavailableError, CompilerError)
"""Errors of a compilation for any size that one for known sizes may not meet."""


@dataclass(frozen=True)
class Attempt:
    """The compilation of a request with a key for any size, as far as the cache knows how it ended."""

    request: Request

    @property
    def refusal(self) -> str | None:
        """What was said against it, None where it was not tried or did not fail."""
        try:
            return self._note.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def remember(self, error: TilecError) -> None:
        """Keep what a failed attempt says; it holds for this model, device, recipe and compiler only."""
        if isinstance(error, UnsupportedError):
            Cache(Path(self.request.cache)).keep(self._note, error.message)

    @property
    def _note(self) -> Path:
        folder = Cache(Path(self.request.cache)).model(self.request.sha256)
        return folder / f"needs-sizes-{self.request.key[:16]}.txt"
