"""Errors of the tile machine: reading poison, exceeding a capacity, leaving a window."""

from tilec.errors import TilecError


class MachineError(TilecError):
    """A tile program that does not run on the model of the device; `place` is the statement."""
