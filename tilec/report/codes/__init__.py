"""Pages of the codes that tilec prints: refusals, plan errors, placement, roundings, tuning, errors, exit codes."""

from __future__ import annotations

from tilec.errors import UsageError, did_you_mean
from tilec.report.codes import edges, failures, lint, placement, plans, roundings, tuning
from tilec.report.codes.page import KINDS, Page

__all__ = ["KINDS", "Page", "all_pages", "pages_of"]


def all_pages() -> tuple[Page, ...]:
    """Every page, in the order of `KINDS`."""
    return tuple(page for part in (edges, plans, placement, roundings, tuning, lint, failures) for page in part.pages())


def pages_of(text: str) -> tuple[Page, ...]:
    """The pages of a code, or of a message as tilec prints it; a code may have pages of several kinds.

    Raises UsageError with the nearest code where there is none.
    """
    known = all_pages()
    wanted = text.strip()
    matching = [page for page in known if page.code.lower() == wanted.lower()]
    matching = matching or [page for page in known if page.covers(wanted)]
    if not matching:
        near = did_you_mean(wanted, [page.code for page in known])
        hint = f"Did you mean {near!r}?" if near else "`tilec explain` lists all codes."
        raise UsageError(f"no code is called {wanted!r}", hint=hint)
    return tuple(matching)
