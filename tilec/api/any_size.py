"""Models that compile only once their sizes are known, remembered in the cache: one attempt at any size is enough."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tilec.api.cache import Cache
from tilec.api.failures import CompilerError
from tilec.api.request import Request, available, keyed
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
        if not self.request.key:
            return None
        try:
            return self._note.read_text(encoding="utf-8") or None
        except (OSError, UnicodeDecodeError):
            return None

    def remember(self, error: TilecError) -> None:
        """Keep what a failed attempt says; it holds for this model, device, recipe and compiler only."""
        if isinstance(error, UnsupportedError) and self.request.key:
            Cache(Path(self.request.cache)).keep(self._note, error.message)

    @property
    def _note(self) -> Path:
        folder = Cache(Path(self.request.cache)).model(self.request.sha256)
        return folder / f"needs-sizes-{self.request.key[:16]}.txt"


def with_sizes(request: Request, sizes: Mapping[str, int]) -> Request:
    """The request with a key, for these sizes of what it does not bind."""
    return keyed(replace(request, sizes={**sizes, **request.sizes}))


def compiled_already(request: Request, sizes: Mapping[str, int]) -> bool:
    """Whether `compiled_for` has nothing to compile."""
    return available(request) or (Attempt(request).refusal is not None and available(with_sizes(request, sizes)))


def compiled_for(request: Request, sizes: Mapping[str, int]) -> tuple[Path, str | None]:
    """The folder of the model compiled for any size; where it needs its sizes, for these, with the reason.

    `request` has a key. Raises what the compiler raises.
    """
    from tilec.api.compiling import compiled_folder

    more = sizes.keys() - request.sizes.keys()
    attempt = Attempt(request)
    reason = attempt.refusal if more else None
    if reason is None:
        try:
            return compiled_folder(request), None
        except NEEDS_SIZES as error:
            if not more:
                raise
            attempt.remember(error)
            reason = error.message
    return compiled_folder(with_sizes(request, sizes)), reason
