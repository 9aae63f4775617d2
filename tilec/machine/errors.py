"""What a program does that the device cannot: read poison, overflow a level, leave a window."""

from tilec.errors import TilecError


class MachineError(TilecError):
    """A tile program that does not run on the model of the device; `place` is the statement."""
