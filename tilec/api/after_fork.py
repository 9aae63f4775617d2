"""What a copied process has to make anew: threads and locks of the one that it was copied from are not there."""

import os
from typing import Any, Protocol
from weakref import WeakSet


class Renewed(Protocol):
    """Something with threads or locks."""

    def after_fork(self) -> None:
        """Go on in a copied process, which has the calling thread alone."""


_KNOWN: WeakSet[Any] = WeakSet()

left: list[Any] = []
"""What a copied process can neither use nor free: to free onnxruntime's threads is to wait for them."""


def renew(thing: Renewed) -> None:
    """Have a thing renewed in copies of this process."""
    _KNOWN.add(thing)


def _renew_all() -> None:
    for thing in list(_KNOWN):
        thing.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
