"""A compiled graph that PyTorch stands in for: no call fails, or waits, because of tilec."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from tilec.api.warn_once import warn_once
from tilec.api.while_compiling import NotReadyError
from tilec.errors import UsageError
from tilec.torch_backend.numbers_as_extents import WithExtents
from tilec.torch_backend.report import MORE, reason_of

log = logging.getLogger("tilec")

Boxed = Callable[[list[Any]], Any]
"""Takes all arguments in one list, which it may empty, and returns the list of results."""

Again = Callable[[Exception, list[Any]], Boxed | None]
"""What runs a graph from now on whose compilation failed after the first calls, for its arguments; None: PyTorch."""


class Rescued:
    """Runs `compiled`, and the graph itself in PyTorch, as `eager` does, while that is not ready, and where it fails:
    for one call where its arguments are to blame, for good where the model does not compile. What PyTorch fails at,
    too, raises PyTorch's error. `strict`: what compiled code fails at raises its error."""

    _boxed_call = True

    def __init__(self, compiled: Boxed, eager: Boxed, numbers: WithExtents, strict: bool, again: Again) -> None:
        self._compiled: Boxed | None = compiled
        self._again = again
        self._eager = eager
        self._numbers = numbers if numbers.positions else None
        self._strict = strict

    def __call__(self, args: list[Any]) -> Any:
        """Run once."""
        failed = None
        if self._compiled is not None:
            try:
                return self._compiled(args if self._numbers is None else self._numbers.arguments(args))
            except NotReadyError:
                pass
            except Exception as error:
                if self._strict:
                    raise
                failed = error
                log.debug("a compiled graph failed", exc_info=True)
                if not isinstance(error, UsageError):
                    self._compiled, self._numbers = self._again(error, args), None
                    failed = error if self._compiled is None else None
        results = self._eager(args)
        if failed is not None:
            warn_once(f"PyTorch runs a graph: {reason_of(failed)}\n{MORE}")
        return results


def boxed(run: Callable[..., Any]) -> Boxed:
    """A callable that takes all arguments in one list and empties it, as AOTAutograd wants them."""

    def call(args: list[Any]) -> Any:
        given = list(args)
        args.clear()
        return run(*given)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call
