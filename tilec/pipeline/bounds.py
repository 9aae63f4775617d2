"""From what a user names - an Einsum, a model, a graph artifact - to subjects with their curves (O35)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from tilec.bounds.curve import Curve
from tilec.bounds.einsum import Einsum, parse_einsum
from tilec.report.bounds.subject import Slope, Subject, of_einsum

Mapspace = Literal["oro", "oro+", "all"]


def einsum_subject(text: str, sizes: Mapping[str, int], bits: int | Mapping[str, int], mapspace: Mapspace) -> Subject:
    """The subject of an Einsum's text. Raises ConfigError and UnsupportedError as `parse_einsum` does."""
    einsum = parse_einsum(text, sizes, bits)
    return of_einsum(einsum, slopes_of(einsum, mapspace))


def slopes_of(einsum: Einsum, mapspace: Mapspace) -> list[Slope]:
    """The curves of one Einsum that were asked for, the paper's first."""
    return [Slope.of(name, find(einsum)) for name, find in _finders(mapspace)]


def _finders(mapspace: Mapspace) -> Sequence[tuple[str, Callable[[Einsum], Curve]]]:
    from tilec.bounds.oro import oro
    from tilec.bounds.oro_plus import oro_plus

    known: list[tuple[str, Callable[[Einsum], Curve]]] = [("oro", oro), ("oro+", oro_plus)]
    return [(name, find) for name, find in known if mapspace in (name, "all")]
