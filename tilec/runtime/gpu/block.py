"""Memory of a device that is freed with an object that owns it."""

from __future__ import annotations

import weakref
from contextlib import suppress

from tilec.errors import TilecError
from tilec.runtime.gpu.driver import Driver


class Block:
    """Memory that lives as long as its owner, unless it grows before."""

    def __init__(self, driver: Driver, owner: object, size: int) -> None:
        self._driver = driver
        self._owner = weakref.ref(owner)
        self._finalizer: weakref.finalize[[Driver, int], object] | None = None
        self.size = self.address = 0
        self.grow(size)

    def grow(self, size: int) -> None:
        """Other memory, of which nothing is kept."""
        if self._finalizer is not None:
            self._finalizer()
        self.size, self.address = size, self._driver.allocate(max(1, size))
        finalizer = weakref.finalize(self._owner(), _free, self._driver, self.address)
        finalizer.atexit = False
        self._finalizer = finalizer


def _free(driver: Driver, place: int) -> None:
    with suppress(TilecError):
        driver.free(place)
